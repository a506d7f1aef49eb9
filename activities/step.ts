import { setMaxListeners } from 'node:events';
import { Context } from '@temporalio/activity';
import type { Deps } from './deps.ts';
import { asFailure } from './failure.ts';
import { stepOf, type FaultLog } from './fault-log.ts';
import type { Prefetch } from './prefetch.ts';

export interface StepDeps extends Deps {
  readonly faults: FaultLog;
  readonly prefetch: Prefetch;
}

/** Well below the heartbeat timeout of 5 s in workflows/activities.ts. */
const heartbeatMs = 1_000;

/**
 * The frame of every durable step: heartbeats while it runs (so that a lost worker is noticed and a cancellation arrives), and
 * failures in the workflow's vocabulary.
 */
export async function step<T>(faults: FaultLog, effect: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current();
  // A step may wait for many answers at a time, each of which listens for the cancellation.
  setMaxListeners(0, context.cancellationSignal);
  const timer = setInterval(() => context.heartbeat(), heartbeatMs);
  try {
    const result = await effect(context.cancellationSignal);
    faults.healed(stepOf(context.info));
    return result;
  } catch (error) {
    throw asFailure(error, faults);
  } finally {
    clearInterval(timer);
  }
}

import { setMaxListeners } from 'node:events';
import { Context } from '@temporalio/activity';
import { asFailure } from './failure.ts';
import type { Log } from './deps.ts';

/** Well below the heartbeat timeout of 5 s in workflows/activities.ts. */
const heartbeatMs = 1_000;

/**
 * The frame of every durable step: heartbeats while it runs (so that a lost worker is noticed and a cancellation arrives), and
 * failures in the workflow's vocabulary.
 */
export async function step<T>(log: Log, effect: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current();
  // A step may wait for many answers at a time, each of which listens for the cancellation.
  setMaxListeners(0, context.cancellationSignal);
  const timer = setInterval(() => context.heartbeat(), heartbeatMs);
  try {
    return await effect(context.cancellationSignal);
  } catch (error) {
    throw asFailure(error, log);
  } finally {
    clearInterval(timer);
  }
}

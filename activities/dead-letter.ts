import { createHash } from 'node:crypto';
import { Context } from '@temporalio/activity';
import { ReplayFault } from '../core/errors.ts';
import type { Reject } from '../core/record.ts';
import type { DeadLettered, DeadLetterRequest } from '../core/steps.ts';
import type { DeadLetter } from '../jetstream/source.ts';
import { readLaneRecord } from './read-lane.ts';
import { step, type StepDeps } from './step.ts';

/** Dead letters on their way at the same time. */
const inFlightMax = 64;

/** Stores each rejected record in the dead-letter stream and waits for the server's word. Bodies are read again by sequence. */
export function makeDeadLetter(deps: StepDeps): (request: DeadLetterRequest) => Promise<DeadLettered> {
  const { source, faults } = deps;
  return (request) =>
    step(faults, async (signal) => {
      if (request.target.dead_letter === null) throw new ReplayFault('dead_letter_not_configured');
      let lostBodies = 0;
      for (let start = 0; start < request.rejects.length; start += inFlightMax) {
        const some = request.rejects.slice(start, start + inFlightMax);
        const answers = await Promise.all(
          some.map(async (reject) =>
            source.publishDeadLetter(await withRecord(deps, request, letterOf(request, reject), signal), signal),
          ),
        );
        lostBodies += answers.filter((answer) => answer.body === 'lost').length;
      }
      return { stored: request.rejects.length, lostBodies };
    });
}

/** A record of a topic may be cold by now, where its stream does not have it. */
async function withRecord(
  deps: StepDeps,
  { replay }: DeadLetterRequest,
  letter: DeadLetter,
  signal: AbortSignal,
): Promise<DeadLetter> {
  if (replay.topic === undefined) return letter;
  const record = await readLaneRecord(deps, replay, letter.reject, signal);
  return record === null ? letter : { ...letter, record };
}

function letterOf({ replay, target }: DeadLetterRequest, reject: Reject): DeadLetter {
  const { stream, incarnation, durable, owner } = replay;
  return {
    subject: target.dead_letter!.subject,
    source: { stream, incarnation },
    reject,
    replayId: hash([stream, incarnation, reject.sequence, durable, target.sink, target.idempotency]),
    plan: durable,
    run: owner.firstRunId,
    attempt: Context.current().info.attempt,
  };
}

function hash(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

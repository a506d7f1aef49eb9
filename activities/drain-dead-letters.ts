import { createHash } from 'node:crypto';
import { Context } from '@temporalio/activity';
import type { DrainLettersRequest, DrainReject } from '../core/drain.ts';
import { ReplayFault } from '../core/errors.ts';
import type { ReplayRecord } from '../core/record.ts';
import type { DeadLettered } from '../core/steps.ts';
import type { DeadLetter } from '../jetstream/source.ts';
import { claimedSpool } from './drain-batch.ts';
import { step, type StepDeps } from './step.ts';

/** Stores each rejected record of a spool in the dead-letter stream. The spool still holds it, so no stream is asked. */
export function makeDrainDeadLetters(deps: StepDeps): (request: DrainLettersRequest) => Promise<DeadLettered> {
  return (request) =>
    step(deps.faults, async (signal) => {
      if (request.drain.target.dead_letter === null) throw new ReplayFault('dead_letter_not_configured');
      const { spool } = await claimedSpool(deps, request.drain);
      const { records } = await spool.read(request.packs, signal);
      const byName = new Map(records.map((record) => [nameOf(record), record]));
      for (const reject of request.rejects) {
        const record = byName.get(nameOf(reject));
        if (record === undefined) throw new ReplayFault('sink_corrupt', 'a refused record is no longer in the spool');
        await deps.source.publishDeadLetter(letterOf(request, reject, record), signal);
      }
      return { stored: request.rejects.length, lostBodies: 0 };
    });
}

function letterOf({ drain }: DrainLettersRequest, reject: DrainReject, record: ReplayRecord): DeadLetter {
  const { stream, incarnation } = reject;
  const { target, name, owner } = drain;
  const parts = [stream, incarnation, reject.sequence, name, target.sink, target.idempotency];
  return {
    subject: target.dead_letter!.subject,
    source: { stream, incarnation },
    reject,
    replayId: createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32),
    plan: name,
    run: owner.firstRunId,
    attempt: Context.current().info.attempt,
    record,
  };
}

function nameOf({ stream, incarnation, sequence }: { stream: string; incarnation: string; sequence: bigint | number }): string {
  return JSON.stringify([stream, incarnation, String(sequence)]);
}

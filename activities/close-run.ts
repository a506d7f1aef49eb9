import type { CloseRequest, Closed } from '../core/steps.ts';
import { sameOwner } from '../core/consumer.ts';
import { step, type StepDeps } from './step.ts';

/**
 * Leaves the durable as the end of the run asks: deleted, or kept with its floor at the cursor, so that the same plan can go
 * on there. What others own by now is left alone.
 */
export function makeCloseRun({ source, faults, prefetch }: StepDeps): (request: CloseRequest) => Promise<Closed> {
  return (request) =>
    step(faults, async () => {
      const { replay, cursor, maxAckPending, notReached } = request;
      const { stream, incarnation, durable, filters, owner } = replay;
      const spec = { stream, incarnation, durable, filters, owner, maxAckPending };
      prefetch.drop(owner.firstRunId, durable);
      const seen = await source.readConsumer(stream, durable);
      const lost = seen === null && request.begun;
      const ours = lost || [owner, replay.predecessor].some((one) => one && seen?.owner && sameOwner(seen.owner, one));
      if (ours && request.durable === 'delete') await source.deleteConsumer(stream, durable);
      else if (ours) {
        const floor = replay.topic === undefined ? (seen?.ackFloor ?? 0) + 1 : (seen?.startSequence ?? 0);
        if (seen === null || floor < cursor || seen.altered.length > 0) await source.putBack(spec, cursor);
        if (request.durable === 'keep_completed') await source.markCompleted(spec);
      }
      const facts = notReached === null ? null : await source.describe(stream);
      if (notReached === null || facts === null || facts.incarnation !== incarnation) return { settled: ours, notReached: 0 };
      const left = await source.count(facts, { filters, first: notReached.first, last: notReached.last });
      return { settled: ours, notReached: left.messages };
    });
}

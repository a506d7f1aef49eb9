import type { RemoveDrainedRequest } from '../core/drain.ts';
import { claimedSpool } from './drain-batch.ts';
import { step, type StepDeps } from './step.ts';

/** Removes from the spool what the target has by now, or the dead-letter stream. */
export function makeRemoveDrained(deps: StepDeps): (request: RemoveDrainedRequest) => Promise<void> {
  return (request) =>
    step(deps.faults, async () => {
      const { spool } = await claimedSpool(deps, request.drain);
      await spool.remove(request.packs);
    });
}

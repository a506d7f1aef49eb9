import type { StoredSegment, SweepFlush } from '../core/sweep.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** The stored object becomes a segment of the partition's manifest; from then on readers find it there. False: the claim is gone. */
export function makeRecordSegment(deps: StepDeps): (flush: SweepFlush, stored: StoredSegment) => Promise<boolean> {
  return ({ topic, partition, intent }, stored) =>
    topicStep(deps, async () => {
      const opened = await deps.sweeps.topics.open(topic);
      return await deps.sweeps.topics.record(opened.partitions[partition]!, intent, stored);
    });
}

import { recordMerge } from '../core/manifest.ts';
import { removeGraceMs, type StoredSegment, type SweepMerge } from '../core/sweep.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** The merged object takes the place of its sources, which go after a grace. False: somebody else was first, or they changed. */
export function makeRecordMerge(deps: StepDeps): (of: SweepMerge, stored: StoredSegment) => Promise<boolean> {
  return ({ topic, partition, merge }, stored) =>
    topicStep(deps, async () => {
      const opened = await deps.sweeps.topics.open(topic);
      const removeAtMs = Date.now() + removeGraceMs;
      return await deps.sweeps.topics.change(opened.partitions[partition]!, (manifest) => {
        const after = recordMerge(manifest, merge, stored, removeAtMs);
        return { manifest: after, answer: after?.segments.some(({ name }) => name === merge.name) ?? false };
      });
    });
}

import type { SweepPlace } from '../core/sweep.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** Takes hot records away, before this offset. Resolves to how many went now. */
export function makePurgeHot(deps: StepDeps): (place: SweepPlace, before: number) => Promise<number> {
  return ({ topic, partition }, before) =>
    topicStep(deps, async () => {
      const opened = await deps.sweeps.topics.open(topic);
      return await deps.sweeps.topics.purge(opened.partitions[partition]!, before);
    });
}

import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** How many partitions are to be swept. */
export function makePlanSweep(deps: StepDeps): (topic: string) => Promise<{ readonly partitions: number }> {
  return (topic) =>
    topicStep(deps, async (signal) => {
      const opened = await deps.sweeps.topics.open(topic);
      if (opened.topic.cold !== null) await deps.sweeps.cold(opened.topic.cold).prove(signal);
      return { partitions: opened.topic.partitions };
    });
}

import { addRepairs, type TopicReconciled } from '../core/reconcile.ts';
import { reconcilePartition } from './reconcile-partition.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** Repairs a topic, one partition after the other. Safe to do twice, and at the same time. Throws `cold_missing`. */
export function makeReconcileTopic(deps: StepDeps): (topic: string) => Promise<TopicReconciled> {
  return (name) =>
    topicStep(deps, async (signal) => {
      const { sweeps } = deps;
      const { topic, partitions } = await sweeps.topics.open(name);
      if (topic.cold !== null) await sweeps.cold(topic.cold).prove(signal);
      let all: TopicReconciled = { repairs: {}, unrepaired: [] };
      for (const partition of partitions) {
        const nowMs = Date.now();
        const one = await reconcilePartition(sweeps, partition, nowMs, signal);
        const cursors = await sweeps.topics.mendCursors(partition, nowMs);
        const repairs = addRepairs(one.repairs, cursors === 0 ? {} : { cursor_beyond_end: cursors });
        all = { repairs: addRepairs(all.repairs, repairs), unrepaired: [...all.unrepaired, ...one.unrepaired] };
      }
      return all;
    });
}

import { ReplayFault } from '../core/errors.ts';
import type { StoredSegment, SweepFlush } from '../core/sweep.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/**
 * Stores the records of a claimed range under its name. An object that is there already is this one from an attempt that was
 * lost, or a conflict: then the hot records stay. null: the flush has become a segment already.
 */
export function makeStoreSegment(deps: StepDeps): (flush: SweepFlush) => Promise<StoredSegment | null> {
  return ({ topic, partition, intent }) =>
    topicStep(deps, async (signal) => {
      const opened = await deps.sweeps.topics.open(topic);
      const of = opened.partitions[partition]!;
      if (await deps.sweeps.topics.isRecorded(of, intent)) return null;
      // A topic without a cold store has no flushes.
      const cold = deps.sweeps.cold(opened.topic.cold!);
      const records = await deps.sweeps.topics.readHot(of, intent, signal);
      const place = { topic: opened.topic.id, partition, first: intent.first, next: intent.next };
      const bytes = deps.sweeps.segments.encode(place, records);
      if ((await cold.put(intent.name, bytes, signal)) === 'exists') {
        const there = await cold.get(intent.name, signal);
        if (there === null) throw new ReplayFault('cold_unavailable', 'an object that exists cannot be read');
        if (Buffer.compare(there, bytes) !== 0) throw new ReplayFault('cold_conflict');
      }
      return { bytes: bytes.length, lastTime: records.at(-1)!.appendedAt };
    });
}

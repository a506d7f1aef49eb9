import type { StoredSegment, SweepFlush } from '../core/sweep.ts';
import type { SweepDeps } from './deps.ts';
import { putSegment } from './put-segment.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** Stores the records of a claimed range under its name. null: the flush has become a segment already. Throws `cold_conflict`. */
export function makeStoreSegment(deps: StepDeps): (flush: SweepFlush) => Promise<StoredSegment | null> {
  return (flush) => topicStep(deps, (signal) => storeFlush(deps.sweeps, flush, signal));
}

export async function storeFlush(
  { topics, cold, segments }: SweepDeps,
  { topic, partition, intent }: SweepFlush,
  signal: AbortSignal,
): Promise<StoredSegment | null> {
  const opened = await topics.open(topic);
  const of = opened.partitions[partition]!;
  if (await topics.isRecorded(of, intent)) return null;
  const records = await topics.readHot(of, intent, signal);
  const bytes = segments.encode({ topic: opened.topic.id, partition, first: intent.first, next: intent.next }, records);
  // A topic without a cold store has no flushes.
  await putSegment(cold(opened.topic.cold!), intent.name, bytes, signal);
  return { bytes: bytes.length, lastTime: records.at(-1)!.appendedAt };
}

import type { StoredSegment, SweepMerge } from '../core/sweep.ts';
import type { SweepDeps } from './deps.ts';
import { putSegment } from './put-segment.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** Stores small neighbours as one object. null: they are not all there, or it is recorded already. Throws `cold_conflict`. */
export function makeMergeSegments(deps: StepDeps): (of: SweepMerge) => Promise<StoredSegment | null> {
  return (of) => topicStep(deps, (signal) => storeMerge(deps.sweeps, of, signal));
}

export async function storeMerge(
  { topics, cold, segments }: SweepDeps,
  { topic, partition, merge }: SweepMerge,
  signal: AbortSignal,
): Promise<StoredSegment | null> {
  const opened = await topics.open(topic);
  const manifest = await topics.manifest(opened.partitions[partition]!);
  const sources = manifest.segments.filter(({ name }) => merge.sources.includes(name));
  if (sources.length !== merge.sources.length) return null;
  const place = { topic: opened.topic.id, partition };
  const store = cold(opened.topic.cold!);
  const records = [];
  for (const { name, first, next } of sources) {
    const bytes = await store.get(name, signal);
    if (bytes === null) return null;
    for (const record of segments.decode({ ...place, first, next }, bytes).records) records.push(record);
  }
  const bytes = segments.encode({ ...place, first: merge.first, next: merge.next }, records);
  await putSegment(store, merge.name, bytes, signal);
  return { bytes: bytes.length, lastTime: records.at(-1)!.appendedAt };
}

import type { Swept } from '../core/sweep.ts';
import {
  mergeSegments,
  nextSweepStep,
  planSweep,
  purgeHot,
  recordMerge,
  recordSegment,
  removeObjects,
  storeSegment,
} from './activities.ts';

/** Partitions at a time. */
const partitionsAtOnce = 4;
/** Steps of one partition in one sweep; the next sweep does the rest. */
const stepsMax = 200;

/**
 * Moves what has left the bounds of the hot window into the cold store, or takes it away where there is none. Sweeps may run at the
 * same time and be lost anywhere: a flush is claimed before it is stored, stored before it is recorded, recorded before the hot
 * records go.
 */
export async function sweepTopic(topic: string): Promise<Swept[]> {
  const { partitions } = await planSweep(topic);
  const waiting = Array.from({ length: partitions }, (_, partition) => partition);
  const swept: Swept[] = [];
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) swept.push(await sweepPartition(topic, next));
  };
  await Promise.all(Array.from({ length: Math.min(partitionsAtOnce, partitions) }, lane));
  return swept.sort((a, b) => a.partition - b.partition);
}

/** Until nothing is due any more. */
async function sweepPartition(topic: string, partition: number): Promise<Swept> {
  const place = { topic, partition };
  const swept = { partition, segments: 0, records: 0, merges: 0, removed: 0 };
  for (let steps = 0; steps < stepsMax; steps++) {
    const step = await nextSweepStep(place);
    if (step.kind === 'nothing') break;
    if (step.kind === 'purge') swept.records += await purgeHot(place, step.before);
    else if (step.kind === 'remove') swept.removed += await removeObjects(place, step.names);
    else if (step.kind === 'merge') {
      const stored = await mergeSegments({ ...place, merge: step.merge });
      // Its sources are not all there: reconciling tells.
      if (stored === null) break;
      if (await recordMerge({ ...place, merge: step.merge }, stored)) swept.merges++;
    } else {
      const flush = { ...place, intent: step.intent };
      const stored = await storeSegment(flush);
      if (stored !== null && !(await recordSegment(flush, stored))) continue;
      if (stored !== null) swept.segments++;
      swept.records += await purgeHot(place, step.intent.next);
    }
  }
  return swept;
}

import { expireBefore, offsetBefore } from '../../core/manifest.ts';
import { removeGraceMs } from '../../core/sweep.ts';
import { formatTime } from '../../core/time.ts';
import { TopicError } from '../../core/topic-errors.ts';
import type { Link } from '../link.ts';
import { changeManifest } from './manifest-store.ts';
import { readBounds, type Partition } from './partition-stream.ts';

export type ColdLimit = { readonly offset: number } | { readonly timeNanos: bigint };

export interface ColdExpired {
  readonly partition: number;
  readonly segments: number;
  readonly records: number;
  /** First offset that can still be read. */
  readonly oldest: number;
}

/** Entries become invisible by one compare-and-set; their objects go after a grace. Throws `setting_invalid`. */
export async function expireCold(link: Link, of: Partition, before: ColdLimit, nowMs: number): Promise<ColdExpired> {
  const { topic, partition } = of;
  if (topic.cold === null) throw new TopicError('setting_invalid', 'this topic has no cold store');
  const { hot } = await readBounds(link, of);
  return await changeManifest(link, topic, partition, (manifest) => {
    const offset = 'offset' in before ? before.offset : offsetBefore(manifest, formatTime(before.timeNanos));
    const { manifest: after, expired } = expireBefore(manifest, offset, nowMs + removeGraceMs);
    const records = expired.reduce((sum, { first, next }) => sum + next - first, 0);
    const oldest = Math.min(hot, after.segments[0]?.first ?? hot);
    return {
      manifest: expired.length === 0 ? null : after,
      answer: { partition, segments: expired.length, records, oldest },
    };
  });
}

import { ReplayFault } from '../../core/errors.ts';
import type { Span } from '../../core/group.ts';
import { coldThrough, isRecorded, keepFrom, record, type Intent, type Manifest, type NameOf } from '../../core/manifest.ts';
import { decideSweep, type StoredSegment, type SweepStep } from '../../core/sweep.ts';
import { TopicError } from '../../core/topic-errors.ts';
import { callApi } from '../api.ts';
import { faultOfApi } from '../faults.ts';
import { withFaults, type Link } from '../link.ts';
import { mendCursors } from './mend-cursors.ts';
import { changeManifest, readManifest, type ManifestChange } from './manifest-store.ts';
import { readBounds, type Partition, type PartitionBounds } from './partition-stream.ts';
import { hotOffsetAt, readHotPage } from './read.ts';
import { listTopics, openTopic, type OpenedTopic } from './registry.ts';
import { assertTopicServer } from './server.ts';
import type { TopicRecord } from './wire.ts';

/** Segments are cut at about so many stored bytes, and at so many records. */
const segmentBytes = 8 * 1_048_576;
const segmentRecordsMax = 20_000;
const nanosPerMilli = 1_000_000n;

/** What a sweep asks of JetStream. Every call throws TopicError or ReplayFault. */
export interface TopicSource {
  /** Throws `topic_missing`. */
  open(name: string): Promise<OpenedTopic>;
  /** What to do next in a partition; claims the range of a flush. `nowMs`: milliseconds since the epoch. */
  next(partition: Partition, nowMs: number, nameOf: NameOf): Promise<SweepStep>;
  bounds(partition: Partition): Promise<PartitionBounds>;
  manifest(partition: Partition): Promise<Manifest>;
  /** Decides on the manifest as it is then, as often as somebody else comes in between. Throws `group_contended`. */
  change<T>(partition: Partition, decide: (manifest: Manifest) => ManifestChange<T>): Promise<T>;
  /** Names of all topics. */
  list(): Promise<readonly string[]>;
  /** Positions beyond the end of the log are set to it, with an audit line. Resolves to their number. */
  mendCursors(partition: Partition, nowMs: number): Promise<number>;
  /** Whether this flush has become a segment. */
  isRecorded(partition: Partition, intent: Intent): Promise<boolean>;
  /** All hot records of the span. */
  readHot(partition: Partition, span: Span, signal: AbortSignal): Promise<readonly TopicRecord[]>;
  /** The intent becomes a segment. False: the claim is gone by now, and so is nothing hot. */
  record(partition: Partition, intent: Intent, stored: StoredSegment): Promise<boolean>;
  /** Removes hot records before the offset: of a topic with a cold store only those that are cold. Resolves to their number. */
  purge(partition: Partition, before: number): Promise<number>;
}

export function createTopicSource(link: Link): TopicSource {
  const asked = <T>(act: () => Promise<T>) => withFaults(undefined, act);
  return {
    open: (name) =>
      asked(() => {
        assertTopicServer(link);
        return openTopic(link, name);
      }),
    next: (partition, nowMs, nameOf) => asked(() => nextStep(link, partition, nowMs, nameOf)),
    bounds: (partition) => asked(() => readBounds(link, partition)),
    manifest: ({ topic, partition }) => asked(() => readManifest(link, topic, partition)),
    change: ({ topic, partition }, decide) => asked(() => changeManifest(link, topic, partition, decide)),
    list: () => asked(async () => (await listTopics(link)).map(({ name }) => name)),
    mendCursors: (partition, nowMs) => asked(() => mendCursors(link, partition, nowMs)),
    isRecorded: ({ topic, partition }, intent) =>
      asked(async () => isRecorded(await readManifest(link, topic, partition), intent)),
    readHot: (partition, span, signal) => withFaults(signal, () => readSpan(link, partition, span, signal)),
    record: (partition, intent, stored) => asked(() => recordSegment(link, partition, intent, stored)),
    purge: (partition, before) => asked(() => purge(link, partition, before)),
  };
}

async function nextStep(link: Link, partition: Partition, nowMs: number, nameOf: NameOf): Promise<SweepStep> {
  const bounds = await readBounds(link, partition);
  const before = await firstToKeep(link, partition, bounds, nowMs);
  const { topic } = partition;
  if (topic.cold === null) return before > bounds.hot ? { kind: 'purge', before } : { kind: 'nothing' };
  const recordBytes = Math.max(1, bounds.bytes / Math.max(1, bounds.next - bounds.hot));
  const recordsMax = Math.min(segmentRecordsMax, Math.max(1, Math.floor(segmentBytes / recordBytes)));
  const { hot, next } = bounds;
  const facts = {
    hot,
    next,
    before,
    recordsMax,
    nowMs,
    nameOf,
    mergeRecordsMax: segmentRecordsMax,
    mergeBytesMax: segmentBytes,
  };
  return await changeManifest(link, topic, partition.partition, (manifest) => decideSweep(manifest, facts));
}

/** Records that are strictly older than the age, too many, or too large together may go. */
async function firstToKeep(link: Link, partition: Partition, bounds: PartitionBounds, nowMs: number): Promise<number> {
  const { hot } = partition.topic;
  if (bounds.hot === bounds.next) return bounds.next;
  const cutOff = BigInt(nowMs - hot.maxAgeSeconds * 1_000) * nanosPerMilli;
  const byAge = cutOff <= 0n ? bounds.hot : await hotOffsetAt(link, partition, cutOff);
  // Stored bytes are more than payload: only beyond them may the payload be too much.
  const sizes = bounds.bytes > hot.maxBytes ? await payloadSizes(link, partition, bounds) : null;
  return Math.min(bounds.next, Math.max(byAge, keepFrom(bounds, hot, sizes)));
}

async function payloadSizes(link: Link, partition: Partition, { hot, next }: { hot: number; next: number }): Promise<number[]> {
  const sizes: number[] = [];
  while (hot + sizes.length < next) {
    const page = await readHotPage(link, partition, { from: hot + sizes.length, limit: segmentRecordsMax });
    if (page.records.length === 0) break;
    for (const { payloadBytes } of page.records) sizes.push(payloadBytes.length);
  }
  return sizes;
}

async function readSpan(link: Link, partition: Partition, { first, next }: Span, signal: AbortSignal): Promise<TopicRecord[]> {
  const records: TopicRecord[] = [];
  while (first + records.length < next) {
    const from = first + records.length;
    const page = await readHotPage(link, partition, { from, limit: next - from, signal });
    if (page.records.length === 0) throw new ReplayFault('nats_timeout', 'hot records are not there yet');
    for (const one of page.records) records.push(one);
  }
  return records;
}

async function recordSegment(
  link: Link,
  { topic, partition }: Partition,
  intent: Intent,
  stored: StoredSegment,
): Promise<boolean> {
  return await changeManifest(link, topic, partition, (manifest) => {
    const after = record(manifest, intent, stored);
    return { manifest: after, answer: after !== null || isRecorded(manifest, intent) };
  });
}

async function purge(link: Link, partition: Partition, before: number): Promise<number> {
  const { topic, stream } = partition;
  const bounds = await readBounds(link, partition);
  if (before <= bounds.hot) return 0;
  if (before > bounds.next) throw new TopicError('out_of_range', 'a purge beyond the end of the log');
  if (topic.cold !== null) {
    const manifest = await readManifest(link, topic, partition.partition);
    if (before > coldThrough(manifest, bounds.hot)) throw new ReplayFault('unexpected', 'a purge of what is not cold');
  }
  // Everything below this sequence. It is 2 at least: older servers took 1 for everything.
  const answer = await callApi<{ purged: number }>(link, `STREAM.PURGE.${stream}`, { seq: before + 1 });
  if (!answer.ok) throw faultOfApi(answer.error, 'unexpected');
  return answer.value.purged;
}

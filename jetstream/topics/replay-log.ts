import type { Span } from '../../core/group.ts';
import type { LogContent } from '../../core/lanes.ts';
import type { ColdKind } from '../../core/topic.ts';
import { TopicError } from '../../core/topic-errors.ts';
import { timeNanos } from '../../core/time.ts';
import { withFaults, type Link } from '../link.ts';
import type { PulledRecord } from '../source.ts';
import { readManifest } from './manifest-store.ts';
import { readBounds, recordSubject, type Partition } from './partition-stream.ts';
import { offsetAt, readLog, type ColdReader, type Page } from './read.ts';
import { openTopic, type OpenedTopic } from './registry.ts';
import { assertTopicServer } from './server.ts';
import { hashOfKey, storedHeaders, type TopicRecord } from './wire.ts';

/** What a replay asks of a topic: each partition's log, cold and hot as one. Every call throws TopicError or ReplayFault. */
export interface TopicReader {
  /** Throws `topic_missing`. */
  open(name: string): Promise<OpenedTopic>;
  /** Throws `topic_broken`. */
  content(partition: Partition): Promise<LogContent & { readonly bytes: number }>;
  /** First offset appended at or after the time; the end of the log when there is none. */
  offsetAt(partition: Partition, timeNanos: bigint): Promise<number>;
  /** From an offset on: records, or the gap that is there instead. */
  read(partition: Partition, request: LogRequest, signal: AbortSignal): Promise<LogPart>;
}

export interface LogRequest {
  readonly from: number;
  readonly limit: number;
  /** Of payload; a single larger record comes alone. */
  readonly bytesMax: number;
}

export interface LogPart {
  /** Offsets without holes. */
  readonly records: readonly PulledRecord[];
  /** What the log no longer holds from the offset on; null: nothing is missing there. With no records then. */
  readonly gone: Span | null;
  /** End of the log as it was seen. */
  readonly next: number;
}

/** `readers`: throws `cold_unconfigured`. */
export function createTopicReader(link: Link, readers: (kind: ColdKind) => ColdReader): TopicReader {
  const coldOf = ({ topic }: Partition) => (topic.cold === null ? null : readers(topic.cold));
  const asked = <T>(act: () => Promise<T>) => withFaults(undefined, act);
  return {
    open: (name) =>
      asked(() => {
        assertTopicServer(link);
        return openTopic(link, name);
      }),
    content: (partition) => asked(() => readContent(link, partition)),
    offsetAt: (partition, nanos) => asked(() => offsetAt(link, partition, nanos, coldOf(partition))),
    read: (partition, request, signal) =>
      withFaults(signal, () => readPart(link, partition, { request, cold: coldOf(partition), signal })),
  };
}

/** The bounds first: what a sweep takes away after them is in the manifest that is read then. */
async function readContent(link: Link, partition: Partition): Promise<LogContent & { readonly bytes: number }> {
  const { hot, next, bytes } = await readBounds(link, partition);
  if (partition.topic.cold === null) return { cold: [], hot, next, bytes };
  const { segments } = await readManifest(link, partition.topic, partition.partition);
  const coldBytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
  return { cold: segments.map(({ first, next: end }) => ({ first, next: end })), hot, next, bytes: bytes + coldBytes };
}

async function readPart(
  link: Link,
  partition: Partition,
  { request, cold, signal }: { readonly request: LogRequest; readonly cold: ColdReader | null; readonly signal: AbortSignal },
): Promise<LogPart> {
  const { from, limit, bytesMax } = request;
  try {
    const page = await readLog(link, partition, { from, limit, bytesMax, signal }, cold);
    const records = withinBytes(page, bytesMax).map((record) => replayRecord(partition, record));
    return { records, gone: null, next: page.nextOffset + page.lag };
  } catch (error) {
    const isGap = error instanceof TopicError && (error.code === 'truncated' || error.code === 'gap');
    if (!isGap || error.nextReadable === undefined || error.nextReadable <= from) throw error;
    const { next } = await readBounds(link, partition);
    return { records: [], gone: { first: from, next: error.nextReadable }, next };
  }
}

function withinBytes({ records }: Page, bytesMax: number): readonly TopicRecord[] {
  let bytes = 0;
  const end = records.findIndex(({ payloadBytes }, i) => (bytes += payloadBytes.length) > bytesMax && i > 0);
  return end < 0 ? records : records.slice(0, end);
}

/** The same whether it was read hot or cold. */
function replayRecord({ topic, partition, stream, incarnation }: Partition, record: TopicRecord): PulledRecord {
  const { offset, deduplicationKey } = record;
  return {
    stream,
    incarnation,
    sequence: BigInt(offset + 1),
    position: offset + 1,
    consumerSequence: 0,
    subject: recordSubject(topic.id, partition, hashOfKey(deduplicationKey)),
    timeNanos: timeNanos(record.appendedAt),
    messageId: deduplicationKey,
    headers: storedHeaders(record),
    payload: record.payloadBytes,
    redelivered: false,
  };
}

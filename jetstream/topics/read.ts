import { pageRecordsMax } from '../../core/topic.ts';
import { TopicError, truncated } from '../../core/topic-errors.ts';
import { shown } from '../../core/problems.ts';
import { sequenceAt } from '../range.ts';
import type { Link } from '../link.ts';
import { describe } from '../stream.ts';
import { directGetBatch } from './direct-batch.ts';
import { readBounds, type Partition } from './partition-stream.ts';
import { readTopicRecord, type TopicRecord } from './wire.ts';

export interface Page {
  /** Offsets without holes, from the one that was asked for. */
  readonly records: readonly TopicRecord[];
  /** Where to read on. */
  readonly nextOffset: number;
  /** Records from there to the end of the log. */
  readonly lag: number;
}

export interface PageRequest {
  readonly from: number;
  readonly limit: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * One page, of at most `pageRecordsMax` records. Short only at the end of the log, or before a gap. Throws `truncated`, `gap` and
 * `out_of_range`: records that are gone are never passed over in silence.
 */
export async function readPage(link: Link, partition: Partition, { from, limit, signal }: PageRequest): Promise<Page> {
  checkPage(from, limit);
  const wanted = Math.min(limit, pageRecordsMax);
  const records: TopicRecord[] = [];
  for (;;) {
    const at = from + records.length;
    const more: TopicRecord[] = [];
    const body = { seq: at + 1, batch: wanted - records.length };
    const end = await directGetBatch(link, partition.stream, body, (message) => more.push(readTopicRecord(message)), signal);
    const whole = withoutHoles(more, at);
    for (const record of whole) records.push(record);
    if (whole.length < more.length || !end.found) {
      if (records.length === 0) return await explain(link, partition, from);
      return await shortPage(link, partition, records, from);
    }
    // The server may end before the batch is full, when the records are large.
    if (records.length === wanted || end.pending === 0) {
      return { records, nextOffset: from + records.length, lag: end.pending };
    }
  }
}

function checkPage(from: number, limit: number): void {
  if (!Number.isSafeInteger(from) || from < 0) {
    throw new TopicError('setting_invalid', `the offset is ${shown(from)}; expected a whole number of at least 0`);
  }
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw new TopicError('setting_invalid', `the limit is ${shown(limit)}; expected a whole number of at least 1`);
  }
}

/** Up to the first hole. */
function withoutHoles(records: readonly TopicRecord[], from: number): readonly TopicRecord[] {
  const hole = records.findIndex((record, i) => record.offset !== from + i);
  return hole < 0 ? records : records.slice(0, hole);
}

async function shortPage(link: Link, partition: Partition, records: readonly TopicRecord[], from: number): Promise<Page> {
  const nextOffset = from + records.length;
  const { next } = await readBounds(link, partition);
  return { records, nextOffset, lag: Math.max(0, next - nextOffset) };
}

/** Nothing at this offset: the end of the log, or why not. */
async function explain(link: Link, partition: Partition, from: number): Promise<Page> {
  const { oldest, next } = await readBounds(link, partition);
  if (from < oldest) throw truncated(oldest);
  if (from === next) return { records: [], nextOffset: next, lag: 0 };
  if (from > next) throw new TopicError('out_of_range', `the log ends at ${next}`);
  const after = await firstFrom(link, partition, from);
  // It came while we looked, or a replica had not heard of it yet: the next call reads it.
  if (after === null || after === from) return { records: [], nextOffset: from, lag: next - from };
  throw new TopicError('gap', `the next readable offset is ${after}`, { nextReadable: after });
}

async function firstFrom(link: Link, partition: Partition, from: number): Promise<number | null> {
  let first: number | null = null;
  await directGetBatch(link, partition.stream, { seq: from + 1, batch: 1 }, (message) => {
    first = readTopicRecord(message).offset;
  });
  return first;
}

/** First offset that was appended at or after the time; the end of the log when there is none. */
export async function offsetAt(link: Link, partition: Partition, timeNanos: bigint): Promise<number> {
  return (await sequenceAt(link, await describe(link, partition.stream), timeNanos)) - 1;
}

/** When the record at this offset was appended, milliseconds since the epoch; null when it is not there. */
export async function appendedAtMs(link: Link, partition: Partition, offset: number): Promise<number | null> {
  let at: number | null = null;
  await directGetBatch(link, partition.stream, { seq: offset + 1, batch: 1 }, (message) => {
    const record = readTopicRecord(message);
    if (record.offset === offset) at = Date.parse(record.appendedAt);
  });
  return at;
}

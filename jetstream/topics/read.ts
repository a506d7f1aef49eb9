import { findSegment, type SegmentRef } from '../../core/manifest.ts';
import { pageRecordsMax } from '../../core/topic.ts';
import { TopicError, truncated } from '../../core/topic-errors.ts';
import { shown } from '../../core/problems.ts';
import { sequenceAt } from '../range.ts';
import { formatTime } from '../../core/time.ts';
import type { Link } from '../link.ts';
import { describe } from '../stream.ts';
import { directGetBatch } from './direct-batch.ts';
import { readManifest } from './manifest-store.ts';
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
  /** Of payload: the page ends with the record that reaches it. Default: no limit. */
  readonly bytesMax?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Cold records of a partition by their segment. */
export interface ColdReader {
  /** null: the object is gone. Throws ReplayFault (`cold_corrupt`, `cold_unavailable` ...). */
  read(
    segment: SegmentRef,
    place: { topic: string; partition: number },
    signal?: AbortSignal,
  ): Promise<readonly TopicRecord[] | null>;
}

/**
 * One page, of at most `pageRecordsMax` records, cold and hot as one log. Short only at the end of the log, or before a gap.
 * Throws `truncated`, `gap` and `out_of_range`: records that are gone are never passed over in silence.
 */
export async function readPage(link: Link, partition: Partition, request: PageRequest, cold: ColdReader | null): Promise<Page> {
  checkPage(request.from, request.limit);
  return await readLog(link, partition, { ...request, limit: Math.min(request.limit, pageRecordsMax) }, cold);
}

/** The same, with pages of any size. */
export async function readLog(link: Link, partition: Partition, request: PageRequest, cold: ColdReader | null): Promise<Page> {
  const { from } = request;
  const { hot } = partition.topic.cold === null ? { hot: 0 } : await readBounds(link, partition);
  if (from >= hot) {
    // A sweep may take records away while they are read: then they are cold.
    const page = await readHotPage(link, partition, request).catch((error: unknown) => {
      if (partition.topic.cold === null || !(error instanceof TopicError) || error.code !== 'truncated') throw error;
      return null;
    });
    if (page !== null) return page;
  }
  return await readColdPage(link, partition, request, cold);
}

async function readColdPage(link: Link, partition: Partition, request: PageRequest, cold: ColdReader | null): Promise<Page> {
  const { from, limit, bytesMax = Infinity, signal } = request;
  // In this order: what a sweep takes away after the look at the bounds is in the manifest that is read then.
  const { hot, next } = await readBounds(link, partition);
  const manifest = await readManifest(link, partition.topic, partition.partition);
  const records: TopicRecord[] = [];
  let bytes = 0;
  while (records.length < limit && bytes < bytesMax) {
    const at = from + records.length;
    if (at >= hot) break;
    const found = findSegment(manifest, at);
    const place = { topic: partition.topic.id, partition: partition.partition };
    const segment = 'name' in found ? await cold?.read(found, place, signal) : null;
    if ('name' in found && segment != null) {
      for (const record of segment.slice(at - found.first, at - found.first + limit - records.length)) {
        records.push(record);
        bytes += record.payloadBytes.length;
        if (bytes >= bytesMax) break;
      }
      continue;
    }
    if (records.length > 0) break;
    const nextReadable = 'name' in found ? found.next : (found.nextReadable ?? hot);
    throw at < (manifest.segments[0]?.first ?? hot) ? truncated(nextReadable) : gapBefore(nextReadable);
  }
  const nextOffset = from + records.length;
  if (records.length === limit || bytes >= bytesMax || nextOffset < hot) return { records, nextOffset, lag: next - nextOffset };
  if (nextOffset === next) return { records, nextOffset, lag: 0 };
  const left = { from: nextOffset, limit: limit - records.length, bytesMax: bytesMax - bytes, signal };
  const rest = await readLog(link, partition, left, cold);
  return { ...rest, records: [...records, ...rest.records] };
}

function gapBefore(nextReadable: number): TopicError {
  return new TopicError('gap', `the next readable offset is ${nextReadable}`, { nextReadable });
}

/** The hot window alone, in pages of any size. Throws as `readPage` does. */
export async function readHotPage(link: Link, partition: Partition, request: PageRequest): Promise<Page> {
  const { from, limit, bytesMax = Infinity, signal } = request;
  const records: TopicRecord[] = [];
  let bytes = 0;
  for (;;) {
    const at = from + records.length;
    const more: TopicRecord[] = [];
    const body = { seq: at + 1, batch: limit - records.length };
    const end = await directGetBatch(link, partition.stream, body, (message) => more.push(readTopicRecord(message)), signal);
    const whole = withoutHoles(more, at);
    for (const record of whole) {
      records.push(record);
      bytes += record.payloadBytes.length;
    }
    if (whole.length < more.length || !end.found) {
      if (records.length === 0) return await explain(link, partition, from);
      return await shortPage(link, partition, records, from);
    }
    // The server may end before the batch is full, when the records are large.
    if (records.length === limit || bytes >= bytesMax || end.pending === 0) {
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
  throw gapBefore(after);
}

async function firstFrom(link: Link, partition: Partition, from: number): Promise<number | null> {
  let first: number | null = null;
  await directGetBatch(link, partition.stream, { seq: from + 1, batch: 1 }, (message) => {
    first = readTopicRecord(message).offset;
  });
  return first;
}

/** First offset that was appended at or after the time; the end of the log when there is none. */
export async function offsetAt(link: Link, partition: Partition, timeNanos: bigint, cold: ColdReader | null): Promise<number> {
  const time = formatTime(timeNanos);
  if (partition.topic.cold !== null) {
    const { segments } = await readManifest(link, partition.topic, partition.partition);
    const segment = segments.find(({ lastTime }) => lastTime >= time);
    const place = { topic: partition.topic.id, partition: partition.partition };
    if (segment !== undefined) {
      const records = (await cold?.read(segment, place)) ?? [];
      return records.find(({ appendedAt }) => appendedAt >= time)?.offset ?? segment.first;
    }
  }
  return await hotOffsetAt(link, partition, timeNanos);
}

/** The same of the hot window alone. */
export async function hotOffsetAt(link: Link, partition: Partition, timeNanos: bigint): Promise<number> {
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

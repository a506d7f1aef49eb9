import { createHash } from 'node:crypto';
import { ReplayFault } from '../core/errors.ts';
import type { Span } from '../core/group.ts';
import type { ColdObject } from '../core/reconcile.ts';
import { hashVersion } from '../core/partition.ts';

/**
 * A segment is a line of JSON that says what it is, then one line of JSON per record: `jq` and DuckDB read it without us. The same
 * records always make the same bytes, so that a retry can be told from a conflict.
 */
export interface SegmentHeader {
  readonly format: 1;
  /** Id, not name. */
  readonly topic: string;
  readonly partition: number;
  readonly hash_version: typeof hashVersion;
  readonly first: number;
  readonly last: number;
  readonly count: number;
  /** RFC 3339, nine decimals, `Z`. */
  readonly first_time: string;
  readonly last_time: string;
  readonly body_bytes: number;
  /** Of the body, hexadecimal. */
  readonly sha256: string;
}

export interface SegmentRecord {
  readonly offset: number;
  readonly appendedAt: string;
  readonly partitionKey: string;
  readonly deduplicationKey: string;
  /** A JSON text. */
  readonly payloadBytes: Uint8Array;
}

export interface SegmentPlace extends Span {
  readonly topic: string;
  readonly partition: number;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const payloadField = Buffer.from(',"payload":');
const base64Field = Buffer.from(',"payload_base64":"');
const headerBytesMax = 4_096;

/** `<topic>/<partition>/<first>-<last>-<epoch>-<upload>.jsonl`: numbers have zeros in front, so that names sort as offsets do. */
export function segmentName(place: SegmentPlace, epoch: number, upload: string): string {
  const padded = (value: number, digits: number) => String(value).padStart(digits, '0');
  const span = `${padded(place.first, 16)}-${padded(place.next - 1, 16)}`;
  return `${place.topic}/${padded(place.partition, 4)}/${span}-${padded(epoch, 8)}-${upload}.jsonl`;
}

/** null: the name of something else. */
export function parseSegmentName(name: string): ColdObject | null {
  const [, first, last, epoch] = /\/(\d{16})-(\d{16})-(\d{8})-\w+\.jsonl$/.exec(name) ?? [];
  if (first === undefined) return null;
  return { name, first: Number(first), next: Number(last) + 1, epoch: Number(epoch) };
}

/** Records are those of the whole span, in order. Throws RangeError otherwise. */
export function encodeSegment(place: SegmentPlace, records: readonly SegmentRecord[]): Buffer {
  if (records.length === 0 || records.length !== place.next - place.first) throw new RangeError('not the records of the span');
  const lines = records.map((record, i) => {
    if (record.offset !== place.first + i) throw new RangeError('not the records of the span');
    return recordLine(record);
  });
  const body = Buffer.concat(lines);
  const header: SegmentHeader = {
    format: 1,
    topic: place.topic,
    partition: place.partition,
    hash_version: hashVersion,
    first: place.first,
    last: place.next - 1,
    count: records.length,
    first_time: records[0]!.appendedAt,
    last_time: records.at(-1)!.appendedAt,
    body_bytes: body.length,
    sha256: createHash('sha256').update(body).digest('hex'),
  };
  return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), body]);
}

function recordLine({ offset, appendedAt, partitionKey, deduplicationKey, payloadBytes }: SegmentRecord): Buffer {
  const keys = Buffer.from(JSON.stringify({ offset, appendedAt, partitionKey, deduplicationKey }).slice(0, -1));
  const bytes = Buffer.from(payloadBytes.buffer, payloadBytes.byteOffset, payloadBytes.byteLength);
  // A payload with line breaks would end the line, and must come back byte for byte.
  const isOneLine = !bytes.includes(lineFeed) && !bytes.includes(carriageReturn);
  return isOneLine
    ? Buffer.concat([keys, payloadField, bytes, Buffer.from('}\n')])
    : Buffer.concat([keys, base64Field, Buffer.from(bytes.toString('base64')), Buffer.from('"}\n')]);
}

export interface Segment {
  readonly header: SegmentHeader;
  readonly records: readonly SegmentRecord[];
}

/** Throws `cold_corrupt` when it is damaged, or is not the segment of this place. */
export function decodeSegment(place: SegmentPlace, bytes: Uint8Array): Segment {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerEnd = buffer.subarray(0, headerBytesMax).indexOf(lineFeed);
  const header = headerEnd < 0 ? null : parseHeader(buffer.toString('utf8', 0, headerEnd));
  if (header === null) throw corrupt('no header');
  const { topic, partition, first, last, count, body_bytes, sha256 } = header;
  if (topic !== place.topic || partition !== place.partition || first !== place.first || last !== place.next - 1) {
    throw corrupt('another segment under this name');
  }
  const body = buffer.subarray(headerEnd + 1);
  if (body.length !== body_bytes || createHash('sha256').update(body).digest('hex') !== sha256) throw corrupt('checksum');
  const records = readLines(body);
  if (records.length !== count || records.some(({ offset }, i) => offset !== first + i)) throw corrupt('offsets');
  return { header, records };
}

function parseHeader(line: string): SegmentHeader | null {
  try {
    const header = JSON.parse(line) as SegmentHeader;
    return header.format === 1 && header.hash_version === hashVersion ? header : null;
  } catch {
    return null;
  }
}

function readLines(body: Buffer): SegmentRecord[] {
  const records: SegmentRecord[] = [];
  for (let start = 0; start < body.length;) {
    const end = body.indexOf(lineFeed, start);
    if (end < 0) throw corrupt('its last line has no end');
    records.push(readRecord(body.subarray(start, end)));
    start = end + 1;
  }
  return records;
}

/** The first `,"payload` outside a string is the field's: within strings a quote has a backslash in front. */
function readRecord(line: Buffer): SegmentRecord {
  const plain = line.indexOf(payloadField);
  const encoded = line.indexOf(base64Field);
  const at = plain < 0 || (encoded >= 0 && encoded < plain) ? encoded : plain;
  if (at < 0) throw corrupt('a record without payload');
  const keys = JSON.parse(`${line.toString('utf8', 0, at)}}`) as Omit<SegmentRecord, 'payloadBytes'>;
  const payloadBytes =
    at === plain
      ? line.subarray(at + payloadField.length, line.length - '}'.length)
      : Buffer.from(line.toString('latin1', at + base64Field.length, line.length - '"}'.length), 'base64');
  return { ...keys, payloadBytes };
}

function corrupt(detail: string): ReplayFault {
  return new ReplayFault('cold_corrupt', detail);
}

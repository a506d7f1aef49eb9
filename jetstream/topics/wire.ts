import { createHash } from 'node:crypto';
import { formatTime, timeNanos } from '../../core/time.ts';
import type { DirectMessage } from './direct-batch.ts';

/** How a record of a topic is kept as a message: its payload is the body, its keys are headers, its offset is the sequence. */

const partitionKeyHeader = 'Topic-Partition-Key';
const deduplicationKeyHeader = 'Topic-Deduplication-Key';
/** Characters of base64url: 128 bits. */
const hashCharacters = 22;

/** Last token of the subject: one subject per deduplication key, so that the server itself knows a key that is hot. */
export function hashOfKey(deduplicationKey: string): string {
  // As JSON: two keys that differ only in halves of surrogate pairs are the same bytes of UTF-8.
  return createHash('sha256').update(JSON.stringify(deduplicationKey)).digest('base64url').slice(0, hashCharacters);
}

export function keyHeaders(partitionKey: string, deduplicationKey: string): string {
  return [
    `${partitionKeyHeader}: ${headerText(partitionKey)}\r\n`,
    `${deduplicationKeyHeader}: ${headerText(deduplicationKey)}\r\n`,
  ].join('');
}

/** The headers by which a record is stored, as a replay hands them on. */
export function storedHeaders(record: { readonly partitionKey: string; readonly deduplicationKey: string }) {
  return new Map([
    [partitionKeyHeader, [headerText(record.partitionKey)]],
    [deduplicationKeyHeader, [headerText(record.deduplicationKey)]],
  ]);
}

/** As it is where that is safe, else as a JSON string: clients trim values and break lines. */
function headerText(key: string): string {
  return /^[!#-~](?:[ -~]*[!-~])?$/.test(key) ? key : JSON.stringify(key);
}

function textOf(header: string): string {
  return header.startsWith('"') ? (JSON.parse(header) as string) : header;
}

/** One record of a topic. */
export interface TopicRecord {
  readonly offset: number;
  readonly partitionKey: string;
  readonly deduplicationKey: string;
  /** Parsed each time it is asked for. */
  readonly payload: unknown;
  /** Exactly as it was pushed: UTF-8 of a JSON text. */
  readonly payloadBytes: Uint8Array;
  /** RFC 3339, nine decimals, `Z`: when the server took it. */
  readonly appendedAt: string;
}

export function readTopicRecord({ headerBlock, body }: DirectMessage): TopicRecord {
  const sequence = Number.parseInt(headerValue(headerBlock.toString('latin1'), 'Nats-Sequence'), 10);
  return new StoredRecord(sequence - 1, headerBlock, body);
}

/** Keys and time are read when they are asked for: most of the cost of a record, and many readers need none of them. */
class StoredRecord implements TopicRecord {
  readonly offset: number;
  readonly payloadBytes: Uint8Array;
  readonly #headerBlock: Buffer;

  constructor(offset: number, headerBlock: Buffer, body: Uint8Array) {
    this.offset = offset;
    this.payloadBytes = body;
    this.#headerBlock = headerBlock;
  }

  get partitionKey(): string {
    return textOf(headerValue(this.#headerBlock.toString('utf8'), partitionKeyHeader));
  }

  get deduplicationKey(): string {
    return textOf(headerValue(this.#headerBlock.toString('utf8'), deduplicationKeyHeader));
  }

  get payload(): unknown {
    return JSON.parse(Buffer.from(this.payloadBytes).toString('utf8'));
  }

  get appendedAt(): string {
    return formatTime(timeNanos(headerValue(this.#headerBlock.toString('utf8'), 'Nats-Time-Stamp')));
  }
}

/** The last of that name: the server appends its own. */
function headerValue(headers: string, name: string): string {
  const start = headers.lastIndexOf(`\r\n${name}: `);
  if (start < 0) return '';
  const at = start + name.length + 4;
  return headers.slice(at, headers.indexOf('\r\n', at));
}

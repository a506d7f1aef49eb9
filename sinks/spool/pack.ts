import { setImmediate } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { decodeRuns, encodeRuns } from '../../core/receipt.ts';
import type { ReplayRecord } from '../../core/record.ts';
import type { KeyNote, PackCipher } from './keys.ts';

/**
 * A pack: one file, the records of one batch and one priority.
 *
 *   "DRSPOOL1"            8 bytes
 *   length, CRC-32        4 bytes each, big-endian, of the head
 *   head                  JSON: priority, key, whose records, and how long each entry is
 *   entries               one after the other
 *
 * An entry is the record's envelope and body, encrypted under the record's identity; in a spool without encryption its CRC-32
 * stands before it. The head names streams and sequences, nothing else of a record.
 */
const MAGIC = Buffer.from('DRSPOOL1');
export const PREAMBLE_BYTES = 16;
/** A batch of 10,000 scattered records has a head of 200 KiB. */
const HEAD_BYTES_MAX = 16_777_216;
const CRC_BYTES = 4;

export type SequenceRuns = readonly [stream: string, incarnation: string, runs: readonly number[]];

export interface PackHead {
  readonly priority: number;
  readonly key: KeyNote | null;
  readonly sequences: readonly SequenceRuns[];
  /** Bytes of each entry. */
  readonly lengths: readonly number[];
}

/** A record that is to be stored. */
export interface Entry {
  readonly record: ReplayRecord;
  readonly meta: Buffer;
  /** What it takes once it is stored, whatever the key. */
  readonly bytes: number;
}

const SEALED_BYTES_MORE = 16;
const META_BYTES = 4;

export function entryOf(record: ReplayRecord, isEncrypted: boolean): Entry {
  const meta = metaOf(record);
  const bytes = META_BYTES + meta.length + record.payload.length + (isEncrypted ? SEALED_BYTES_MORE : CRC_BYTES);
  return { record, meta, bytes };
}

export interface EncodedPack {
  readonly bytes: Buffer;
  readonly head: PackHead;
}

/** Records worked on before others of this process have a turn: beside the spool, a fan-out waits for answers of a database. */
export const TURN_RECORDS = 250;

/** Records of one stream and incarnation stand together, their sequences rising. */
export async function encodePack(given: readonly Entry[], priority: number, cipher: PackCipher | null): Promise<EncodedPack> {
  const groups = groupsOf(given);
  const entries: Buffer[] = [];
  for (const { record, meta } of groups.flat()) {
    const length = Buffer.alloc(META_BYTES);
    length.writeUInt32BE(meta.length);
    const plain = [length, meta, record.payload];
    // One piece: each call of a cipher costs more than the copy.
    entries.push(
      cipher === null ? withCrc(plain) : cipher.seal(entries.length, identityOf(record, priority), Buffer.concat(plain)),
    );
    if (entries.length % TURN_RECORDS === 0) await setImmediate();
  }
  const head: PackHead = {
    priority,
    key: cipher?.note ?? null,
    sequences: groups.map(sequencesOf),
    lengths: entries.map(({ length }) => length),
  };
  return { bytes: Buffer.concat([encodeHead(head), ...entries]), head };
}

function encodeHead(head: PackHead): Buffer {
  const text = Buffer.from(JSON.stringify(head));
  const preamble = Buffer.alloc(PREAMBLE_BYTES);
  MAGIC.copy(preamble);
  preamble.writeUInt32BE(text.length, MAGIC.length);
  preamble.writeUInt32BE(crc32(text), MAGIC.length + 4);
  return Buffer.concat([preamble, text]);
}

/** A pack without entries only holds its number. */
export function encodeMark(): Buffer {
  return encodeHead({ priority: 0, key: null, sequences: [], lengths: [] });
}

/** null: these are not the first bytes of a pack. */
export function headBytes(preamble: Buffer): number | null {
  if (preamble.length < PREAMBLE_BYTES || !preamble.subarray(0, MAGIC.length).equals(MAGIC)) return null;
  const length = preamble.readUInt32BE(MAGIC.length);
  return length > HEAD_BYTES_MAX ? null : length;
}

/** null when the head is damaged. */
export function decodeHead(preamble: Buffer, text: Buffer): PackHead | null {
  if (crc32(text) !== preamble.readUInt32BE(MAGIC.length + 4)) return null;
  return JSON.parse(text.toString()) as PackHead;
}

export interface Identity {
  readonly stream: string;
  readonly incarnation: string;
  readonly sequence: number;
}

/** Whose entries they are, in the order of the entries. */
export function* identitiesOf({ sequences }: PackHead): Generator<Identity> {
  for (const [stream, incarnation, runs] of sequences) {
    for (const sequence of decodeRuns(runs)) yield { stream, incarnation, sequence };
  }
}

export function countOf({ lengths }: PackHead): number {
  return lengths.length;
}

export function entryBytesOf({ lengths }: PackHead): number {
  return lengths.reduce((sum, length) => sum + length, 0);
}

/** null when the entry is damaged. `cipher` null: of a spool without encryption. */
export function decodeEntry(
  stored: Buffer,
  { identity, index, head }: { readonly identity: Identity; readonly index: number; readonly head: PackHead },
  cipher: PackCipher | null,
): ReplayRecord | null {
  const plain = cipher === null ? withoutCrc(stored) : cipher.open(index, identityOf(identity, head.priority), stored);
  if (plain === null || plain.length < META_BYTES) return null;
  const metaEnd = META_BYTES + plain.readUInt32BE(0);
  const meta = JSON.parse(plain.toString('utf8', META_BYTES, metaEnd)) as Meta;
  const [subject, time, messageId, headers] = meta;
  return {
    stream: identity.stream,
    incarnation: identity.incarnation,
    sequence: BigInt(identity.sequence),
    subject,
    timeNanos: BigInt(time),
    ...(messageId === null ? {} : { messageId }),
    headers: new Map(headers),
    payload: plain.subarray(metaEnd),
    redelivered: false,
  };
}

type Meta = readonly [
  subject: string,
  timeNanos: string,
  messageId: string | null,
  headers: readonly (readonly [name: string, values: readonly string[]])[],
];

function metaOf({ subject, timeNanos, messageId, headers }: ReplayRecord): Buffer {
  return Buffer.from(JSON.stringify([subject, timeNanos.toString(), messageId ?? null, [...headers]] satisfies Meta));
}

function identityOf(
  {
    stream,
    incarnation,
    sequence,
  }: { readonly stream: string; readonly incarnation: string; readonly sequence: bigint | number },
  priority: number,
): Buffer {
  return Buffer.from(JSON.stringify([1, stream, incarnation, String(sequence), priority]));
}

function withCrc(plain: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(CRC_BYTES), ...plain]);
  bytes.writeUInt32BE(crc32(bytes.subarray(CRC_BYTES)));
  return bytes;
}

function withoutCrc(stored: Buffer): Buffer | null {
  if (stored.length < CRC_BYTES) return null;
  const plain = stored.subarray(CRC_BYTES);
  return crc32(plain) === stored.readUInt32BE(0) ? plain : null;
}

function groupsOf(entries: readonly Entry[]): Entry[][] {
  const groups = new Map<string, Entry[]>();
  for (const entry of entries) {
    const name = JSON.stringify([entry.record.stream, entry.record.incarnation]);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [entry]);
    else group.push(entry);
  }
  return [...groups.values()];
}

function sequencesOf(group: readonly Entry[]): SequenceRuns {
  const { stream, incarnation } = group[0]!.record;
  return [stream, incarnation, encodeRuns(group.map(({ record }) => Number(record.sequence)))];
}

/** One entry of a pack as a pack of its own, still sealed as it was: to be looked at. */
export function encodePackOf(head: PackHead, { stream, incarnation, sequence }: Identity, stored: Buffer): Buffer {
  const sequences: SequenceRuns[] = [[stream, incarnation, encodeRuns([sequence])]];
  return Buffer.concat([encodeHead({ ...head, sequences, lengths: [stored.length] }), stored]);
}

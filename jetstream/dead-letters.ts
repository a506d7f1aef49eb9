import { setTimeout as sleep } from 'node:timers/promises';
import type { Msg } from 'nats';
import { ReplayFault } from '../core/errors.ts';
import type { ReplayRecord } from '../core/record.ts';
import { formatTime } from '../core/time.ts';
import { callApiOrThrow } from './api.ts';
import { apiCode, faultOfApi, faultOfClient, isNoResponders, type ApiError } from './faults.ts';
import { headerLines } from './headers.ts';
import { request, type Link } from './link.ts';
import type { DeadLetter } from './source.ts';
import { readStored, type StoredMessage } from './stored-message.ts';
import { checkIncarnation, type StreamInfo } from './stream.ts';

/** The server's own limit for the header block of a stored message. */
const headerBlockBytesMax = 65_535;
/** A stream that is just being recovered has no listener yet. */
const unboundRetries = 3;
const unboundRetryMs = 250;
const nanosPerMilli = 1_000_000;
/** No stream of anybody's: so that nothing is ever stored. */
const noStream = 'durable-replay-asks-whether-a-stream-listens';

const firstLine = 'NATS/1.0\r\n';
const lineEnd = '\r\n';
const empty = Buffer.alloc(0);

type LetterBody = 'kept' | 'lost' | 'too_large';

/** One form of a letter that may be tried. */
interface LetterForm {
  readonly body: LetterBody;
  readonly headerBlock: Buffer;
  readonly payload: Buffer;
}

interface PubAck {
  readonly stream?: string;
  readonly duplicate?: boolean;
  readonly error?: ApiError;
}

/** See Source.publishDeadLetter. Throws `stream_recreated` or `stream_missing` when the source is no longer the plan's. */
export async function publishDeadLetter(
  link: Link,
  letter: DeadLetter,
  signal: AbortSignal,
): Promise<{ duplicate: boolean; body: LetterBody }> {
  const original = letter.record === undefined ? await readOriginal(link, letter, signal) : asStored(letter.record);
  const payloadMax = link.nc.info?.max_payload ?? Number.POSITIVE_INFINITY;
  for (const form of letterForms(letter, original)) {
    if (form.headerBlock.length > headerBlockBytesMax || form.headerBlock.length + form.payload.length > payloadMax) continue;
    const ack = await publish(link, letter.subject, form, signal);
    if (ack.error === undefined) return { duplicate: ack.duplicate === true, body: form.body };
    if (!isTooLarge(ack.error)) throw refusedFault(ack.error);
  }
  throw new ReplayFault('dead_letter_refused', 'even without body and original headers the message is too large for it');
}

/** null when the message is gone by now, or another one. */
async function readOriginal(link: Link, { source, reject }: DeadLetter, signal: AbortSignal): Promise<StoredMessage | null> {
  const [stored] = await Promise.all([
    readStored(link, source.stream, reject.sequence, signal),
    checkIncarnation(link, source.stream, source.incarnation, signal),
  ]);
  return stored !== null && stored.timeNanos === BigInt(reject.time) ? stored : null;
}

function asStored({ sequence, timeNanos, subject, headers, payload }: ReplayRecord): StoredMessage {
  const lines = [...headers].flatMap(([name, values]) => values.map((value) => `${name}: ${value}${lineEnd}`));
  return {
    sequence: Number(sequence),
    timeNanos,
    subject,
    headerBlock: lines.length === 0 ? empty : Buffer.from(firstLine + lines.join('') + lineEnd),
    body: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
  };
}

/** From the whole letter to the barest one; each is tried when the one before is too large. */
function letterForms(letter: DeadLetter, original: StoredMessage | null): LetterForm[] {
  const form = (body: LetterBody, headers: StoredMessage | null, payload: Buffer, extra: [string, string][]): LetterForm => ({
    body,
    headerBlock: letterHeaders(letter, original, headers, extra),
    payload,
  });
  if (original === null) return [form('lost', null, empty, [['Replay-Body', 'lost']])];
  return [
    form('kept', original, original.body, []),
    form('too_large', original, empty, [['Replay-Body', 'too_large']]),
    form('too_large', null, empty, [
      ['Replay-Body', 'too_large'],
      ['Replay-Headers', 'too_large'],
    ]),
  ];
}

function letterHeaders(
  letter: DeadLetter,
  original: StoredMessage | null,
  copied: StoredMessage | null,
  extra: readonly [string, string][],
): Buffer {
  const { source, reject } = letter;
  const own: [string, string | undefined][] = [
    ['Nats-Msg-Id', letter.replayId],
    ['Replay-Schema', '1'],
    ['Replay-Id', letter.replayId],
    ['Replay-Plan', letter.plan],
    ['Replay-Run', letter.run],
    ['Replay-Source-Stream', source.stream],
    ['Replay-Source-Incarnation', source.incarnation],
    ['Replay-Source-Subject', original?.subject],
    ['Replay-Source-Sequence', String(reject.sequence)],
    ['Replay-Source-Time', formatTime(BigInt(reject.time))],
    ['Replay-Reason', reject.code],
    ['Replay-Field', reject.field],
    ['Replay-Attempt', String(letter.attempt)],
    ...extra,
  ];
  const ownLines = own
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${oneLine(value ?? '')}${lineEnd}`);
  return Buffer.concat([
    Buffer.from(firstLine + ownLines.join('')),
    ...(copied === null ? [] : originalLines(copied.headerBlock)),
    Buffer.from(lineEnd),
  ]);
}

/**
 * The lines as stored. Names that would mean something to the server, or pass for ours, are set aside: a copied
 * Nats-Expected-Stream blocks for ever, Nats-Rollup wipes the stream, Nats-TTL expires the letter.
 */
function originalLines(block: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (const { name, line } of headerLines(block)) {
    if (/^(?:nats|replay)-/i.test(name)) lines.push(Buffer.from('Replay-Original-'));
    lines.push(line, Buffer.from(lineEnd));
  }
  return lines;
}

/** Field names come from the destination: none may end the line. */
function oneLine(value: string): string {
  return value.replace(/[\r\n]+/g, ' ');
}

async function publish(link: Link, subject: string, form: LetterForm, signal: AbortSignal): Promise<PubAck> {
  const message = await requestOfStream(link, subject, form.payload, form.headerBlock, signal);
  if (message === null) throw new ReplayFault('dead_letter_unbound');
  const ack = parsePubAck(message);
  if (ack === null) throw new ReplayFault('dead_letter_refused', 'something other than a stream answered on the subject');
  return ack;
}

function parsePubAck(message: Msg): PubAck | null {
  try {
    const ack = JSON.parse(message.string()) as PubAck | null;
    return typeof ack?.stream === 'string' || typeof ack?.error === 'object' ? ack : null;
  } catch {
    return null;
  }
}

/** null when, asked several times, nobody listens to the subject. */
async function requestOfStream(
  link: Link,
  subject: string,
  payload: Buffer,
  headerBlock: Buffer,
  signal?: AbortSignal,
): Promise<Msg | null> {
  for (let attempt = 0; attempt <= unboundRetries; attempt++) {
    try {
      return await request(link, subject, payload, { headerBlock, signal });
    } catch (error) {
      signal?.throwIfAborted();
      if (!isNoResponders(error)) throw faultOfClient(error);
    }
    if (attempt < unboundRetries) {
      await sleep(unboundRetryMs, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
    }
  }
  return null;
}

function isTooLarge(error: ApiError): boolean {
  return error.err_code === apiCode.messageTooLarge || error.err_code === apiCode.headerTooLarge;
}

function refusedFault(error: ApiError): ReplayFault {
  switch (error.err_code) {
    case apiCode.storeFailed:
      return new ReplayFault('dead_letter_refused', 'the dead-letter stream is full');
    case apiCode.streamSealed:
      return new ReplayFault('dead_letter_refused', 'the dead-letter stream is sealed');
    case apiCode.insufficientResources:
    case apiCode.storageResourcesExceeded:
    case apiCode.memoryResourcesExceeded:
    case apiCode.accountResourcesExceeded:
      return new ReplayFault('dead_letter_refused', 'the account or the server has used up its JetStream resources');
    default:
      return faultOfApi(error, 'dead_letter_refused');
  }
}

/**
 * See Source.isBound: a stream that takes the subject refuses a message meant for another stream, and stores nothing. A user
 * who may not publish there, as in a dry run, asks for the stream's name instead.
 */
export async function isBound(link: Link, subject: string): Promise<boolean> {
  const headerBlock = Buffer.from(`${firstLine}Nats-Expected-Stream: ${noStream}${lineEnd}${lineEnd}`);
  try {
    const message = await requestOfStream(link, subject, empty, headerBlock);
    return message !== null && parsePubAck(message) !== null;
  } catch (error) {
    if (error instanceof ReplayFault && error.code === 'nats_denied') return (await streamOf(link, subject)) !== undefined;
    throw error;
  }
}

/** See Source.duplicateWindowMs. */
export async function duplicateWindowMs(link: Link, subject: string): Promise<number | null> {
  try {
    const stream = await streamOf(link, subject);
    if (stream === undefined) return null;
    const info = await callApiOrThrow<StreamInfo>(link, `STREAM.INFO.${stream}`, null, 'unexpected');
    return (info.config.duplicate_window ?? 0) / nanosPerMilli;
  } catch (error) {
    if (error instanceof ReplayFault && error.code === 'nats_denied') return null;
    throw error;
  }
}

async function streamOf(link: Link, subject: string): Promise<string | undefined> {
  const body = { subject };
  const names = await callApiOrThrow<{ streams?: readonly string[] | null }>(link, 'STREAM.NAMES', body, 'unexpected');
  return names.streams?.[0];
}

import type { Msg } from 'nats';

/**
 * What the server sent, byte for byte. The client's own header parser trims values and throws on names it does not like,
 * and its parser of ACK subjects rounds times, so both are done here from the raw bytes.
 */
export interface Envelope {
  readonly subject: Buffer;
  /** Empty when there is none. */
  readonly reply: Buffer;
  /** The header block, from `NATS/1.0` to the blank line, and after it the body. */
  readonly bytes: Buffer;
  /** 0 when the message has no headers. */
  readonly headerBytes: number;
}

/** The fields of the client's message that hold the bytes. They are private there: the version is pinned and a test holds it. */
interface RawMessage {
  readonly _msg: { readonly subject: Uint8Array; readonly reply?: Uint8Array | undefined; readonly hdr: number };
  readonly _rdata: Uint8Array | undefined;
}

const empty = Buffer.alloc(0);

export function openEnvelope(message: Msg): Envelope {
  const raw = message as unknown as RawMessage;
  return {
    subject: asBuffer(raw._msg.subject),
    reply: raw._msg.reply === undefined ? empty : asBuffer(raw._msg.reply),
    bytes: raw._rdata === undefined ? empty : asBuffer(raw._rdata),
    headerBytes: Math.max(0, raw._msg.hdr),
  };
}

export function headerBlockOf(envelope: Envelope): Buffer {
  return envelope.bytes.subarray(0, envelope.headerBytes);
}

export function bodyOf(envelope: Envelope): Buffer {
  return envelope.headerBytes === 0 ? envelope.bytes : envelope.bytes.subarray(envelope.headerBytes);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The numbers in the reply subject of a delivered message. */
export interface DeliveryTokens {
  readonly deliveries: number;
  readonly streamSequence: number;
  readonly consumerSequence: number;
  readonly timeNanos: bigint;
}

const dot = 0x2e;
const zero = 0x30;
const ackPrefix = Buffer.from('$JS.ACK.');
/** `$JS.ACK.<stream>.<consumer>.` and five numbers. */
const shortTokens = 9;
/** `$JS.ACK.<domain>.<account>.<stream>.<consumer>.` and five numbers, and perhaps one token more. */
const longTokensMin = 11;
const longTokensMax = 12;
const nanosDigits = 9;
const nanosPerSecond = 1_000_000_000n;
/** Where the dots of the subject at hand are. One for all, since this runs for each message. */
const dots = new Int32Array(longTokensMax - 1);

/** null when the subject is not that of a delivered message: then the message is one of the server's status messages. */
export function readDeliveryTokens(reply: Buffer): DeliveryTokens | null {
  if (!startsWith(reply, ackPrefix)) return null;
  let count = 0;
  for (let i = 0; i < reply.length; i++) {
    if (reply[i] === dot) dots[count++] = i;
  }
  const tokens = count + 1;
  if (tokens !== shortTokens && (tokens < longTokensMin || tokens > longTokensMax)) return null;
  // The token after this dot is the number of deliveries. Counted from the front: the long form may have a token more at its end.
  const at = tokens === shortTokens ? 3 : 5;
  const deliveries = readNumber(reply, dots[at]! + 1, dots[at + 1]!);
  const streamSequence = readNumber(reply, dots[at + 1]! + 1, dots[at + 2]!);
  const consumerSequence = readNumber(reply, dots[at + 2]! + 1, dots[at + 3]!);
  const timeStart = dots[at + 3]! + 1;
  const timeEnd = dots[at + 4]!;
  const secondsEnd = Math.max(timeStart, timeEnd - nanosDigits);
  const seconds = readNumber(reply, timeStart, secondsEnd);
  const nanos = readNumber(reply, secondsEnd, timeEnd);
  if (Number.isNaN(deliveries + streamSequence + consumerSequence + seconds + nanos)) return null;
  return { deliveries, streamSequence, consumerSequence, timeNanos: BigInt(seconds) * nanosPerSecond + BigInt(nanos) };
}

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  for (let i = 0; i < prefix.length; i++) if (bytes[i] !== prefix[i]) return false;
  return true;
}

/** NaN when a byte is not a digit; 0 for no bytes. */
function readNumber(bytes: Buffer, start: number, end: number): number {
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = bytes[i]! - zero;
    if (digit < 0 || digit > 9) return NaN;
    value = value * 10 + digit;
  }
  return value;
}

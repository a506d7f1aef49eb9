import { classifyPayload, payloadText } from '../../core/payload.ts';
import type { PayloadForm } from '../../core/payload.ts';
import type { ReplayRecord } from '../../core/record.ts';
import { formatTime } from '../../core/time.ts';

/** What is the same for every line of a run. */
export interface LineContext {
  readonly plan: string;
  readonly run: string;
}

/** A record on its way to a line; classified once, because the target may refuse it for its form. */
export interface FormedRecord {
  readonly record: ReplayRecord;
  readonly form: PayloadForm;
}

export function formRecord(record: ReplayRecord): FormedRecord {
  return { record, form: classifyPayload(record.payload) };
}

/**
 * One JSON line a record, in the order given. Fields: stream, incarnation, sequence, subject, time, message_id, headers,
 * payload_format, payload, plan, run.
 */
export function formatLines(records: readonly FormedRecord[], context: LineContext): Buffer {
  const tail = `,"plan":${JSON.stringify(context.plan)},"run":${JSON.stringify(context.run)}}\n`;
  const output = new Output(records.reduce((bytes, { record }) => bytes + record.payload.length + LINE_BYTES_GUESS, 0));
  const repeated = { quoted: new QuotedStrings(), clock: new Clock() };
  // What ends a line is written together with what begins the next one: few large writes are faster.
  let before = '';
  for (const { record, form } of records) {
    before += envelope(record, form, repeated);
    if (form === 'json') {
      output.text(before);
      output.json(record.payload);
      before = tail;
    } else before += (form === 'text' ? JSON.stringify(payloadText(record.payload)) : quotedBase64(record.payload)) + tail;
    if (before.length > TEXT_UNITS_HELD) {
      output.text(before);
      before = '';
    }
  }
  output.text(before);
  return output.bytes();
}

function quotedBase64({ buffer, byteOffset, length }: Uint8Array): string {
  return `"${Buffer.from(buffer, byteOffset, length).toString('base64')}"`;
}

const LINE_BYTES_GUESS = 512;
const TEXT_UNITS_HELD = 16_384;

interface Repeated {
  readonly quoted: QuotedStrings;
  readonly clock: Clock;
}

function envelope(record: ReplayRecord, form: PayloadForm, { quoted, clock }: Repeated): string {
  const messageId = record.messageId === undefined ? 'null' : JSON.stringify(record.messageId);
  return (
    `{"stream":${quoted.of(record.stream)},"incarnation":${quoted.of(record.incarnation)},"sequence":${record.sequence}` +
    `,"subject":${quoted.of(record.subject)},"time":"${clock.of(record.timeNanos)}","message_id":${messageId}` +
    `,"headers":${formatHeaders(record.headers, quoted)},"payload_format":"${FORMAT_NAMES[form]}","payload":`
  );
}

const FORMAT_NAMES: Readonly<Record<PayloadForm, string>> = { json: 'json', text: 'text', binary: 'base64' };

function formatHeaders(headers: ReplayRecord['headers'], quoted: QuotedStrings): string {
  if (headers.size === 0) return '{}';
  let json = '';
  for (const [name, values] of headers) {
    json += `${json === '' ? '{' : ','}${quoted.of(name)}:[`;
    for (let i = 0; i < values.length; i++) json += (i === 0 ? '' : ',') + JSON.stringify(values[i]);
    json += ']';
  }
  return json + '}';
}

/** Times of neighbours are mostly within one second, and formatting a date is slow. */
class Clock {
  #second = -1n;
  #text = '';

  of(timeNanos: bigint): string {
    const second = timeNanos / NANOS_PER_SECOND;
    if (timeNanos < 0n) return formatTime(timeNanos);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = formatTime(second * NANOS_PER_SECOND).slice(0, SECONDS_LENGTH);
    }
    return `${this.#text}.${String(timeNanos - second * NANOS_PER_SECOND).padStart(9, '0')}Z`;
  }
}

const NANOS_PER_SECOND = 1_000_000_000n;
const SECONDS_LENGTH = '1970-01-01T00:00:00'.length;

/** JSON strings of what repeats from record to record: stream, subjects, header names. */
class QuotedStrings {
  readonly #known = new Map<string, string>();

  of(text: string): string {
    let json = this.#known.get(text);
    if (json === undefined) {
      json = JSON.stringify(text);
      if (this.#known.size < QUOTED_STRINGS_MAX) this.#known.set(text, json);
    }
    return json;
  }
}

const QUOTED_STRINGS_MAX = 4_096;

/** UTF-8 bytes of one UTF-16 code unit, at most. */
const BYTES_PER_UNIT_MAX = 3;
/** From this length on it pays to count the bytes rather than to reserve for the worst. */
const EXACT_UNITS_MIN = 1_048_576;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;

/** A buffer that grows. */
class Output {
  #buffer: Buffer;
  #length = 0;

  constructor(bytesExpected: number) {
    this.#buffer = Buffer.allocUnsafe(bytesExpected);
  }

  text(text: string): void {
    this.#reserve(text.length < EXACT_UNITS_MIN ? text.length * BYTES_PER_UNIT_MAX : Buffer.byteLength(text));
    this.#length += this.#buffer.write(text, this.#length);
  }

  /** Line breaks stand only between the tokens of JSON: as spaces they mean the same and keep the record on its line. */
  json(payload: Uint8Array): void {
    this.#reserve(payload.length);
    const start = this.#length;
    this.#buffer.set(payload, start);
    this.#length += payload.length;
    if (payload.includes(LINE_FEED) || payload.includes(RETURN)) spaceLineBreaks(this.#buffer.subarray(start, this.#length));
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

function spaceLineBreaks(bytes: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === LINE_FEED || bytes[i] === RETURN) bytes[i] = SPACE;
}

import { isUtf8 } from 'node:buffer';

export type Headers = ReadonlyMap<string, readonly string[]>;

export const noHeaders: Headers = new Map();

const lineEnd = Buffer.from('\r\n');
const colon = 0x3a;
const space = 0x20;
const versionBytes = Buffer.byteLength('NATS/1.0');

/**
 * Names in their own spelling and order; every value as stored, but for the one space that clients write after the colon.
 * Bytes that are not UTF-8 are read as Latin-1, which keeps each of them. Lines without a colon are no headers.
 */
export function readHeaders(block: Buffer): Headers {
  if (block.length === 0) return noHeaders;
  const text = isUtf8(block) ? block.toString('utf8') : block.toString('latin1');
  const headers = new Map<string, string[]>();
  let start = text.indexOf('\r\n') + 2;
  for (let end = text.indexOf('\r\n', start); end > start; end = text.indexOf('\r\n', start)) {
    const at = text.indexOf(':', start);
    if (at >= start && at < end) {
      const name = text.slice(start, at);
      const value = text.slice(text.charCodeAt(at + 1) === space ? at + 2 : at + 1, end);
      const values = headers.get(name);
      if (values === undefined) headers.set(name, [value]);
      else values.push(value);
    }
    start = end + 2;
  }
  return headers.size === 0 ? noHeaders : headers;
}

const messageIdStart = '\r\nNats-Msg-Id: ';
const beyondAscii = /[\u0080-\u00ff]/;

/**
 * Of a message whose first `headerBytes` are its header block: the value of `Nats-Msg-Id` in the exact spelling if there is
 * one, else in any letter case; undefined when absent or empty.
 */
export function readMessageId(bytes: Buffer, headerBytes: number): string | undefined {
  if (headerBytes === 0) return undefined;
  const text = bytes.toString('latin1', 0, headerBytes);
  const at = text.indexOf(messageIdStart);
  if (at >= 0) {
    // The usual spelling is found without building the map of all headers.
    const start = at + messageIdStart.length;
    const value = text.slice(start, text.indexOf('\r\n', start));
    if (!beyondAscii.test(value)) return value === '' ? undefined : value;
  }
  const headers = readHeaders(bytes.subarray(0, headerBytes));
  const exact = headers.get('Nats-Msg-Id')?.[0];
  if (exact !== undefined) return exact === '' ? undefined : exact;
  for (const [name, values] of headers) {
    if (name.toLowerCase() === 'nats-msg-id' && values[0] !== '') return values[0];
  }
  return undefined;
}

/** The last value of a header the server itself appended; earlier ones of that name are the stored message's. */
export function lastValue(headers: Headers, name: string): string | undefined {
  return headers.get(name)?.at(-1);
}

export interface Status {
  /** 0: no status in the first line. */
  readonly code: number;
  readonly description: string;
}

/** Of the header block's first line: `NATS/1.0 404 No Messages`. */
export function readStatus(block: Buffer): Status {
  const end = block.indexOf(lineEnd);
  const text = block
    .subarray(versionBytes, end < 0 ? block.length : end)
    .toString('latin1')
    .trim();
  const code = Number.parseInt(text, 10);
  return Number.isNaN(code) ? { code: 0, description: '' } : { code, description: text.slice(3).trim() };
}

/** The header lines of a stored block, without first line, blank line and lines that are no headers. Bytes as stored. */
export function* headerLines(block: Buffer): Generator<{ readonly name: string; readonly line: Buffer }> {
  let start = block.indexOf(lineEnd) + lineEnd.length;
  for (let end = block.indexOf(lineEnd, start); end > start; end = block.indexOf(lineEnd, start)) {
    const line = block.subarray(start, end);
    const at = line.indexOf(colon);
    if (at >= 0) yield { name: line.subarray(0, at).toString('latin1'), line };
    start = end + lineEnd.length;
  }
}

/** The encodings of Oracle's wire protocol (TTC), as far as the driver that we test uses them. */

/** A length byte of its own: values beyond are sent in chunks. */
const SHORT_BYTES_MAX = 252;
const CHUNKED = 0xfe;
const NULL_LENGTH = 0xff;
const CHUNK_BYTES = 32_767;

export class TtcWriter {
  readonly #parts: Buffer[] = [];

  uint8(value: number): this {
    return this.raw(Buffer.from([value & 0xff]));
  }

  uint16(value: number): this {
    const part = Buffer.alloc(2);
    part.writeUInt16BE(value);
    return this.raw(part);
  }

  uint16LittleEndian(value: number): this {
    const part = Buffer.alloc(2);
    part.writeUInt16LE(value);
    return this.raw(part);
  }

  /** A number with its length before it. */
  number(value: number): this {
    if (value === 0) return this.uint8(0);
    const hex = Math.abs(value).toString(16);
    const digits = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
    return this.uint8(digits.length | (value < 0 ? 0x80 : 0)).raw(digits);
  }

  /** `count` numbers that mean nothing to us. */
  zeros(count: number): this {
    return this.raw(Buffer.alloc(count));
  }

  bytes(value: Uint8Array | string): this {
    const content = Buffer.from(value as string);
    if (content.length <= SHORT_BYTES_MAX) return this.uint8(content.length).raw(content);
    this.uint8(CHUNKED);
    for (let start = 0; start < content.length; start += CHUNK_BYTES) {
      const chunk = content.subarray(start, start + CHUNK_BYTES);
      this.number(chunk.length).raw(chunk);
    }
    return this.number(0);
  }

  pair(key: string, value: string, flags = 0): this {
    this.number(key.length).bytes(key).number(value.length);
    if (value !== '') this.bytes(value);
    return this.number(flags);
  }

  raw(part: Uint8Array | string): this {
    this.#parts.push(Buffer.from(part as string));
    return this;
  }

  end(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

export class TtcReader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  uint8(): number {
    return this.#buffer[this.#at++]!;
  }

  raw(count: number): Buffer {
    const part = this.#buffer.subarray(this.#at, this.#at + count);
    this.#at += count;
    return part;
  }

  number(): number {
    let value = 0;
    for (const byte of this.raw(this.uint8() & 0x7f)) value = value * 256 + byte;
    return value;
  }

  /** Parts of a message that mean nothing to us: `n` a number, `b` a byte. */
  skip(parts: string): void {
    for (const part of parts) {
      if (part === 'n') this.number();
      else this.uint8();
    }
  }

  bytes(): Buffer | null {
    const length = this.uint8();
    if (length === 0 || length === NULL_LENGTH) return null;
    if (length !== CHUNKED) return this.raw(length);
    const chunks: Buffer[] = [];
    for (let size = this.number(); size > 0; size = this.number()) chunks.push(this.raw(size));
    return Buffer.concat(chunks);
  }

  text(): string {
    return this.bytes()?.toString() ?? '';
  }
}

const POSITIVE_BIT = 0x80;
const NEGATIVE_END = 102;

/** The digits of a NUMBER: base 100, exponent first; negative ones complemented. */
export function decodeNumber(bytes: Buffer): string {
  if (bytes.length === 1 && bytes[0] === POSITIVE_BIT) return '0';
  const isPositive = (bytes[0]! & POSITIVE_BIT) !== 0;
  const exponent = (isPositive ? bytes[0]! : 255 - bytes[0]!) - 193;
  const pairs = [...bytes.subarray(1)]
    .filter((byte) => isPositive || byte !== NEGATIVE_END)
    .map((byte) => (isPositive ? byte - 1 : 101 - byte));
  const digits = pairs.map((pair) => String(pair).padStart(2, '0')).join('');
  return `${isPositive ? '' : '-'}${digits}E${(exponent + 1) * 2 - digits.length}`;
}

/** Of a number as a database prints it: digits, a point, an exponent. */
export function encodeNumber(text: string): Buffer {
  const match = /^(-?)(\d*)(?:\.(\d*))?(?:E([+-]?\d+))?$/i.exec(text);
  if (match === null) throw new Error('not a number');
  const [, sign, whole = '', fraction = '', power = '0'] = match;
  let digits = (whole + fraction).replace(/^0+/, '');
  let exponent = Number(power) - fraction.length;
  if (digits === '') return Buffer.from([POSITIVE_BIT]);
  if (Math.abs(exponent) % 2 === 1) {
    digits += '0';
    exponent--;
  }
  if (digits.length % 2 === 1) digits = `0${digits}`;
  let pairs = [...digits.matchAll(/../g)].map(([pair]) => Number(pair));
  const first = exponent / 2 + pairs.length - 1;
  while (pairs.at(-1) === 0) pairs = pairs.slice(0, -1);
  if (sign === '') return Buffer.from([first + 193, ...pairs.map((pair) => pair + 1)]);
  return Buffer.from([62 - first, ...pairs.map((pair) => 101 - pair), NEGATIVE_END]);
}

/**
 * What the bytes of a body are. Strict JSON is the RFC 8259 grammar without duplicate keys, whatever a destination makes of
 * it later: `1e400`, `"\ud800"` and 100,000 nested arrays are JSON; NaN, a byte order mark in front and an empty body are not.
 */
export type PayloadForm = 'json' | 'text' | 'binary';

/** `json`: strict JSON. `text`: other valid UTF-8. `binary`: neither. */
export function classifyPayload(bytes: Uint8Array): PayloadForm {
  if (isStrictJson(bytes)) return 'json';
  return isUtf8(bytes) ? 'text' : 'binary';
}

/** The body as a string, a byte order mark kept. Throws a TypeError when the body is not UTF-8. */
export function payloadText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const TAB = 0x09;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const SMALL_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** What may come next. */
const VALUE = 0;
const VALUE_OR_CLOSE = 1;
const KEY = 2;
const KEY_OR_CLOSE = 3;
const AFTER_VALUE = 4;

/**
 * JSON.parse costs several times as much, and seconds for a million nested arrays, so the grammar is checked on the bytes
 * without recursion. Keys are compared as bytes; where that does not settle it (an escape in a key, an object of very many
 * keys), the keys seen here are counted against those that JSON.parse keeps: of equal keys it keeps one.
 */
export function isStrictJson(bytes: Uint8Array): boolean {
  const end = bytes.length;
  const open = new OpenContainers(bytes);
  let expected = VALUE;
  let i = 0;
  for (;;) {
    i = skipSpace(bytes, i, end);
    if (i === end) return expected === AFTER_VALUE && open.depth === 0 && decodes(bytes) && open.keysDiffer();
    const c = bytes[i]!;
    if (expected === AFTER_VALUE) {
      if (open.depth === 0) return false;
      const inObject = open.inObject();
      i++;
      if (c === COMMA) expected = inObject ? KEY : VALUE;
      else if (c === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) open.leave();
      else return false;
    } else if (c === QUOTE) {
      const start = i + 1;
      i = skipString(bytes, start, end);
      if (i < 0) return false;
      if (expected >= KEY) {
        if (!open.addKey(start, i - 1)) return false;
        i = skipSpace(bytes, i, end);
        if (i === end || bytes[i] !== COLON) return false;
        i++;
        expected = VALUE;
      } else expected = AFTER_VALUE;
    } else if ((c === CLOSE_BRACE && expected === KEY_OR_CLOSE) || (c === CLOSE_BRACKET && expected === VALUE_OR_CLOSE)) {
      open.leave();
      expected = AFTER_VALUE;
      i++;
    } else if (expected >= KEY) return false;
    else if (c === OPEN_BRACE) {
      open.enterObject();
      expected = KEY_OR_CLOSE;
      i++;
    } else if (c === OPEN_BRACKET) {
      open.enterArray();
      expected = VALUE_OR_CLOSE;
      i++;
    } else {
      i = c === MINUS || isDigit(c) ? skipNumber(bytes, i, end) : skipLiteral(bytes, i, end);
      if (i < 0) return false;
      expected = AFTER_VALUE;
    }
  }
}

/** Faster than isUtf8 on what is UTF-8, and much slower on what is not: for bytes that are nearly always right. */
function decodes(bytes: Uint8Array): boolean {
  try {
    decoder.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function skipSpace(bytes: Uint8Array, from: number, end: number): number {
  let i = from;
  while (i < end) {
    const c = bytes[i]!;
    if (c > SPACE || (c !== SPACE && c !== LINE_FEED && c !== TAB && c !== RETURN)) break;
    i++;
  }
  return i;
}

/** From behind the opening quote to behind the closing one; -1 when the string is not well-formed. */
function skipString(bytes: Uint8Array, from: number, end: number): number {
  let i = from;
  while (i < end) {
    const c = bytes[i]!;
    if (c === QUOTE) return i + 1;
    if (c < SPACE) return -1;
    if (c === BACKSLASH) {
      i = skipEscape(bytes, i + 1, end);
      if (i < 0) return -1;
    } else i++;
  }
  return -1;
}

const SINGLE_ESCAPES = new Set([...'"\\/bfnrt'].map((escape) => escape.charCodeAt(0)));

function skipEscape(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return -1;
  if (bytes[at] !== SMALL_U) return SINGLE_ESCAPES.has(bytes[at]!) ? at + 1 : -1;
  if (at + 5 > end) return -1;
  for (let i = at + 1; i < at + 5; i++) if (!isHexDigit(bytes[i]!)) return -1;
  return at + 5;
}

function skipNumber(bytes: Uint8Array, from: number, end: number): number {
  let i = from;
  if (bytes[i] === MINUS) i++;
  const integer = i;
  i = skipDigits(bytes, i, end);
  if (i === integer || (bytes[integer] === 0x30 && i > integer + 1)) return -1;
  if (i < end && bytes[i] === POINT) {
    const fraction = ++i;
    i = skipDigits(bytes, i, end);
    if (i === fraction) return -1;
  }
  if (i < end && (bytes[i]! | 0x20) === 0x65) {
    i++;
    if (i < end && (bytes[i] === PLUS || bytes[i] === MINUS)) i++;
    const exponent = i;
    i = skipDigits(bytes, i, end);
    if (i === exponent) return -1;
  }
  return i;
}

function skipDigits(bytes: Uint8Array, from: number, end: number): number {
  let i = from;
  while (i < end && isDigit(bytes[i]!)) i++;
  return i;
}

const LITERALS = ['true', 'false', 'null'].map((word) => Uint8Array.from(word, (letter) => letter.charCodeAt(0)));

function skipLiteral(bytes: Uint8Array, from: number, end: number): number {
  for (const word of LITERALS) {
    if (word[0] !== bytes[from]) continue;
    if (from + word.length > end) return -1;
    for (let i = 1; i < word.length; i++) if (bytes[from + i] !== word[i]) return -1;
    return from + word.length;
  }
  return -1;
}

function isDigit(c: number): boolean {
  return c >= 0x30 && c <= 0x39;
}

function isHexDigit(c: number): boolean {
  return isDigit(c) || ((c | 0x20) >= 0x61 && (c | 0x20) <= 0x66);
}

/** More keys than these in one object are left to JSON.parse: comparing each with each would take too long. */
const KEYS_COMPARED_MAX = 64;
const KEY_FIELDS = 3;
const ARRAY = -1;

/** The arrays and objects around the current position, and the keys of the open objects. */
class OpenContainers {
  depth = 0;
  readonly #bytes: Uint8Array;
  /** One number a container: ARRAY, or where its keys begin in `#keys`. */
  #containers = scratchContainers;
  /** Hash, start and end of each key of the open objects, innermost last. */
  #keys = scratchKeys;
  #keysEnd = 0;
  #keysSeen = 0;
  #unsettled = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  inObject(): boolean {
    return this.#containers[this.depth - 1] !== ARRAY;
  }

  enterArray(): void {
    this.#enter(ARRAY);
  }

  enterObject(): void {
    this.#enter(this.#keysEnd);
  }

  #enter(container: number): void {
    if (this.depth === this.#containers.length) this.#containers = doubled(this.#containers);
    this.#containers[this.depth++] = container;
  }

  leave(): void {
    const container = this.#containers[--this.depth]!;
    if (container !== ARRAY) this.#keysEnd = container;
  }

  /** False when the innermost object has this key already. */
  addKey(start: number, end: number): boolean {
    const bytes = this.#bytes;
    this.#keysSeen++;
    let hash = end - start;
    for (let i = start; i < end; i++) {
      const c = bytes[i]!;
      if (c === BACKSLASH) this.#unsettled = true;
      hash = (Math.imul(hash, 31) + c) | 0;
    }
    const keys = this.#keys;
    const first = this.#containers[this.depth - 1]!;
    const last = this.#keysEnd;
    if (last - first >= KEYS_COMPARED_MAX * KEY_FIELDS) this.#unsettled = true;
    if (this.#unsettled) return true;
    for (let k = first; k < last; k += KEY_FIELDS) {
      if (keys[k] === hash && sameBytes(bytes, keys[k + 1]!, keys[k + 2]!, start, end)) return false;
    }
    if (last + KEY_FIELDS > keys.length) this.#keys = doubled(keys);
    this.#keys[last] = hash;
    this.#keys[last + 1] = start;
    this.#keys[last + 2] = end;
    this.#keysEnd = last + KEY_FIELDS;
    return true;
  }

  /** Asked once, at the end of a well-formed document. */
  keysDiffer(): boolean {
    return !this.#unsettled || countKeys(JSON.parse(payloadText(this.#bytes))) === this.#keysSeen;
  }
}

/** Shared by all documents, which are scanned one at a time; a deeper or wider one takes its own. */
const scratchContainers = new Int32Array(256);
const scratchKeys = new Int32Array(256 * KEY_FIELDS);

function doubled(numbers: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(numbers.length * 2);
  larger.set(numbers);
  return larger;
}

function sameBytes(bytes: Uint8Array, aStart: number, aEnd: number, bStart: number, bEnd: number): boolean {
  if (aEnd - aStart !== bEnd - bStart) return false;
  for (let a = aStart, b = bStart; a < aEnd; a++, b++) if (bytes[a] !== bytes[b]) return false;
  return true;
}

function countKeys(root: unknown): number {
  let count = 0;
  const pending: unknown[] = [root];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value)) count += Object.keys(value).length;
    for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) pending.push(child);
  }
  return count;
}

export function isUtf8(bytes: Uint8Array): boolean {
  const end = bytes.length;
  let i = 0;
  while (i < end) {
    const c = bytes[i]!;
    if (c < 0x80) {
      i++;
      continue;
    }
    const length = utf8Length(c);
    if (length === 0 || i + length > end) return false;
    const second = bytes[i + 1]!;
    // Overlong forms, surrogates and code points beyond U+10FFFF are told by the second byte.
    if (second < (c === 0xe0 ? 0xa0 : c === 0xf0 ? 0x90 : 0x80)) return false;
    if (second > (c === 0xed ? 0x9f : c === 0xf4 ? 0x8f : 0xbf)) return false;
    for (let k = 2; k < length; k++) if ((bytes[i + k]! & 0xc0) !== 0x80) return false;
    i += length;
  }
  return true;
}

function utf8Length(lead: number): number {
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

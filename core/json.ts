/**
 * Strict JSON for plan and target files: the RFC 8259 grammar and nothing else, no key twice in one object, UTF-8 without a
 * byte order mark, bounded in size and depth. Messages carry line and column and what is expected there, never the text
 * around, which may hold a secret.
 *
 * Numbers: a plain integer beyond 2^53-1 becomes a bigint, so that no digit is lost. A whole number written otherwise (`1.0`,
 * `1e3`, `1.0000000000000000001`) and a number that no double can hold (`1e400`) are findings: what was written is not what
 * a program would go on with. `1.5` is an ordinary number, which an integer field then refuses.
 */
import { fileBytesMax, fileDepthMax, problemsMax } from './limits.ts';
import { boundedProblems, formatPath, groupDigits } from './problems.ts';
import type { Parsed, Path, Problem } from './problems.ts';

export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Something wrong at one place. Line and column count from 1, columns in characters. */
export interface JsonFinding {
  readonly path: Path;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** `value` is undefined when the grammar is broken; otherwise it is the whole document (of a repeated key the last value), so
 *  that its fields can be checked and all problems be told at once. */
export interface JsonReading {
  readonly value: JsonValue | undefined;
  readonly findings: readonly JsonFinding[];
}

/** Accepts a document only without findings. */
export function parseJson(bytes: Uint8Array): Parsed<JsonValue> {
  const reading = readJson(bytes);
  if (reading.value === undefined || reading.findings.length > 0) {
    return { ok: false, problems: boundedProblems(jsonProblems(reading.findings)) };
  }
  return { ok: true, value: reading.value };
}

/** `visible` cuts a path down to what may be shown; a key below a secret may be one itself. */
export function jsonProblems(findings: readonly JsonFinding[], visible: (path: Path) => Path = (path) => path): Problem[] {
  return findings.map(({ path, line, column, message }) => ({
    path: formatPath(visible(path)),
    message: `line ${line}, column ${column}: ${message}`,
  }));
}

export function readJson(bytes: Uint8Array): JsonReading {
  if (bytes.length > fileBytesMax) {
    return broken('', 0, [], `the file has ${groupDigits(bytes.length)} bytes; expected at most ${groupDigits(fileBytesMax)}`);
  }
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  const invalid = firstDifference(bytes, new TextEncoder().encode(text));
  if (invalid !== -1) {
    const before = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, invalid));
    return broken(before, before.length, [], 'the bytes from here on are not UTF-8; expected a file saved as UTF-8');
  }
  if (text.startsWith('\uFEFF')) {
    return broken('', 0, [], 'the file begins with a byte order mark; expected UTF-8 without one');
  }
  if (text.trim() === '') return broken('', 0, [], 'the file is empty; expected a JSON object');
  return readText(text);
}

function readText(text: string): JsonReading {
  const parser = new Parser(text);
  try {
    const value = parser.document();
    return { value, findings: locate(text, parser.findings) };
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    const fault = { path: error.path, offset: error.offset, message: error.message };
    return { value: undefined, findings: locate(text, [...parser.findings, fault]) };
  }
}

interface OffsetFinding {
  readonly path: Path;
  readonly offset: number;
  readonly message: string;
}

class SyntaxFault extends Error {
  readonly offset: number;
  readonly path: Path;
  constructor(offset: number, path: Path, message: string) {
    super(message);
    this.offset = offset;
    this.path = path;
  }
}

const numberPattern = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const plainCharacters = /[^"\\\p{Cc}]*/uy;
const notNumbers = /[+-]?(?:NaN|Infinity)/y;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

class Parser {
  readonly findings: OffsetFinding[] = [];
  readonly #text: string;
  #at = 0;
  readonly #path: (string | number)[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    const value = this.#value('a JSON object');
    this.#space();
    if (this.#at < this.#text.length) throw this.#fault('expected nothing more after the end of the document');
    return value;
  }

  #value(expected: string): JsonValue {
    this.#space();
    const character = this.#text[this.#at];
    if (character === '{') return this.#object();
    if (character === '[') return this.#array();
    if (character === '"') return this.#string();
    if (character === '-' || (character !== undefined && character >= '0' && character <= '9')) return this.#number();
    for (const [word, value] of [
      ['true', true],
      ['false', false],
      ['null', null],
    ] as const) {
      if (this.#text.startsWith(word, this.#at)) return this.#word(word, value);
    }
    throw this.#fault(this.#valueHint(expected));
  }

  #object(): JsonObject {
    const object: JsonObject = {};
    const first = new Map<string, number>();
    this.#open();
    if (this.#closes('}')) return object;
    for (;;) {
      this.#space();
      const keyAt = this.#at;
      if (this.#text[keyAt] !== '"') throw this.#fault('expected a field name in double quotes');
      const key = this.#string();
      this.#expect(':', 'expected a colon after the field name');
      const before = first.get(key);
      this.#path.push(key);
      if (before === undefined) first.set(key, keyAt);
      else this.#noteRepeated(keyAt, before);
      const value = this.#value('a value');
      this.#path.pop();
      // A plain assignment to __proto__ would set the prototype instead of a field.
      Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
      this.#space();
      if (this.#closes('}')) return object;
      this.#expect(',', 'expected a comma or } after the value');
    }
  }

  #array(): JsonValue[] {
    const array: JsonValue[] = [];
    this.#open();
    if (this.#closes(']')) return array;
    for (;;) {
      this.#path.push(array.length);
      array.push(this.#value('a value'));
      this.#path.pop();
      this.#space();
      if (this.#closes(']')) return array;
      this.#expect(',', 'expected a comma or ] after the value');
    }
  }

  #string(): string {
    let value = '';
    this.#at++;
    for (;;) {
      plainCharacters.lastIndex = this.#at;
      const plain = plainCharacters.exec(this.#text)?.[0] ?? '';
      value += plain;
      this.#at += plain.length;
      const character = this.#text[this.#at];
      if (character === '"') {
        this.#at++;
        return value;
      }
      if (character === '\\') value += this.#escape();
      // RFC 8259 forbids U+0000 to U+001F only; DEL and the C1 controls are ordinary characters.
      else if (character !== undefined && character >= '\u007f') {
        value += character;
        this.#at++;
      } else if (character === undefined) throw this.#fault('expected a double quote that ends the string');
      else throw this.#fault('expected an escape such as \\n: line breaks and control characters do not stand in strings');
    }
  }

  #escape(): string {
    const letter = this.#text[this.#at + 1] ?? '';
    if (letter === 'u') {
      const hex = this.#text.slice(this.#at + 2, this.#at + 6);
      if (!/^[0-9A-Fa-f]{4}$/.test(hex)) throw this.#fault('expected four hexadecimal digits after \\u');
      this.#at += 6;
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const value = Object.hasOwn(escapes, letter) ? escapes[letter] : undefined;
    if (value === undefined) throw this.#fault('expected one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u');
    this.#at += 2;
    return value;
  }

  #number(): number | bigint {
    const start = this.#at;
    numberPattern.lastIndex = start;
    const match = numberPattern.exec(this.#text);
    const token = match?.[0] ?? '';
    const after = this.#text[start + token.length] ?? '';
    if (match === null || /[\d.eE+\-\w]/.test(after)) {
      throw this.#fault(this.#valueHint('a number as JSON writes it: no leading zero or plus sign, digits around the point'));
    }
    this.#at += token.length;
    const value = Number(token);
    if (match[1] === undefined && match[2] === undefined) return Number.isSafeInteger(value) ? value : BigInt(token);
    if (!Number.isFinite(value)) this.#note(start, 'expected a number that fits in 64 bits');
    else if (Number.isInteger(value)) {
      this.#note(start, 'expected a whole number without fraction and exponent (1000, not 1000.0 or 1e3)');
    }
    return value;
  }

  #word<T extends boolean | null>(word: string, value: T): T {
    if (/\w/.test(this.#text[this.#at + word.length] ?? '')) throw this.#fault(this.#valueHint('a value'));
    this.#at += word.length;
    return value;
  }

  #valueHint(expected: string): string {
    notNumbers.lastIndex = this.#at;
    if (notNumbers.test(this.#text)) return 'expected a number; NaN and Infinity are not JSON';
    const character = this.#text[this.#at];
    if (character === "'") return `expected ${expected}; strings stand in double quotes`;
    if (character === '/' || character === '#') return `expected ${expected}; comments are not JSON`;
    if (character === ']' || character === '}') return `expected ${expected}; no comma stands after the last one`;
    return `expected ${expected}`;
  }

  #open(): void {
    if (this.#path.length >= fileDepthMax) throw this.#fault(`expected at most ${fileDepthMax} levels of lists and objects`);
    this.#at++;
    this.#space();
  }

  #closes(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #expect(character: string, message: string): void {
    this.#space();
    if (this.#text[this.#at] !== character) throw this.#fault(message);
    this.#at++;
  }

  #space(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? 'x')) this.#at++;
  }

  #noteRepeated(offset: number, first: number): void {
    if (this.findings.length > problemsMax) return;
    this.#note(offset, `the field stands here again (first in line ${lineOf(this.#text, first)}); expected once`);
  }

  #note(offset: number, message: string): void {
    if (this.findings.length > problemsMax) return;
    const last = this.findings.length === problemsMax;
    this.findings.push({
      path: [...this.#path],
      offset,
      message: last ? `${message}; more such places are not listed` : message,
    });
  }

  #fault(message: string): SyntaxFault {
    const text = this.#at >= this.#text.length ? `the file ends here; ${message}` : message;
    return new SyntaxFault(this.#at, [...this.#path], text);
  }
}

function broken(before: string, offset: number, path: Path, message: string): JsonReading {
  return { value: undefined, findings: locate(before, [{ path, offset, message }]) };
}

/** Offsets rise but for a syntax fault, which comes last; one walk over the text finds all lines. */
function locate(text: string, findings: readonly OffsetFinding[]): JsonFinding[] {
  const starts = [0];
  for (const match of text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length);
  return findings.map(({ path, offset, message }) => {
    const line = lastAtOrBelow(starts, offset);
    return { path, line: line + 1, column: [...text.slice(starts[line], offset)].length + 1, message };
  });
}

function lastAtOrBelow(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (starts[middle]! <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split(/\r\n|\n|\r/).length;
}

function firstDifference(a: Uint8Array, b: Uint8Array): number {
  const length = Math.max(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return i;
  return -1;
}

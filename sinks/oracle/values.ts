import { isUtf8 } from 'node:buffer';
import { canonicalNumber, hasLoneSurrogate, stringOf } from '../../core/json-token.ts';
import type { RejectCode } from '../../core/record.ts';
import { formatTime, parseTime } from '../../core/time.ts';
import type { ColumnValue } from '../sql/columns.ts';

/** How values are given to a column. `long`: a CLOB, or a BLOB when `binary`. */
export type ColumnClass =
  | { readonly kind: 'text'; readonly bytesMax: number; readonly national: boolean }
  | { readonly kind: 'clob' }
  | { readonly kind: 'raw'; readonly bytesMax: number }
  | { readonly kind: 'blob' }
  /** Digits after the point that it keeps, below 0 for whole tens and so on; null: as many as there are. */
  | { readonly kind: 'number'; readonly scale: number | null }
  | { readonly kind: 'float'; readonly single: boolean }
  | { readonly kind: 'time'; readonly form: TimeForm; readonly secondDecimals: number }
  | { readonly kind: 'json' }
  | { readonly kind: 'other' };
export type TimeForm = 'date' | 'timestamp' | 'timestamp_tz';

export interface ColumnShape {
  readonly name: string;
  readonly class: ColumnClass;
  readonly nullable: boolean;
}

/** What the driver is given. `empty`: a LOB of length 0, which a bind cannot say because it would be NULL. */
export type Bound =
  | null
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'integer'; readonly value: bigint }
  | { readonly kind: 'empty' };

export type Given = { readonly ok: true; readonly bound: Bound } | { readonly ok: false; readonly code: RejectCode };

export interface ValueRules {
  /** What becomes of an empty text where the database would store NULL. */
  readonly emptyString: 'reject' | 'null';
  /** The character set of the database holds every character. */
  readonly unicode: boolean;
}

/** Digits that a NUMBER always keeps. */
const NUMBER_DIGITS_MAX = 38;
/** Power of ten of the first digit: beyond, the database overflows, or stores 0 without a word. */
const NUMBER_POWER_MIN = -130;
const NUMBER_POWER_MAX = 125;

/** Numbers go in as their own digits. What the database would round, cut or pad without a word is refused here. */
export function giveValue(value: ColumnValue, column: ColumnShape, rules: ValueRules): Given {
  if (value === null) return given(null);
  const shape = column.class;
  switch (value.kind) {
    case 'text':
      return giveText(value.text, column, rules);
    case 'integer':
      if (shape.kind === 'number') return giveInteger(value.value, shape.scale);
      return shape.kind === 'time' ? refused('value_invalid') : giveText(String(value.value), column, rules, 'json');
    case 'time':
      if (shape.kind === 'number') return giveInteger(value.nanos, shape.scale);
      return giveText(formatTime(value.nanos), column, rules);
    case 'bytes':
      return giveBytes(value.bytes, column, rules);
    case 'json':
      return giveText(value.text, column, rules, 'json');
    case 'token': {
      const { kind, text } = value.token;
      if (kind === 'string') return giveText(stringOf(value.token), column, rules);
      const isNumeric = shape.kind === 'number' || shape.kind === 'float';
      return giveText(kind === 'boolean' && isNumeric ? booleanDigit(text) : text, column, rules, 'json');
    }
  }
}

/** `json`: the text is JSON already. */
function giveText(text: string, { class: shape }: ColumnShape, rules: ValueRules, form: 'plain' | 'json' = 'plain'): Given {
  if (hasLoneSurrogate(text)) return refused('value_invalid');
  switch (shape.kind) {
    case 'json':
      return given({ kind: 'text', text: form === 'json' ? text : JSON.stringify(text) });
    case 'number':
    case 'float':
      return giveNumber(text, shape);
    case 'time':
      return giveTime(text, shape);
    case 'blob':
      return text === '' ? given({ kind: 'empty' }) : given({ kind: 'bytes', bytes: Buffer.from(text) });
    case 'raw':
      return text === '' ? giveEmpty(rules) : giveRaw(Buffer.from(text), shape.bytesMax);
    case 'clob':
      if (text === '') return given({ kind: 'empty' });
      return isHeld(text, rules) ? given({ kind: 'text', text }) : refused('value_invalid');
    case 'text':
      if (text === '') return giveEmpty(rules);
      if (!shape.national && !isHeld(text, rules)) return refused('value_invalid');
      return storedBytes(text, shape.national) > shape.bytesMax ? refused('value_too_long') : given({ kind: 'text', text });
    case 'other':
      return text === '' ? giveEmpty(rules) : given({ kind: 'text', text });
  }
}

function giveBytes(bytes: Uint8Array, column: ColumnShape, rules: ValueRules): Given {
  const { class: shape } = column;
  if (shape.kind === 'blob') return given(bytes.length === 0 ? { kind: 'empty' } : { kind: 'bytes', bytes });
  if (shape.kind === 'raw') return bytes.length === 0 ? giveEmpty(rules) : giveRaw(bytes, shape.bytesMax);
  if (!isUtf8(bytes)) return refused('value_invalid');
  return giveText(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'), column, rules, 'json');
}

function giveRaw(bytes: Uint8Array, bytesMax: number): Given {
  return bytes.length > bytesMax ? refused('value_too_long') : given({ kind: 'bytes', bytes });
}

function giveEmpty({ emptyString }: ValueRules): Given {
  return emptyString === 'null' ? given(null) : refused('value_invalid');
}

function giveInteger(value: bigint, scale: number | null): Given {
  const found = giveNumber(String(value), { kind: 'number', scale });
  return found.ok ? given({ kind: 'integer', value }) : found;
}

function giveNumber(text: string, shape: Extract<ColumnClass, { kind: 'number' | 'float' }>): Given {
  const parts = /^(-?)(\d+)(?:e(-?\d+))?$/.exec(canonicalNumber(text));
  if (parts === null) return refused('value_invalid');
  const [, , digits, exponent = '0'] = parts as unknown as [string, string, string, string | undefined];
  if (exponent.length > EXPONENT_CHARACTERS_MAX) return refused('value_invalid');
  const power = Number(exponent);
  if (shape.kind === 'float') {
    const number = shape.single ? Math.fround(Number(text)) : Number(text);
    return Number.isFinite(number)
      ? given({ kind: 'text', text: plainNumber(parts[1]!, digits, power) })
      : refused('value_invalid');
  }
  const first = power + digits.length - 1;
  const isHeld = digits.length <= NUMBER_DIGITS_MAX && first >= NUMBER_POWER_MIN && first <= NUMBER_POWER_MAX;
  if (digits !== '0' && (!isHeld || (shape.scale !== null && -power > shape.scale))) return refused('value_invalid');
  return given({ kind: 'text', text: plainNumber(parts[1]!, digits, power) });
}

/** An exponent with more can only be out of range. */
const EXPONENT_CHARACTERS_MAX = 6;

/** A number within reach as the database reads it whatever its settings say of exponents. */
function plainNumber(sign: string, digits: string, power: number): string {
  return power === 0 ? `${sign}${digits}` : `${sign}${digits}E${power}`;
}

/** UTC, always nine decimals; cut to those that the column keeps, since the database would round into the next second. */
function giveTime(text: string, { form, secondDecimals }: Extract<ColumnClass, { kind: 'time' }>): Given {
  const time = parseTime(text);
  if (!time.ok) return refused('value_invalid');
  const [clock, fraction] = formatTime(time.nanos).slice(0, -1).split('.') as [string, string];
  if (form === 'date') return given({ kind: 'text', text: clock });
  const kept = fraction.slice(0, secondDecimals).padEnd(9, '0');
  return given({ kind: 'text', text: `${clock}.${kept}${form === 'timestamp_tz' ? '+00:00' : ''}` });
}

/** A value of a key column as it compares: equal for values that the column holds to be equal. */
export function keyText(bound: Bound, { class: shape }: ColumnShape): string {
  if (bound === null || bound.kind === 'empty' || bound.kind === 'bytes') return '';
  const text = bound.kind === 'integer' ? String(bound.value) : bound.text;
  return shape.kind === 'number' ? canonicalNumber(text) : text;
}

/** The same for what the database answered, as text. */
export function storedKeyText(stored: string | null, { class: shape }: ColumnShape): string {
  if (stored === null) return '';
  return shape.kind === 'number' ? canonicalNumber(withLeadingZero(stored)) : stored;
}

/** The database may answer `.5`. */
function withLeadingZero(number: string): string {
  return number.replace(/^(-?)\./, '$10.');
}

function isHeld(text: string, { unicode }: ValueRules): boolean {
  return unicode || !/[^\0-\x7f]/.test(text);
}

function storedBytes(text: string, national: boolean): number {
  return national ? text.length * 2 : Buffer.byteLength(text);
}

function booleanDigit(text: string): string {
  return text === 'true' ? '1' : '0';
}

function given(bound: Bound): Given {
  return { ok: true, bound };
}

function refused(code: RejectCode): Given {
  return { ok: false, code };
}

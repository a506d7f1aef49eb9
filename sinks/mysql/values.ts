import { isUtf8 } from 'node:buffer';
import { canonicalNumber, hasLoneSurrogate, stringOf } from '../../core/json-token.ts';
import type { RejectCode } from '../../core/record.ts';
import { formatTime, parseTime } from '../../core/time.ts';
import type { ColumnValue } from '../sql/columns.ts';
import { jsonTypeTakes } from './json-type.ts';
import type { Cell } from './session.ts';
import { quoteText } from './sql.ts';

/** How values are spelt for a column. */
export type ColumnClass = 'text' | 'binary' | 'integer' | 'number' | 'temporal' | 'json' | 'other';

export interface ColumnShape {
  readonly name: string;
  readonly class: ColumnClass;
  readonly nullable: boolean;
  /** Decimals of a second that a temporal column keeps. */
  readonly secondDecimals: number;
  /** Nesting that the server takes in a JSON column; absent: MySQL's. */
  readonly jsonDepthMax?: number;
}

export type Spelt = { readonly ok: true; readonly sql: string } | { readonly ok: false; readonly code: RejectCode };

/**
 * Numbers go in as text: the server then reads their digits for the column's own type, where a number in a statement may
 * pass through a double. A literal that no UTF-8 can hold is refused here, because the driver would change it silently.
 */
export function spellValue(value: ColumnValue, column: ColumnShape): Spelt {
  if (value === null) return spelt('NULL');
  switch (value.kind) {
    case 'text':
      return spellText(value.text, column);
    case 'integer':
      return spelt(column.class === 'text' || column.class === 'json' ? `'${value.value}'` : String(value.value));
    case 'time':
      return spelt(spellTime(value.nanos, column));
    case 'bytes':
      return spellBytes(value.bytes, column);
    case 'json':
      if (column.class === 'json' && column.nullable && !jsonTypeTakes(value.text, column.jsonDepthMax)) return spelt('NULL');
      return spelt(quoteText(value.text));
    case 'token': {
      const { kind, text } = value.token;
      if (column.class === 'json')
        return jsonTypeTakes(text, column.jsonDepthMax) ? spelt(quoteText(text)) : refused('value_invalid');
      if (kind === 'string') return spellText(stringOf(value.token), column);
      if (column.class === 'integer' && isFraction(text)) return refused('value_invalid');
      if (kind === 'boolean' && column.class !== 'text') return spelt(text.toUpperCase());
      return spelt(quoteText(text));
    }
  }
}

/** A value of a key column as it compares: equal for values that the column holds to be equal. */
export function keyText(value: ColumnValue, column: ColumnShape): string {
  if (value === null) return '';
  const text = plainText(value);
  if (column.class === 'number' || column.class === 'integer') return canonicalNumber(booleanDigit(text));
  return text;
}

/** The same for what the database answered. */
export function storedKeyText(value: Cell, column: ColumnShape): string {
  const text = Buffer.isBuffer(value) ? value.toString('utf8') : String(value);
  return column.class === 'number' || column.class === 'integer' ? canonicalNumber(text) : text;
}

function plainText(value: NonNullable<ColumnValue>): string {
  switch (value.kind) {
    case 'text':
    case 'json':
      return value.text;
    case 'integer':
      return String(value.value);
    case 'time':
      return String(value.nanos);
    case 'bytes':
      return Buffer.from(value.bytes).toString('utf8');
    case 'token':
      return value.token.kind === 'string' ? stringOf(value.token) : value.token.text;
  }
}

/** The server would round it, without a word. */
function isFraction(text: string): boolean {
  return /^-?\d+e-\d+$/.test(canonicalNumber(text));
}

function booleanDigit(text: string): string {
  return text === 'true' ? '1' : text === 'false' ? '0' : text;
}

function spellText(text: string, column: ColumnShape): Spelt {
  if (hasLoneSurrogate(text)) return refused('value_invalid');
  if (column.class === 'json') return spelt(quoteText(JSON.stringify(text)));
  if (column.class === 'integer' && isFraction(text)) return refused('value_invalid');
  if (column.class === 'temporal') {
    const time = parseTime(text);
    if (time.ok) return spelt(spellTime(time.nanos, column));
  }
  return spelt(quoteText(text));
}

/** UTC; cut to the decimals that the column keeps, since the server would round into the next second. */
function spellTime(nanos: bigint, { class: columnClass, secondDecimals }: ColumnShape): string {
  if (columnClass === 'integer' || columnClass === 'number') return String(nanos);
  const text = formatTime(nanos);
  if (columnClass !== 'temporal') return columnClass === 'json' ? `'"${text}"'` : `'${text}'`;
  const [date, clock] = text.slice(0, -1).split('T') as [string, string];
  return `'${date} ${clock.slice(0, secondDecimals === 0 ? 8 : 9 + secondDecimals)}'`;
}

function spellBytes(bytes: Uint8Array, column: ColumnShape): Spelt {
  if (isUtf8(bytes)) {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
    if (column.class === 'json')
      return jsonTypeTakes(text, column.jsonDepthMax) ? spelt(quoteText(text)) : refused('value_invalid');
    return spelt(column.class === 'text' ? quoteText(text) : `_binary${quoteText(text)}`);
  }
  if (column.class === 'text' || column.class === 'json') return refused('value_invalid');
  return spelt(`X'${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}'`);
}

function spelt(sql: string): Spelt {
  return { ok: true, sql };
}

function refused(code: RejectCode): Spelt {
  return { ok: false, code };
}

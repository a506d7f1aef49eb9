import type { RejectCode, ReplayRecord } from '../../core/record.ts';
import { columnReader } from '../sql/columns.ts';
import type { ColumnValue, Layout, RunContext } from '../sql/columns.ts';
import type { KeyedRow } from '../sql/keys.ts';
import type { Row as StoredRow } from './session.ts';
import { keyText, spellValue, storedKeyText } from './values.ts';
import type { ColumnShape } from './values.ts';

export interface Row extends KeyedRow {
  /** `(value, ...)` */
  readonly sql: string;
  readonly bytes: number;
  /** The key, spelt for a lookup. */
  readonly keySql: string;
  /** Spells it with null in `payload_json`, for JSON that the server refuses after all; null when it has none. */
  readonly withoutJson: (() => string) | null;
}

export interface RefusedRow {
  readonly code: RejectCode;
  readonly field?: string;
}

export interface RowMaker {
  make(record: ReplayRecord, index: number): Row | RefusedRow;
  /** Key of a row that the database answered, to be compared with `Row.key`. */
  storedKey(row: StoredRow): string;
}

/** `shapes` in the order of the layout's columns. A row with its commas must fit into `rowBytesMax`. */
export function rowMaker(
  layout: Layout,
  shapes: readonly ColumnShape[],
  { context, rowBytesMax }: { readonly context: RunContext; readonly rowBytesMax: number },
): RowMaker {
  const read = columnReader(layout, context);
  const keys = layout.keyColumns.map((name) => layout.columns.findIndex((column) => column.name === name));
  const softJson = layout.columns.map(
    ({ source }, i) =>
      'field' in source && source.field === 'payload_json' && shapes[i]!.class === 'json' && shapes[i]!.nullable,
  );
  const hasSoftJson = softJson.includes(true);
  return {
    make(record, index) {
      const mapped = read(record);
      if (!mapped.ok) return mapped.field === undefined ? { code: mapped.code } : { code: mapped.code, field: mapped.field };
      const parts: string[] = [];
      for (let i = 0; i < shapes.length; i++) {
        const spelt = spellValue(mapped.values[i]!, shapes[i]!);
        if (!spelt.ok) return { code: spelt.code, field: shapes[i]!.name };
        parts.push(spelt.sql);
      }
      let sql = `(${parts.join(',')})`;
      const isPlain = !hasSoftJson || parts.every((part, i) => !softJson[i] || part === 'NULL');
      let withoutJson = isPlain ? null : () => `(${parts.map((part, i) => (softJson[i] ? 'NULL' : part)).join(',')})`;
      let bytes = byteLength(sql);
      if (bytes > rowBytesMax && withoutJson !== null) {
        sql = withoutJson();
        bytes = byteLength(sql);
        withoutJson = null;
      }
      if (bytes > rowBytesMax) return { code: 'too_large' };
      const keyParts = keys.map((i) => parts[i]!);
      return {
        index,
        sql,
        bytes,
        withoutJson,
        key: () => keyOf(keys, mapped.values, shapes),
        keySql: keyParts.length === 1 ? keyParts[0]! : `(${keyParts.join(',')})`,
        incarnation: record.incarnation,
        sequence: record.sequence,
      };
    },
    storedKey: (row) =>
      keys.length === 1
        ? storedKeyText(row[shapes[keys[0]!]!.name]!, shapes[keys[0]!]!)
        : JSON.stringify(keys.map((i) => storedKeyText(row[shapes[i]!.name]!, shapes[i]!))),
  };
}

function keyOf(keys: readonly number[], values: readonly ColumnValue[], shapes: readonly ColumnShape[]): string {
  if (keys.length === 1) return keyText(values[keys[0]!]!, shapes[keys[0]!]!);
  return JSON.stringify(keys.map((i) => keyText(values[i]!, shapes[i]!)));
}

/** Exact only where it matters: a short text has at most three bytes a character. */
function byteLength(text: string): number {
  return text.length < SHORT_CHARACTERS_MAX ? text.length * 3 : Buffer.byteLength(text);
}

const SHORT_CHARACTERS_MAX = 4_096;

import type { RejectCode, ReplayRecord } from '../../core/record.ts';
import { columnReader } from '../sql/columns.ts';
import type { Layout, RunContext } from '../sql/columns.ts';
import type { KeyedRow } from '../sql/keys.ts';
import { foldName } from './names.ts';
import { giveValue, keyText, storedKeyText } from './values.ts';
import type { Bound, ColumnShape, ValueRules } from './values.ts';

export interface Row extends KeyedRow {
  /** In the order of the layout's columns. */
  readonly bounds: readonly Bound[];
  readonly bytes: number;
  readonly keyBounds: readonly Bound[];
  /** With null in `payload_json`, for JSON that the database refuses after all; null when it has none. */
  readonly withoutJson: Row | null;
}

export interface RefusedRow {
  readonly code: RejectCode;
  readonly field?: string;
}

export interface RowMaker {
  make(record: ReplayRecord, index: number): Row | RefusedRow;
  /** Key of a row that the database answered, its columns as text, to be compared with `Row.key`. */
  storedKey(columns: readonly (string | null)[]): string;
}

/** A layout with the names that the database keeps. */
export function foldLayout(layout: Layout): Layout {
  const { origin } = layout;
  return {
    ...layout,
    columns: layout.columns.map(({ name, source }) => ({ name: foldName(name), source })),
    keyColumns: layout.keyColumns.map(foldName),
    origin: origin === null ? null : { incarnation: foldName(origin.incarnation), sequence: foldName(origin.sequence) },
  };
}

/** `shapes` in the order of the layout's columns. */
export function rowMaker(
  layout: Layout,
  shapes: readonly ColumnShape[],
  { context, rules }: { readonly context: RunContext; readonly rules: ValueRules },
): RowMaker {
  const read = columnReader(layout, context);
  const keys = layout.keyColumns.map((name) => layout.columns.findIndex((column) => column.name === name));
  const softJson = layout.columns.map(
    ({ source }, i) => 'field' in source && source.field === 'payload_json' && shapes[i]!.nullable,
  );
  return {
    make(record, index) {
      const mapped = read(record);
      if (!mapped.ok) return mapped.field === undefined ? { code: mapped.code } : { code: mapped.code, field: mapped.field };
      const bounds: Bound[] = [];
      for (let i = 0; i < shapes.length; i++) {
        const given = giveValue(mapped.values[i]!, shapes[i]!, rules);
        if (given.ok) bounds.push(given.bound);
        else if (softJson[i]) bounds.push(null);
        else return { code: given.code, field: shapes[i]!.name };
      }
      const { incarnation, sequence } = record;
      const keyBounds = keys.map((i) => bounds[i]!);
      const key = () => joined(keys.map((i) => keyText(bounds[i]!, shapes[i]!)));
      const rowOf = (row: readonly Bound[], withoutJson: Row | null): Row => {
        return { index, bounds: row, bytes: bytesOf(row), key, keyBounds, incarnation, sequence, withoutJson };
      };
      const hasSoftJson = bounds.some((bound, i) => softJson[i] && bound !== null);
      if (!hasSoftJson) return rowOf(bounds, null);
      return rowOf(
        bounds,
        rowOf(
          bounds.map((bound, i) => (softJson[i] ? null : bound)),
          null,
        ),
      );
    },
    storedKey: (columns) => joined(keys.map((i, place) => storedKeyText(columns[place]!, shapes[i]!))),
  };
}

function joined(parts: readonly string[]): string {
  return parts.length === 1 ? parts[0]! : JSON.stringify(parts);
}

/** Rough, for the size of a call: a text has at most three bytes a character. */
function bytesOf(bounds: readonly Bound[]): number {
  let bytes = 0;
  for (const bound of bounds) {
    if (bound === null) continue;
    if (bound.kind === 'text') bytes += bound.text.length;
    else if (bound.kind === 'bytes') bytes += bound.bytes.length;
    else bytes += NUMBER_BYTES_MAX;
  }
  return bytes;
}

const NUMBER_BYTES_MAX = 22;

import type { IdempotencyKey, Outcome } from '../../core/record.ts';
import type { Idempotency } from './columns.ts';

/** One record on its way into a table. */
export interface KeyedRow {
  /** Place in the batch. */
  readonly index: number;
  /** As the database compares keys. */
  key(): string;
  readonly incarnation: string;
  readonly sequence: bigint;
}

/** What the table holds under a key. */
export interface Held {
  /** null: the table does not keep it. */
  readonly origin: { readonly incarnation: string; readonly sequence: bigint } | null;
}

export type StoredCell = string | number | Buffer | null | undefined;

/** Of what the database answered; null and undefined where the table has no such columns, or no value in them. */
export function heldOf(incarnation: StoredCell, sequence: StoredCell): Held {
  if (incarnation == null || sequence == null) return { origin: null };
  return { origin: { incarnation: String(incarnation), sequence: BigInt(String(sequence)) } };
}

/** Rows whose key comes for the first time, and the others. With the stream's sequence as key no two of a batch are equal. */
export function splitByKey<R extends KeyedRow>(
  rows: readonly R[],
  key: IdempotencyKey,
): { readonly first: readonly R[]; readonly later: readonly R[] } {
  if (key === 'stream_sequence') return { first: rows, later: [] };
  const seen = new Set<string>();
  const [first, later]: [R[], R[]] = [[], []];
  for (const row of rows) {
    (seen.has(row.key()) ? later : first).push(row);
    seen.add(row.key());
  }
  return { first, later };
}

/** Whether an upsert lets the row replace what is held. Incarnations are times, which sort as text. */
export function isNewer(row: KeyedRow, { origin }: Held): boolean {
  if (origin === null) return true;
  if (row.incarnation !== origin.incarnation) return row.incarnation > origin.incarnation;
  return row.sequence > origin.sequence;
}

export interface KeyRules {
  readonly mode: 'insert' | 'upsert';
  readonly key: IdempotencyKey;
  readonly conflicts: Idempotency['key_conflicts'];
}

/** What becomes of a record whose key is held and stays as it is. */
export function outcomeOfHeld(row: KeyedRow, { origin }: Held, { mode, key, conflicts }: KeyRules): Outcome {
  const isOther =
    mode === 'insert' &&
    key === 'payload_field' &&
    conflicts === 'reject' &&
    origin !== null &&
    (origin.incarnation !== row.incarnation || origin.sequence !== row.sequence);
  return isOther ? { kind: 'rejected', code: 'key_conflict' } : { kind: 'duplicate' };
}

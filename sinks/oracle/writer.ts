import oracledb from 'oracledb';
import type { BindDefinition } from 'oracledb';
import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import type { Idempotency, Layout } from '../sql/columns.ts';
import { heldOf, isNewer, outcomeOfHeld, splitByKey } from '../sql/keys.ts';
import type { Held } from '../sql/keys.ts';
import type { OracleConfig } from './config.ts';
import { columnHint, constraintOf, meaningOf } from './errors.ts';
import type { DriverError, Meaning } from './errors.ts';
import type { Row, RowMaker } from './rows.ts';
import { faultOf } from './session.ts';
import type { Session } from './session.ts';
import type { Statements } from './sql.ts';
import type { Bound, ColumnShape } from './values.ts';

/** Rows of one call: more make it no faster, and the places of failed rows are exact far below 65,536 only. */
const CALL_ROWS_MAX = 1_000;
/** Rows of one call, in bytes; a larger row has a call of its own. */
const CALL_BYTES_MAX = 8_388_608;
/** Keys of one look-up. Fewer are filled up to one of these with a key that is asked for already, so that few texts arise. */
const LOOKUP_KEYS = [1, 8, 64, 256] as const;
/** How often a batch is begun again after a deadlock, and rows are sorted anew after a race. */
const ATTEMPTS_MAX = 3;
/** In `SELECT :1 FROM DUAL` a text or a RAW is no longer than these; beyond, it takes a temporary LOB. */
const SELECTED_TEXT_BYTES_MAX = 4_000;
const SELECTED_RAW_BYTES_MAX = 2_000;

export interface Writer {
  readonly session: Session;
  readonly statements: Statements;
  readonly layout: Layout;
  readonly shapes: readonly ColumnShape[];
  readonly rows: RowMaker;
  readonly mode: OracleConfig['mode'];
  readonly conflicts: Idempotency['key_conflicts'];
  /** `OWNER.NAME` of the constraints that keep our key. */
  readonly keyNames: ReadonlySet<string>;
  /** Learnt from the last batch: its records were there already, so look before writing. Speed only. */
  expectsKnown: boolean;
}

/** Writes a batch as one transaction. Throws a ReplayFault; then nothing of it is in, unless the commit's answer was lost. */
export async function writeBatch(writer: Writer, batch: readonly ReplayRecord[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = Array.from({ length: batch.length });
  const rows: Row[] = [];
  for (const [index, record] of batch.entries()) {
    const row = writer.rows.make(record, index);
    if ('bounds' in row) rows.push(row);
    else outcomes[index] = { kind: 'rejected', ...row };
  }
  for (let attempt = 1; ; attempt++) {
    try {
      await writeTransaction(writer, rows, outcomes);
      return outcomes;
    } catch (error) {
      // Says nothing about the commit: if its answer was lost, the key settles what happened when the batch comes again.
      // A server that gave no answer would give none to this either.
      if (!isUnanswered(error)) await writer.session.rollback().catch(() => undefined);
      if (!mayRestart(error as DriverError) || attempt >= ATTEMPTS_MAX) throw faultOf(error as DriverError);
    }
  }
}

function isUnanswered(error: unknown): boolean {
  return error instanceof ReplayFault && error.code === 'sink_unreachable';
}

/** Another session was quicker with a key, and has committed. */
class Outrun extends Error {}

function mayRestart(error: DriverError): boolean {
  if (error instanceof Outrun) return true;
  if (error instanceof ReplayFault) return false;
  const meaning = meaningOf(error);
  return meaning.kind === 'fault' && meaning.restart === true;
}

interface Progress {
  readonly outcomes: Outcome[];
  readonly known: { found: number };
}

async function writeTransaction(writer: Writer, rows: readonly Row[], outcomes: Outcome[]): Promise<void> {
  const progress: Progress = { outcomes, known: { found: 0 } };
  const { first, later } = splitByKey(rows, writer.layout.key);
  await writeNew(writer, first, progress);
  for (let rest = later; rest.length > 0;) {
    // Rows of keys that this batch has just written: an upsert takes them all in order, an insert finds them there.
    const sorted = await sortKnown(writer, rest, progress);
    if (writer.mode === 'upsert') {
      await mergeAll(writer, [...sorted.newer, ...sorted.unknown].toSorted(byIndex), progress);
      rest = [];
    } else {
      const split = splitByKey(sorted.unknown, writer.layout.key);
      await writeNew(writer, split.first, progress);
      rest = split.later;
    }
  }
  await writer.session.commit();
  writer.expectsKnown = progress.known.found > rows.length / 2;
}

/** Inserts rows of different keys; those whose key is there already are settled, or merged when they are newer. */
async function writeNew(writer: Writer, rows: readonly Row[], progress: Progress): Promise<void> {
  let rest = rows;
  let look = writer.expectsKnown;
  for (let round = 0; round <= ATTEMPTS_MAX; round++) {
    if (look) {
      const sorted = await sortKnown(writer, rest, progress);
      await mergeAll(writer, sorted.newer, progress);
      rest = sorted.unknown;
    }
    rest = await insertAll(writer, rest, progress);
    if (rest.length === 0) return;
    look = true;
  }
  throw new ReplayFault('sink_busy', 'another writer takes keys and gives them up again');
}

interface Sorted {
  readonly unknown: readonly Row[];
  /** For an upsert: newer than the row of their key. */
  readonly newer: readonly Row[];
}

/** Looks which keys are there already, and settles the records of those that stay as they are. */
async function sortKnown(writer: Writer, rows: readonly Row[], { outcomes, known }: Progress): Promise<Sorted> {
  const { mode, conflicts, layout } = writer;
  const stored = await lookUp(writer, rows);
  const [unknown, newer]: [Row[], Row[]] = [[], []];
  for (const row of rows) {
    const held = stored.get(row.key());
    if (held === undefined) unknown.push(row);
    else if (mode === 'upsert' && isNewer(row, held)) newer.push(row);
    else {
      known.found++;
      outcomes[row.index] = outcomeOfHeld(row, held, { mode, key: layout.key, conflicts });
    }
  }
  return { unknown, newer };
}

async function lookUp(
  { session, statements, layout, rows: maker, mode }: Writer,
  rows: readonly Row[],
): Promise<Map<string, Held>> {
  const stored = new Map<string, Held>();
  const width = layout.keyColumns.length;
  const keys = [...new Map(rows.map((row) => [row.key(), row.keyBounds])).values()];
  for (let start = 0; start < keys.length;) {
    const left = keys.length - start;
    const size = LOOKUP_KEYS.find((candidate) => candidate >= left) ?? LOOKUP_KEYS.at(-1)!;
    const wanted = Array.from({ length: size }, (_, i) => keys[Math.min(start + i, keys.length - 1)]!);
    const sql = statements.lookup(size, mode === 'upsert' ? 'lock' : 'look');
    for (const cells of await session.rows(sql, wanted.flat().map(driverValue))) {
      stored.set(maker.storedKey(cells.slice(0, width)), heldOf(cells[width], cells[width + 1]));
    }
    start += size;
  }
  return stored;
}

/** Returns the rows whose key is there. */
async function insertAll(writer: Writer, rows: readonly Row[], { outcomes }: Progress): Promise<Row[]> {
  const taken: Row[] = [];
  for (const call of callsOf(rows, emptyPlaces)) {
    const refused = await runCall(writer, call, 'insert', outcomes);
    const again: Row[] = [];
    for (const { row, meaning, error } of refused) {
      if (meaning.kind === 'duplicate' && isOurKey(writer, error)) taken.push(row);
      else if (row.withoutJson !== null && isAboutJson(meaning)) again.push(row.withoutJson);
      else outcomes[row.index] = rejectOf(writer, meaning, error);
    }
    for (const { row, meaning, error } of await runCalls(writer, again, 'insert', outcomes)) {
      if (meaning.kind === 'duplicate' && isOurKey(writer, error)) taken.push(row);
      else outcomes[row.index] = rejectOf(writer, meaning, error);
    }
  }
  return taken.toSorted(byIndex);
}

/** In order: of two rows with the same key the later one stays. */
async function mergeAll(writer: Writer, rows: readonly Row[], { outcomes }: Progress): Promise<void> {
  for (const call of runsOf(rows, (row) => `${emptyPlaces(row)} ${longPlaces(row)}`)) {
    for (const { row, meaning, error } of await runCall(writer, call, 'merge', outcomes)) {
      if (meaning.kind === 'duplicate' && isOurKey(writer, error)) throw new Outrun();
      if (row.withoutJson === null || !isAboutJson(meaning)) {
        outcomes[row.index] = rejectOf(writer, meaning, error);
        continue;
      }
      for (const second of await runCall(writer, [row.withoutJson], 'merge', outcomes)) {
        outcomes[row.index] = rejectOf(writer, second.meaning, second.error);
      }
    }
  }
}

interface Refused {
  readonly row: Row;
  readonly meaning: Exclude<Meaning, { kind: 'fault' }>;
  readonly error: Error;
}

async function runCalls(
  writer: Writer,
  rows: readonly Row[],
  verb: 'insert' | 'merge',
  outcomes: Outcome[],
): Promise<Refused[]> {
  const refused: Refused[] = [];
  for (const call of callsOf(rows, emptyPlaces)) refused.push(...(await runCall(writer, call, verb, outcomes)));
  return refused;
}

/** One call for all rows; those not returned are written. Throws what is not about a row. */
async function runCall(
  writer: Writer,
  rows: readonly Row[],
  verb: 'insert' | 'merge',
  outcomes: Outcome[],
): Promise<Refused[]> {
  const { session, statements, shapes } = writer;
  const empty = placesOf(rows[0]!, isEmpty);
  const bound = shapes.map((_, i) => i).filter((i) => !empty.includes(i));
  const definitions = bound.map((i) =>
    definitionOf(
      shapes[i]!,
      rows.map((row) => row.bounds[i]!),
      verb,
    ),
  );
  const values = rows.map((row) => bound.map((i) => driverValue(row.bounds[i]!)));
  const failures = await session.many(statements[verb](empty), values, definitions);
  const refused = new Map<number, Refused>();
  for (const { offset, error } of failures) {
    const meaning = meaningOf(error);
    if (meaning.kind === 'fault') throw error;
    if (rows[offset] === undefined) throw new ReplayFault('unexpected', 'a failed row that is none of the call');
    refused.set(offset, { row: rows[offset], meaning, error });
  }
  rows.forEach((row, offset) => {
    if (!refused.has(offset)) outcomes[row.index] = { kind: 'written' };
  });
  return [...refused.values()];
}

/** Groups of rows that one statement can take, whatever stands between them. */
function callsOf(rows: readonly Row[], signature: (row: Row) => string): Row[][] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(signature(row));
    if (group === undefined) groups.set(signature(row), [row]);
    else group.push(row);
  }
  return [...groups.values()].flatMap((group) => runsOf(group, () => ''));
}

/** The same without changing the order. */
function runsOf(rows: readonly Row[], signature: (row: Row) => string): Row[][] {
  const runs: Row[][] = [];
  let [last, bytes] = ['', 0];
  for (const row of rows) {
    const [own, run] = [signature(row), runs.at(-1)];
    bytes += row.bytes;
    if (run !== undefined && own === last && run.length < CALL_ROWS_MAX && bytes <= CALL_BYTES_MAX) run.push(row);
    else {
      runs.push([row]);
      [last, bytes] = [own, row.bytes];
    }
  }
  return runs;
}

function isEmpty(bound: Bound): boolean {
  return bound?.kind === 'empty';
}

/** Too long for a value that is selected. */
function isLong(bound: Bound): boolean {
  if (bound?.kind === 'text') {
    const { length } = bound.text;
    return length * 3 > SELECTED_TEXT_BYTES_MAX && Buffer.byteLength(bound.text) > SELECTED_TEXT_BYTES_MAX;
  }
  return bound?.kind === 'bytes' && bound.bytes.length > SELECTED_RAW_BYTES_MAX;
}

function placesOf({ bounds }: Row, test: (bound: Bound) => boolean): number[] {
  return bounds.flatMap((bound, i) => (test(bound) ? [i] : []));
}

function emptyPlaces(row: Row): string {
  return placesOf(row, isEmpty).join(',');
}

function longPlaces(row: Row): string {
  return placesOf(row, isLong).join(',');
}

/** An insert gives LOBs as they are; elsewhere a long one is made on the server first, which takes three round trips. */
function definitionOf({ class: shape }: ColumnShape, values: readonly Bound[], verb: 'insert' | 'merge'): BindDefinition {
  const viaLob = (verb === 'merge' || shape.kind === 'json') && values.some(isLong);
  if (values.some((value) => value?.kind === 'integer')) return { type: oracledb.DB_TYPE_NUMBER };
  if (shape.kind === 'blob' || shape.kind === 'raw') {
    return viaLob ? { type: oracledb.DB_TYPE_BLOB } : { type: oracledb.DB_TYPE_RAW, maxSize: largest(values) };
  }
  return viaLob ? { type: oracledb.DB_TYPE_CLOB } : { type: oracledb.DB_TYPE_VARCHAR, maxSize: largest(values) };
}

function largest(values: readonly Bound[]): number {
  let bytes = 1;
  for (const value of values) {
    if (value?.kind === 'text' && value.text.length * 3 > bytes) bytes = Math.max(bytes, Buffer.byteLength(value.text));
    if (value?.kind === 'bytes') bytes = Math.max(bytes, value.bytes.length);
  }
  return bytes;
}

function driverValue(bound: Bound): string | bigint | Buffer | null {
  switch (bound?.kind) {
    case 'text':
      return bound.text;
    case 'integer':
      return bound.value;
    case 'bytes':
      return Buffer.from(bound.bytes.buffer, bound.bytes.byteOffset, bound.bytes.length);
    default:
      return null;
  }
}

/** Only a constraint that is known to keep our key says that the record is there: any other refuses it. */
function isOurKey({ keyNames }: Writer, error: DriverError): boolean {
  const named = constraintOf(error);
  return named !== undefined && keyNames.has(`${named.owner}.${named.name}`);
}

/** A row may be refused only for its JSON, by its type or by a check. */
function isAboutJson(meaning: Refused['meaning']): boolean {
  return meaning.kind === 'reject' && (meaning.code === 'value_invalid' || meaning.code === 'constraint_failed');
}

function rejectOf({ layout }: Writer, meaning: Refused['meaning'], error: DriverError): Outcome {
  if (meaning.kind === 'duplicate') return { kind: 'rejected', code: 'constraint_failed' };
  const names = layout.columns.map(({ name }) => name);
  const field = columnHint(error, names);
  return { kind: 'rejected', code: meaning.code, ...(field === undefined ? {} : { field }) };
}

function byIndex(a: Row, b: Row): number {
  return a.index - b.index;
}

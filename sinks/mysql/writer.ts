import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import type { Idempotency, Layout } from '../sql/columns.ts';
import { heldOf as heldBy, isNewer, outcomeOfHeld, splitByKey } from '../sql/keys.ts';
import type { Held } from '../sql/keys.ts';
import type { MysqlConfig } from './config.ts';
import { columnHint, meaningOf, rowHint } from './errors.ts';
import type { DriverError, Meaning } from './errors.ts';
import type { Row, RowMaker } from './rows.ts';
import { faultOf } from './session.ts';
import type { Row as StoredRow, Session } from './session.ts';
import type { Statements } from './sql.ts';

/** Rows of one statement: more make it no faster. */
const STATEMENT_ROWS_MAX = 1_000;
/** How often a batch is begun again after a deadlock before the step gives it back. */
const TRANSACTION_ATTEMPTS_MAX = 3;

export interface Writer {
  readonly session: Session;
  readonly statements: Statements;
  readonly layout: Layout;
  readonly rows: RowMaker;
  readonly mode: MysqlConfig['mode'];
  readonly conflicts: Idempotency['key_conflicts'];
  /** Bytes that the rows of one statement may have. */
  readonly rowsBytesMax: number;
  /** Learnt from the last batch: its records were there already, so look before writing. Speed only. */
  expectsKnown: boolean;
}

/** Writes a batch as one transaction. Throws a ReplayFault; then nothing of it is in, unless the commit's answer was lost. */
export async function writeBatch(writer: Writer, batch: readonly ReplayRecord[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = Array.from({ length: batch.length });
  const source = rowSource(writer.rows, batch, outcomes);
  // Only with the stream's sequence as key no two records of a batch have the same: then rows are made as they are needed.
  if (writer.layout.key !== 'stream_sequence' || writer.expectsKnown) while (source.next().length > 0);
  let careful = false;
  for (let attempt = 1; ; attempt++) {
    try {
      await writeTransaction(writer, source, { outcomes, careful });
      return outcomes;
    } catch (error) {
      // Says nothing about the commit: if its answer was lost, the key settles what happened when the batch comes again.
      await writer.session.change('ROLLBACK').catch(() => undefined);
      if (error instanceof ChangedValues) careful = true;
      else if (!mayRestart(writer, error as DriverError) || attempt >= TRANSACTION_ATTEMPTS_MAX) {
        throw faultOf(error as DriverError, writer.session.server.flavour);
      }
    }
  }
}

/** Rows of a batch, made while the server is busy with those before. */
interface RowSource {
  readonly made: readonly Row[];
  /** Some more; none at the end. Records that cannot become rows are settled on the way. */
  next(): readonly Row[];
}

function rowSource(maker: RowMaker, batch: readonly ReplayRecord[], outcomes: Outcome[]): RowSource {
  const made: Row[] = [];
  let index = 0;
  return {
    made,
    next() {
      const before = made.length;
      for (; index < batch.length && made.length - before < STATEMENT_ROWS_MAX; index++) {
        const row = maker.make(batch[index]!, index);
        if ('sql' in row) made.push(row);
        else outcomes[index] = { kind: 'rejected', ...row };
      }
      return made.slice(before);
    },
  };
}

function mayRestart({ session }: Writer, error: DriverError): boolean {
  if (error instanceof ReplayFault) return false;
  const meaning = meaningOf(error, session.server.flavour);
  return meaning.kind === 'fault' && meaning.restart === true;
}

/** The server stored something else than was given, and only warned: rounded, or cut spaces at the end. */
class ChangedValues extends Error {}

interface Attempt {
  readonly outcomes: Outcome[];
  /** With a savepoint before each statement, so that one that changed values can be taken back. */
  readonly careful: boolean;
}

async function writeTransaction(writer: Writer, source: RowSource, attempt: Attempt): Promise<void> {
  const known = { found: 0 };
  await writer.session.change('START TRANSACTION');
  const { first, later } = splitByKey(source.made, writer.layout.key);
  await insertNew(writer, first, { ...attempt, known, source });
  for (let rest = later; rest.length > 0;) {
    // Rows of keys that this batch has just written: an upsert takes them all in order, an insert finds them there.
    const sorted = await sortKnown(writer, rest, { ...attempt, known });
    if (writer.mode === 'upsert') {
      await writeParts(writer, [...sorted.newer, ...sorted.unknown].toSorted(byIndex), { ...attempt, verb: 'upsert', known });
      rest = [];
    } else {
      const split = splitByKey(sorted.unknown, writer.layout.key);
      await insertNew(writer, split.first, { ...attempt, known });
      rest = split.later;
    }
  }
  await writer.session.change('COMMIT');
  writer.expectsKnown = known.found > source.made.length / 2;
}

interface Progress extends Attempt {
  readonly known: { found: number };
  /** Where more rows of this statement's kind come from. */
  readonly source?: RowSource;
}

async function insertNew(writer: Writer, rows: readonly Row[], progress: Progress): Promise<void> {
  let fresh = rows;
  if (writer.expectsKnown) {
    const sorted = await sortKnown(writer, rows, progress);
    fresh = sorted.unknown;
    const { source: _, ...alone } = progress;
    await writeParts(writer, sorted.newer, { ...alone, verb: 'upsert' });
  }
  await writeParts(writer, fresh, { ...progress, verb: 'insert' });
}

interface Sorted {
  readonly unknown: readonly Row[];
  /** For an upsert: newer than the row of their key. */
  readonly newer: readonly Row[];
}

/** Looks which keys are there already, and settles the records of those that stay as they are. */
async function sortKnown(writer: Writer, rows: readonly Row[], progress: Progress): Promise<Sorted> {
  const stored = await lookUp(writer, rows);
  const [unknown, newer]: [Row[], Row[]] = [[], []];
  for (const row of rows) {
    const held = stored.get(row.key());
    if (held === undefined) unknown.push(row);
    else if (writer.mode === 'upsert' && isNewer(row, held)) newer.push(row);
    else settleKnown(writer, row, held, progress);
  }
  return { unknown, newer };
}

async function lookUp(writer: Writer, rows: readonly Row[]): Promise<Map<string, Held>> {
  const { session, statements, layout, mode } = writer;
  const stored = new Map<string, Held>();
  for (let start = 0; start < rows.length; start += STATEMENT_ROWS_MAX) {
    const keys = new Set(rows.slice(start, start + STATEMENT_ROWS_MAX).map(({ keySql }) => keySql));
    for (const row of await session.rows(statements.lookup([...keys], mode === 'upsert' ? 'lock' : 'look'))) {
      stored.set(writer.rows.storedKey(row), heldOf(row, layout));
    }
  }
  return stored;
}

function heldOf(row: StoredRow, { origin }: Layout): Held {
  return origin === null ? { origin } : heldBy(row[origin.incarnation], row[origin.sequence]);
}

function settleKnown(writer: Writer, row: Row, held: Held, { outcomes, known }: Progress): void {
  known.found++;
  outcomes[row.index] = outcomeOfHeld(row, held, { mode: writer.mode, key: writer.layout.key, conflicts: writer.conflicts });
}

interface Parts extends Progress {
  readonly verb: 'insert' | 'upsert';
}

/**
 * Writes all rows in statements as large as goes. A statement with a bad row fails as a whole and leaves nothing; good rows are
 * never written twice. The rows before the one that the server names are known to be good; where it names none, halves are
 * tried. Where one row is bad others often are: after it the parts begin small again.
 */
async function writeParts(writer: Writer, all: readonly Row[], parts: Parts): Promise<void> {
  const rows = [...all];
  const makeMore = () => {
    if (parts.source !== undefined) rows.push(...parts.source.next());
  };
  let at = 0;
  let sizeMax = STATEMENT_ROWS_MAX;
  let bad: Span = nowhere;
  for (;;) {
    const size = sizeAt(at, bad) ?? sizeMax;
    if (rows.length - at < size) makeMore();
    if (at === rows.length) return;
    const part = takePart(rows, at, { size, bytesMax: writer.rowsBytesMax });
    const failure = await tryPart(writer, part, { ...parts, makeMore });
    if (failure === null) {
      for (const row of part) parts.outcomes[row.index] = { kind: 'written' };
      at += part.length;
      // Only whole parts let it grow again: otherwise every second row bad would mean a large failed statement for each.
      if (part.length >= sizeMax) sizeMax = Math.min(STATEMENT_ROWS_MAX, sizeMax * 2);
      continue;
    }
    if (failure.meaning.kind === 'duplicate' && parts.verb === 'insert') {
      const sorted = await sortKnown(writer, part, parts);
      if (sorted.unknown.length < part.length) {
        const { source: _, ...alone } = parts;
        await writeParts(writer, sorted.newer, { ...alone, verb: 'upsert' });
        rows.splice(at, part.length, ...sorted.unknown);
        bad = nowhere;
        continue;
      }
    }
    if (part.length > 1) {
      const named = at + (failure.row ?? 0) - 1;
      const isNamed = named >= at && named < at + part.length;
      bad = isNamed ? { first: named, next: named + 1 } : { first: at, next: at + part.length };
      continue;
    }
    await settleAlone(writer, part[0]!, failure, parts);
    at++;
    sizeMax = Math.max(1, sizeMax >> 2);
  }
}

/** Indexes of rows, the last exclusive. */
interface Span {
  readonly first: number;
  readonly next: number;
}

const nowhere: Span = { first: 0, next: 0 };

/** Rows of the next statement while a bad row is known to be within `bad`; null: behind it. */
function sizeAt(at: number, bad: Span): number | null {
  if (at < bad.first) return bad.first - at;
  return at < bad.next ? Math.ceil((bad.next - at) / 2) : null;
}

function takePart(
  rows: readonly Row[],
  at: number,
  { size, bytesMax }: { readonly size: number; readonly bytesMax: number },
): readonly Row[] {
  let bytes = 0;
  let end = at;
  while (end < rows.length && end - at < size) {
    bytes += rows[end]!.bytes + 1;
    if (bytes > bytesMax && end > at) break;
    end++;
  }
  return rows.slice(at, end);
}

interface Failure {
  readonly meaning: Exclude<Meaning, { kind: 'fault' }>;
  /** From 1. */
  readonly row: number | undefined;
  readonly column: string | undefined;
}

/** null: it is written. Throws what is not about a row. */
async function tryPart(
  writer: Writer,
  part: readonly Row[],
  { verb, careful, makeMore }: Parts & { readonly makeMore: () => void },
): Promise<Failure | null> {
  const sql = writer.statements[verb](part.map((row) => row.sql));
  return await tryStatement(writer, sql, { careful, meanwhile: makeMore });
}

async function tryStatement(
  writer: Writer,
  sql: string,
  { careful, meanwhile }: { readonly careful: boolean; readonly meanwhile?: () => void },
): Promise<Failure | null> {
  const { session, layout } = writer;
  if (careful) await session.change('SAVEPOINT part');
  try {
    const changing = session.change(sql);
    meanwhile?.();
    const { warnings } = await changing;
    if (warnings === 0) return null;
    const warning = await findChange(session);
    if (warning === null) return null;
    if (!careful) throw new ChangedValues();
    await session.change('ROLLBACK TO SAVEPOINT part');
    return failureOf(warning, { kind: 'reject', code: 'value_invalid' }, layout);
  } catch (error) {
    const meaning = meaningOf(error as DriverError, session.server.flavour);
    if (meaning.kind === 'fault') throw error;
    return failureOf(error as DriverError, meaning, layout);
  }
}

function failureOf(error: DriverError, meaning: Failure['meaning'], { columns }: Layout): Failure {
  const names = columns.map(({ name }) => name);
  return { meaning, row: rowHint(error), column: columnHint(error, names) };
}

/** The first warning that tells of a changed value; others, such as deprecations, do no harm. */
async function findChange(session: Session): Promise<DriverError | null> {
  const warnings = await session.rows('SHOW WARNINGS');
  const changed = warnings.find(
    ({ Code: code }) => meaningOf({ errno: Number(code) }, session.server.flavour).kind === 'reject',
  );
  return changed === undefined ? null : { errno: Number(changed['Code']), message: changed['Message'] };
}

/** A single row that the server refused: perhaps only its JSON, perhaps a key that compares equal in its own way. */
async function settleAlone(writer: Writer, row: Row, failure: Failure, parts: Parts): Promise<void> {
  const { outcomes, verb, careful } = parts;
  if (failure.meaning.kind === 'duplicate') {
    outcomes[row.index] = { kind: 'rejected', code: 'constraint_failed' };
    if (writer.layout.key === 'payload_field' && verb === 'insert') await settleEqualKey(writer, row, parts);
    return;
  }
  if (row.withoutJson !== null && failure.meaning.code === 'value_invalid') {
    const again = await tryStatement(writer, writer.statements[verb]([row.withoutJson()]), { careful });
    if (again === null) {
      outcomes[row.index] = { kind: 'written' };
      return;
    }
  }
  const { code } = failure.meaning;
  outcomes[row.index] = { kind: 'rejected', code, ...(failure.column === undefined ? {} : { field: failure.column }) };
}

/** A date or a padded text may equal a stored key without being spelt the same. */
async function settleEqualKey(writer: Writer, row: Row, parts: Parts): Promise<void> {
  const { session, statements, layout, mode } = writer;
  const [stored] = await session.rows(statements.lookup([row.keySql], mode === 'upsert' ? 'lock' : 'look'));
  if (stored === undefined) return;
  const held = heldOf(stored, layout);
  const isSame = held.origin !== null && held.origin.incarnation === row.incarnation && held.origin.sequence === row.sequence;
  if (isSame) settleKnown(writer, row, held, parts);
  else parts.outcomes[row.index] = { kind: 'rejected', code: 'key_conflict' };
}

function byIndex(a: Row, b: Row): number {
  return a.index - b.index;
}

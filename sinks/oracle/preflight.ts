import type { Layout } from '../sql/columns.ts';
import { judgeOrigin } from '../sql/findings.ts';
import type { Judged } from '../sql/findings.ts';
import type { OracleConfig } from './config.ts';
import { quoteName, quoteTable } from './names.ts';
import type { TableName } from './names.ts';
import type { ServerFacts } from './session.ts';
import { createTableSql } from './sql.ts';
import type { Privileges, TableColumn, TableFacts, UniqueKey } from './table.ts';

export interface Asked {
  readonly config: Pick<OracleConfig, 'mode' | 'create_table'>;
  readonly layout: Layout;
  readonly table: TableName;
  readonly server: ServerFacts;
}

const UNICODE_CHARACTER_SETS: ReadonlySet<string> = new Set(['AL32UTF8', 'UTF8', 'UTFE']);
/** 19c. */
const VERSION_MIN = 1_900_000_000;
/** Since 23ai a privilege can be granted on a whole schema, which the views asked here do not show. */
const VERSION_OF_SCHEMA_GRANTS = 2_300_000_000;

export function isUnicode({ characterSet }: Pick<ServerFacts, 'characterSet'>): boolean {
  return UNICODE_CHARACTER_SETS.has(characterSet);
}

export function judgeServer({ server }: Pick<Asked, 'server'>): Judged[] {
  const findings: Judged[] = [];
  if (server.role !== 'PRIMARY') {
    const next = 'Name the primary database in "connect_string".';
    findings.push({ severity: 'error', code: 'sink_denied', message: 'The database is a standby, which is read-only.', next });
  }
  if (server.version < VERSION_MIN) {
    const message = 'The database is older than 19c, for which this sink is made.';
    findings.push({ severity: 'warning', message, next: 'Try it with a dry run and a few records first.' });
  }
  if (!isUnicode(server)) {
    const message = `The database has the character set ${server.characterSet}: text with other than ASCII characters is refused in VARCHAR2, CHAR and CLOB columns.`;
    findings.push({ severity: 'warning', message, next: 'Use NVARCHAR2 columns for such text.' });
  }
  return findings;
}

export function judgeMissing({ config, layout, table, server }: Asked): Judged {
  const name = quoteTable(table);
  if (config.create_table) return { severity: 'info', message: 'The table is missing and will be created.' };
  const grant = `GRANT SELECT, INSERT, UPDATE ON ${name} TO ${quoteName(server.user)};`;
  const next = layout.isDefault
    ? `Set "create_table": true, or run: ${createTableSql(layout, table)};`
    : `Create ${name} with the columns of the target and a unique key of ${listOf(layout.keyColumns)}; or, if it is there: ${grant}`;
  return { severity: 'error', code: 'sink_missing', message: 'The table is missing, or the user may not see it.', next };
}

/** What stands against writing into this table, and what to know of it. */
export function judgeTable(facts: TableFacts, asked: Asked): Judged[] {
  return [
    ...judgeKind(facts, asked),
    ...judgeColumns(facts, asked),
    ...judgeKeys(facts, asked),
    ...judgeOrigin(asked.layout, asked.config.mode),
    ...judgeTriggers(facts),
  ];
}

/** By grants on the table and to the session; an owner has all of them. */
export function judgePrivileges({ owner }: TableFacts, privileges: Privileges, asked: Asked): Judged[] {
  const { config, server, table } = asked;
  if (owner === server.user) return [];
  const wanted = config.mode === 'upsert' ? ['SELECT', 'INSERT', 'UPDATE'] : ['SELECT', 'INSERT'];
  const has = (name: string) => privileges.granted.has(name) || privileges.system.has(`${name} ANY TABLE`);
  // Reading alone is enough where no row is locked.
  const missing = wanted.filter((name) => !has(name) && !(name === 'SELECT' && config.mode === 'insert' && has('READ')));
  if (missing.length === 0) return [];
  const isSure = server.version < VERSION_OF_SCHEMA_GRANTS;
  const message = `The user lacks ${missing.join(', ')} on the table${isSure ? '' : ', unless it was granted on the whole schema'}.`;
  const next = `GRANT ${wanted.join(', ')} ON ${quoteTable(table)} TO ${quoteName(server.user)};`;
  return [{ severity: isSure ? 'error' : 'warning', code: 'sink_denied', message, next }];
}

/** What it takes to make the table. */
export function judgeCreation({ system }: Privileges, { config, table, server }: Asked): Judged[] {
  const isOwn = table.schema === null || table.schema === server.user;
  const needed = isOwn ? 'CREATE TABLE' : 'CREATE ANY TABLE';
  if (!config.create_table || system.has(needed) || system.has('CREATE ANY TABLE')) return [];
  const message = `The user lacks ${needed}.`;
  const next = `GRANT ${needed} TO ${quoteName(server.user)};`;
  return [{ severity: 'error', code: 'sink_denied', message, next }];
}

function judgeKind({ isTable, temporary, readOnly }: TableFacts, { table }: Asked): Judged[] {
  if (!isTable) {
    const next = 'Name the table below it in "table".';
    return [{ severity: 'error', code: 'sink_unfit', message: 'It is a view, not a table.', next }];
  }
  if (temporary) {
    const message = 'It is a temporary table: its rows go with the session.';
    return [{ severity: 'error', code: 'sink_unfit', message, next: 'Name a table whose rows stay in "table".' }];
  }
  if (!readOnly) return [];
  const next = `ALTER TABLE ${quoteTable(table)} READ WRITE;`;
  return [{ severity: 'error', code: 'sink_denied', message: 'The table is read-only.', next }];
}

function judgeColumns(facts: TableFacts, asked: Asked): Judged[] {
  const { layout, table } = asked;
  const alter = `ALTER TABLE ${quoteTable(table)}`;
  const byName = new Map(facts.columns.map((column) => [column.name, column]));
  const findings: Judged[] = [];
  for (const { name } of layout.columns) {
    const column = byName.get(name);
    if (column === undefined) {
      const next = `${alter} ADD (${definitionOf(name, asked)});`;
      findings.push({ severity: 'error', code: 'sink_missing', message: `It has no column ${quoteName(name)}.`, next });
    } else if (column.virtual) {
      const message = `Its column ${quoteName(name)} is virtual and cannot be written.`;
      findings.push({ severity: 'error', code: 'sink_unfit', message, next: 'Leave it out of "columns".' });
    } else findings.push(...judgeColumn(column, asked));
  }
  const written = new Set(layout.columns.map(({ name }) => name));
  for (const column of facts.columns) {
    if (written.has(column.name) || column.nullable || column.hasDefault || column.virtual) continue;
    const message = `Its column ${quoteName(column.name)} must not be null, has no default, and is not written.`;
    const next = `Name it in "columns", or give it a default: ${alter} MODIFY (${quoteName(column.name)} DEFAULT VALUE);`;
    findings.push({ severity: 'error', code: 'sink_unfit', message, next });
  }
  return findings;
}

function judgeColumn(column: TableColumn, { layout, table }: Asked): Judged[] {
  const { name, type, collation } = column;
  const quoted = quoteName(name);
  const modify = (definition: string) => `ALTER TABLE ${quoteTable(table)} MODIFY (${quoted} ${definition});`;
  const { origin } = layout;
  const isKey = layout.keyColumns.includes(name);
  const isCompared = isKey || name === origin?.incarnation || name === origin?.sequence;
  const { kind } = column.class;
  if (isCompared && kind !== 'text' && kind !== 'number') {
    const message = `Its column ${quoted} is ${type}, by which a key, an incarnation or a sequence cannot be compared exactly.`;
    const next = 'Use a VARCHAR2 column for texts and a NUMBER column for numbers, and name that in "columns".';
    return [{ severity: 'error', code: 'sink_unfit', message, next }];
  }
  if (isCompared && (type === 'CHAR' || type === 'NCHAR')) {
    const message = `Its column ${quoted} is ${type}, which pads with spaces: "a" and "a " would be one key.`;
    return [{ severity: 'error', code: 'sink_unfit', message, next: modify('VARCHAR2(N CHAR)') }];
  }
  if (isCompared && collation !== null && !BINARY_COLLATIONS.has(collation)) {
    const message = `Its column ${quoted} compares by ${collation}, which may take different keys such as ABC and abc for one.`;
    return [{ severity: 'error', code: 'sink_unfit', message, next: modify('COLLATE BINARY') }];
  }
  if (type === 'CHAR' || type === 'NCHAR') {
    const message = `Its column ${quoted} is ${type}: shorter texts are padded with spaces.`;
    return [{ severity: 'info', message, next: 'Nothing, if that is meant; otherwise use VARCHAR2.' }];
  }
  if (kind !== 'other') return [];
  const message = `Its column ${quoted} is ${type}: values are given to it as text, and the database decides.`;
  return [{ severity: 'warning', message, next: 'Try it with a few records first.' }];
}

/** The last one: as the session compares, which is by bytes (session.ts). */
const BINARY_COLLATIONS: ReadonlySet<string> = new Set(['BINARY', 'USING_NLS_COMP', 'USING_NLS_SORT']);

function judgeKeys(facts: TableFacts, { config, layout, table }: Asked): Judged[] {
  const alter = `ALTER TABLE ${quoteTable(table)}`;
  const ours = facts.uniqueKeys.filter((key) => sameNames(key.columns, layout.keyColumns));
  const others = facts.uniqueKeys.filter((key) => !ours.includes(key) && !isRowNumber(key, facts, layout));
  const findings: Judged[] = [];
  if (ours.length === 0) {
    const message = `It has no unique key of exactly ${listOf(layout.keyColumns)}: records that come again would be stored again.`;
    findings.push({
      severity: 'error',
      code: 'sink_unfit',
      message,
      next: `${alter} ADD UNIQUE ${listOf(layout.keyColumns)};`,
    });
  }
  for (const { name } of [...ours, ...others].filter(({ deferrable }) => deferrable)) {
    const message = `Its constraint ${quoteName(name)} is deferrable: it can be violated until the commit, which does not tell by which record.`;
    const next = `${alter} DROP CONSTRAINT ${quoteName(name)}; and add it again without DEFERRABLE.`;
    findings.push({ severity: 'error', code: 'sink_unfit', message, next });
  }
  for (const { name } of others) {
    const message = `It has a second unique key, ${quoteName(name)}`;
    const next = `drop it: ${alter} DROP CONSTRAINT ${quoteName(name)}; or DROP INDEX for a unique index.`;
    if (config.mode === 'upsert') {
      const why = `${message}: an upsert could not tell which row it should replace.`;
      findings.push({ severity: 'error', code: 'sink_unfit', message: why, next: `Use "mode": "insert", or ${next}` });
    } else {
      const why = `${message}: a record that only it refuses is dead-lettered (constraint_failed).`;
      findings.push({ severity: 'warning', message: why, next: `Nothing, if that is meant; otherwise ${next}` });
    }
  }
  return findings;
}

/** A row number that the database makes is never refused. */
function isRowNumber({ columns: [name, ...rest] }: UniqueKey, facts: TableFacts, layout: Layout): boolean {
  const column = facts.columns.find((candidate) => candidate.name === name);
  const isWritten = layout.columns.some((candidate) => candidate.name === name);
  return rest.length === 0 && column?.class.kind === 'number' && column.hasDefault && !isWritten;
}

function judgeTriggers({ triggers }: TableFacts): Judged[] {
  return triggers.map((name) => ({
    severity: 'warning',
    message: `Its trigger ${quoteName(name)} may run for every row that is written.`,
    next: 'Nothing, if that is meant; otherwise disable it for the time of the replay.',
  }));
}

function definitionOf(name: string, { layout, table }: Asked): string {
  if (!layout.isDefault) return `${quoteName(name)} TYPE`;
  const lines = createTableSql(layout, table).split('\n');
  const line = lines.find((candidate) => candidate.trim().startsWith(`${quoteName(name)} `));
  return (line ?? `${quoteName(name)} TYPE`).trim().replace(/,$/, '');
}

function sameNames(columns: readonly string[], wanted: readonly string[]): boolean {
  return columns.length === wanted.length && columns.every((name) => wanted.includes(name));
}

function listOf(names: readonly string[]): string {
  return `(${names.map(quoteName).join(', ')})`;
}

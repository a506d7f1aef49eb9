import { STORED_AT } from '../sql/columns.ts';
import type { Layout } from '../sql/columns.ts';
import { quoteName, quoteTable } from './names.ts';
import type { TableName } from './names.ts';
import type { ColumnClass, ColumnShape } from './values.ts';

/**
 * Texts of statements. Values are always binds, by position; names are quoted. A layout here has names as the database keeps
 * them (names.ts).
 */

export interface Statements {
  /** One row. `empty`: the places of columns that get a LOB of length 0 instead of a bind. */
  insert(empty: readonly number[]): string;
  /** One row: a newer record replaces the row of its key. Never touches the key columns (the database forbids it). */
  merge(empty: readonly number[]): string;
  /** Key columns and, where the table has them, incarnation and sequence of the rows with so many keys. */
  lookup(keys: number, lock: 'lock' | 'look'): string;
}

export function statementsFor(layout: Layout, table: TableName, shapes: readonly ColumnShape[]): Statements {
  const name = quoteTable(table);
  const names = layout.columns.map((column) => quoteName(column.name));
  const valuesOf = (empty: readonly number[]): string[] => {
    let bind = 0;
    return shapes.map((shape, i) => (empty.includes(i) ? emptyLob(shape.class) : valueSql(shape.class, ++bind)));
  };
  return {
    insert: (empty) => `INSERT INTO ${name} (${names.join(', ')}) VALUES (${valuesOf(empty).join(', ')})`,
    merge: (empty) => mergeSql(layout, name, valuesOf(empty)),
    lookup: (keys, lock) => lookupSql(layout, name, { shapes, keys, lock }),
  };
}

function mergeSql(layout: Layout, table: string, values: readonly string[]): string {
  const given = layout.columns.map((column, i) => `${values[i]} ${quoteName(column.name)}`);
  const equal = layout.keyColumns.map((key) => `t.${quoteName(key)} = s.${quoteName(key)}`);
  const rest = layout.columns.map((column) => column.name).filter((column) => !layout.keyColumns.includes(column));
  const names = layout.columns.map((column) => quoteName(column.name));
  const update = rest.length === 0 ? '' : ` WHEN MATCHED THEN UPDATE SET ${setsOf(rest, layout).join(', ')}${newerSql(layout)}`;
  return (
    `MERGE INTO ${table} t USING (SELECT ${given.join(', ')} FROM DUAL) s ON (${equal.join(' AND ')})` +
    update +
    ` WHEN NOT MATCHED THEN INSERT (${names.join(', ')}) VALUES (${names.map((column) => `s.${column}`).join(', ')})`
  );
}

function setsOf(columns: readonly string[], { isDefault }: Layout): string[] {
  const sets = columns.map(quoteName).map((column) => `t.${column} = s.${column}`);
  return isDefault ? [...sets, `t.${quoteName(foldedStoredAt)} = SYSTIMESTAMP`] : sets;
}

/** Only where the table tells which record a row is of. */
function newerSql({ origin }: Layout): string {
  if (origin === null) return '';
  const [incarnation, sequence] = [quoteName(origin.incarnation), quoteName(origin.sequence)];
  const newer = `s.${incarnation} > t.${incarnation} OR (s.${incarnation} = t.${incarnation} AND s.${sequence} > t.${sequence})`;
  return ` WHERE (t.${incarnation} IS NULL OR t.${sequence} IS NULL OR ${newer})`;
}

function lookupSql(
  { keyColumns, origin, columns }: Layout,
  table: string,
  { shapes, keys, lock }: { readonly shapes: readonly ColumnShape[]; readonly keys: number; readonly lock: 'lock' | 'look' },
): string {
  const classes = keyColumns.map((key) => shapes[columns.findIndex(({ name }) => name === key)]!.class);
  let bind = 0;
  const tuples = Array.from({ length: keys }, () => inParentheses(classes.map((shape) => valueSql(shape, ++bind))));
  const wanted = [...keyColumns, ...(origin === null ? [] : [origin.incarnation, origin.sequence])].map(quoteName);
  const key = inParentheses(keyColumns.map(quoteName));
  // A lock takes the privilege to update, which `insert` does not need.
  return (
    `SELECT ${wanted.join(', ')} FROM ${table} WHERE ${key} IN (${tuples.join(', ')})` + (lock === 'lock' ? ' FOR UPDATE' : '')
  );
}

function inParentheses(parts: readonly string[]): string {
  return parts.length === 1 ? parts[0]! : `(${parts.join(', ')})`;
}

/** The database reads text for its own types by formats that we name: session settings could say anything. */
function valueSql(shape: ColumnClass, bind: number): string {
  switch (shape.kind) {
    case 'number':
      return `CAST(:${bind} AS NUMBER)`;
    case 'float':
      return `CAST(:${bind} AS ${shape.single ? 'BINARY_FLOAT' : 'BINARY_DOUBLE'})`;
    case 'time':
      switch (shape.form) {
        case 'date':
          return `TO_DATE(:${bind}, 'YYYY-MM-DD"T"HH24:MI:SS')`;
        case 'timestamp':
          return `TO_TIMESTAMP(:${bind}, 'YYYY-MM-DD"T"HH24:MI:SS.FF9')`;
        case 'timestamp_tz':
          return `TO_TIMESTAMP_TZ(:${bind}, 'YYYY-MM-DD"T"HH24:MI:SS.FF9TZH:TZM')`;
      }
    default:
      return `:${bind}`;
  }
}

function emptyLob({ kind }: ColumnClass): string {
  return kind === 'clob' ? 'EMPTY_CLOB()' : 'EMPTY_BLOB()';
}

/** Texts of errors in English, numbers with a point, UTC, and comparison by bytes, whatever the database is set to. */
export const SESSION_SQL: readonly string[] = [
  "ALTER SESSION SET NLS_LANGUAGE = 'AMERICAN'",
  "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'",
  "ALTER SESSION SET NLS_COMP = 'BINARY'",
  "ALTER SESSION SET NLS_SORT = 'BINARY'",
  "ALTER SESSION SET TIME_ZONE = '+00:00'",
];

/** User, schema, role of the database, character set. */
export const FACTS_SQL =
  "SELECT USER, SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA'), SYS_CONTEXT('USERENV', 'DATABASE_ROLE'), VALUE " +
  "FROM NLS_DATABASE_PARAMETERS WHERE PARAMETER = 'NLS_CHARACTERSET'";

const foldedStoredAt = STORED_AT.toUpperCase();
/** What a VARCHAR2 holds whatever the database is set to. */
const TEXT_BYTES = 4_000;
/** Four bytes a character at most: an index of the usual block size holds it. */
const KEY_CHARACTERS = 1_000;

/** The default table. Its keys compare as bytes, which is what a database compares by unless a column says otherwise. */
export function createTableSql(layout: Layout, table: TableName): string {
  const messageId = layout.key === 'message_id' ? `VARCHAR2(${KEY_CHARACTERS} CHAR) NOT NULL` : `VARCHAR2(${TEXT_BYTES} BYTE)`;
  const columns = [
    '"STREAM_NAME" VARCHAR2(255 CHAR) NOT NULL',
    '"STREAM_INCARNATION" VARCHAR2(40 CHAR) NOT NULL',
    '"STREAM_SEQUENCE" NUMBER(20) NOT NULL',
    `"SUBJECT" VARCHAR2(${TEXT_BYTES} BYTE) NOT NULL`,
    '"MESSAGE_TIME_NS" NUMBER(20) NOT NULL',
    `"MESSAGE_ID" ${messageId}`,
    '"HEADERS" CLOB NOT NULL',
    '"PAYLOAD" BLOB NOT NULL',
    '"PAYLOAD_JSON" CLOB',
    '"REPLAY_PLAN" VARCHAR2(255 CHAR) NOT NULL',
    '"REPLAY_RUN" VARCHAR2(64 CHAR) NOT NULL',
    `"${foldedStoredAt}" TIMESTAMP(6) WITH TIME ZONE DEFAULT SYSTIMESTAMP NOT NULL`,
    `PRIMARY KEY (${layout.keyColumns.map(quoteName).join(', ')})`,
  ];
  return `CREATE TABLE ${quoteTable(table)} (\n  ${columns.join(',\n  ')}\n)`;
}

import { STORED_AT } from '../sql/columns.ts';
import type { Layout } from '../sql/columns.ts';
import type { Flavour } from './errors.ts';

/** Texts of statements. Names and values are spelt here, because the session's sql_mode (session.ts) fixes how. */

export function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

export function quoteText(text: string): string {
  const isPlain = !text.includes("'") && !text.includes('\\') && !text.includes('\0');
  return isPlain ? `'${text}'` : `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll('\0', '\\0')}'`;
}

/** `database` and `table`, quoted: `shop`.`orders`. */
export function tableName({ database, table }: { readonly database: string; readonly table: string }): string {
  return `${quoteName(database)}.${quoteName(table)}`;
}

export interface Statements {
  /** A statement of these rows, each `(value, ...)`. */
  insert(rows: readonly string[]): string;
  /** Newer rows replace those of their key. */
  upsert(rows: readonly string[]): string;
  /** Key columns and, where the table has them, incarnation and sequence of the rows with these keys. */
  lookup(keys: readonly string[], lock: 'lock' | 'look'): string;
  /** Bytes of `insert` and `upsert` around their rows. */
  readonly overheadBytes: number;
}

export function statementsFor(layout: Layout, table: string, flavour: Flavour): Statements {
  const names = layout.columns.map(({ name }) => quoteName(name)).join(',');
  const head = `INSERT INTO ${table} (${names}) VALUES `;
  const tail = upsertTail(layout, table, flavour);
  const keys = layout.keyColumns.map(quoteName);
  const origin = layout.origin === null ? [] : [layout.origin.incarnation, layout.origin.sequence].map(quoteName);
  const wanted = keys.length === 1 ? keys[0]! : `(${keys.join(',')})`;
  return {
    insert: (rows) => head + rows.join(','),
    upsert: (rows) => head + rows.join(',') + tail,
    // A lock takes the privilege to update, which `insert` does not need.
    lookup: (values, lock) =>
      `SELECT ${[...keys, ...origin].join(',')} FROM ${table} WHERE ${wanted} IN (${values.join(',')})` +
      (lock === 'lock' ? ' FOR UPDATE' : ''),
    overheadBytes: Buffer.byteLength(head + tail),
  };
}

/**
 * The sequence is set after all columns that are decided by it, and the incarnation after the sequence: assignments take
 * effect from left to right, and each must still see the row's old place.
 */
function upsertTail(layout: Layout, table: string, flavour: Flavour): string {
  const given = (name: string) => (flavour === 'mariadb' ? `VALUES(${quoteName(name)})` : `new.${quoteName(name)}`);
  const held = (name: string) => `${table}.${quoteName(name)}`;
  const alias = flavour === 'mariadb' ? '' : ' AS new';
  const rest = layout.columns.map(({ name }) => name).filter((name) => !layout.keyColumns.includes(name));
  const set = (name: string, value: string) => `${quoteName(name)}=${value}`;
  const { origin } = layout;
  if (origin === null) {
    const sets = rest.map((name) => set(name, given(name)));
    const [key] = layout.keyColumns as [string];
    return `${alias} ON DUPLICATE KEY UPDATE ${(sets.length > 0 ? sets : [set(key, held(key))]).join(',')}`;
  }
  const { incarnation, sequence } = origin;
  const newer = `(${given(incarnation)},${given(sequence)})>(${held(incarnation)},${held(sequence)})`;
  const ifNewer = (name: string, value: string) => set(name, `IF(${newer},${value},${held(name)})`);
  const last = [sequence, incarnation].filter((name) => rest.includes(name));
  const sets = rest.filter((name) => !last.includes(name)).map((name) => ifNewer(name, given(name)));
  if (layout.isDefault) sets.push(ifNewer(STORED_AT, 'CURRENT_TIMESTAMP(6)'));
  sets.push(...last.map((name) => ifNewer(name, given(name))));
  return `${alias} ON DUPLICATE KEY UPDATE ${sets.join(',')}`;
}

const SUBJECT_CHARACTERS = 4_096;
/** What an InnoDB index can hold of four-byte characters. */
const KEY_CHARACTERS = 768;

/** The default table. Text compares as bytes: no collation may merge `ABC` and `abc`. */
export function createTableSql(layout: Layout, table: string, flavour: Flavour): string {
  const collation = binaryCollation(flavour);
  const text = (characters: number) => `VARCHAR(${characters}) CHARACTER SET utf8mb4 COLLATE ${collation}`;
  const messageId =
    layout.key === 'message_id' ? `${text(KEY_CHARACTERS)} NOT NULL` : `TEXT CHARACTER SET utf8mb4 COLLATE ${collation}`;
  const columns = [
    `stream_name ${text(255)} NOT NULL`,
    `stream_incarnation ${text(40)} NOT NULL`,
    'stream_sequence BIGINT UNSIGNED NOT NULL',
    `subject ${text(SUBJECT_CHARACTERS)} NOT NULL`,
    'message_time_ns BIGINT NOT NULL',
    `message_id ${messageId}`,
    'headers JSON NOT NULL',
    'payload LONGBLOB NOT NULL',
    'payload_json JSON',
    `replay_plan ${text(255)} NOT NULL`,
    `replay_run ${text(64)} NOT NULL`,
    `${STORED_AT} TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)`,
    `PRIMARY KEY (${layout.keyColumns.join(', ')})`,
  ];
  return `CREATE TABLE IF NOT EXISTS ${table} (\n  ${columns.join(',\n  ')}\n) ENGINE=InnoDB`;
}

/** Of those without padding where the server has one: `a` and `a ` are two keys. */
export function binaryCollation(flavour: Flavour): string {
  return flavour === 'mariadb' ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin';
}

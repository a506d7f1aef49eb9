import type { Layout } from '../sql/columns.ts';
import type { MysqlConfig } from './config.ts';
import type { Row, Session } from './session.ts';
import { quoteText } from './sql.ts';
import type { Statements } from './sql.ts';
import { depthMaxMariadb } from './json-type.ts';
import type { ColumnClass, ColumnShape } from './values.ts';

export interface TableColumn extends ColumnShape {
  readonly hasDefault: boolean;
  readonly generated: boolean;
  readonly characterSet: string | null;
  readonly collation: string | null;
}

export interface UniqueKey {
  readonly name: string;
  /** null stands for a part that is an expression or a prefix of a column. */
  readonly columns: readonly (string | null)[];
}

/** What the server tells of a table that is there. */
export interface TableFacts {
  readonly engine: string | null;
  readonly isTable: boolean;
  readonly columns: readonly TableColumn[];
  readonly uniqueKeys: readonly UniqueKey[];
  readonly triggers: readonly string[];
}

export interface Place {
  readonly database: string;
  readonly table: string;
}

type Mode = MysqlConfig['mode'];

/** null: no such table, or none that this user may see. */
export async function readTable(session: Session, place: Place): Promise<TableFacts | null> {
  const at = (schema: string, table: string) =>
    `${schema} = ${quoteText(place.database)} AND ${table} = ${quoteText(place.table)}`;
  const here = at('TABLE_SCHEMA', 'TABLE_NAME');
  const [table] = await session.rows(
    `SELECT ENGINE AS engine, TABLE_TYPE AS type FROM information_schema.TABLES WHERE ${here}`,
  );
  if (table === undefined) return null;
  const columns = await session.rows(
    `SELECT COLUMN_NAME AS name, DATA_TYPE AS type, IS_NULLABLE AS nullable, COLUMN_DEFAULT AS value, EXTRA AS extra,
       CHARACTER_SET_NAME AS charset, COLLATION_NAME AS collation, DATETIME_PRECISION AS decimals
     FROM information_schema.COLUMNS WHERE ${here} ORDER BY ORDINAL_POSITION`,
  );
  const keys = await session.rows(
    `SELECT INDEX_NAME AS name, COLUMN_NAME AS part, SUB_PART AS prefix
     FROM information_schema.STATISTICS WHERE ${here} AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX`,
  );
  const triggers = await session.rows(
    `SELECT TRIGGER_NAME AS name FROM information_schema.TRIGGERS WHERE ${at('EVENT_OBJECT_SCHEMA', 'EVENT_OBJECT_TABLE')}`,
  );
  const jsonColumns = session.server.flavour === 'mariadb' ? await readJsonColumns(session, place) : new Set<string>();
  return {
    engine: table['engine'] === null ? null : String(table['engine']),
    isTable: table['type'] === 'BASE TABLE',
    columns: columns.map((row) => columnOf(row, jsonColumns)),
    uniqueKeys: uniqueKeysOf(keys),
    triggers: triggers.map((row) => String(row['name'])),
  };
}

/** Whether the user may do what a write does; nothing is read or written. Throws what the server refuses. */
export async function checkPrivileges(session: Session, statements: Statements, layout: Layout, mode: Mode): Promise<void> {
  const row = `(${layout.columns.map(() => 'NULL').join(',')})`;
  await session.rows(`EXPLAIN ${mode === 'upsert' ? statements.upsert([row]) : statements.insert([row])}`);
  const key = `(${layout.keyColumns.map(() => 'NULL').join(',')})`;
  await session.rows(`EXPLAIN ${statements.lookup([key], mode === 'upsert' ? 'lock' : 'look')}`);
}

/** MariaDB's JSON is text with a check. */
async function readJsonColumns(session: Session, { database, table }: Place): Promise<ReadonlySet<string>> {
  const checks = await session.rows(
    `SELECT CHECK_CLAUSE AS clause FROM information_schema.CHECK_CONSTRAINTS
     WHERE CONSTRAINT_SCHEMA = ${quoteText(database)} AND TABLE_NAME = ${quoteText(table)}`,
  );
  return new Set(checks.flatMap(({ clause }) => /^json_valid\(`(.+)`\)$/i.exec(String(clause))?.[1] ?? []));
}

function columnOf(row: Row, jsonColumns: ReadonlySet<string>): TableColumn {
  const name = String(row['name']);
  const extra = String(row['extra'] ?? '').toUpperCase();
  return {
    name,
    class: jsonColumns.has(name) ? 'json' : classOf(String(row['type'])),
    nullable: row['nullable'] === 'YES',
    secondDecimals: Number(row['decimals'] ?? 0),
    ...(jsonColumns.has(name) ? { jsonDepthMax: depthMaxMariadb } : {}),
    hasDefault: row['value'] !== null || extra.includes('AUTO_INCREMENT') || extra.includes('DEFAULT_GENERATED'),
    generated: /\b(VIRTUAL|STORED|PERSISTENT) (GENERATED)?|\bGENERATED ALWAYS\b/.test(`${extra} `),
    characterSet: row['charset'] === null ? null : String(row['charset']),
    collation: row['collation'] === null ? null : String(row['collation']),
  };
}

const classes: Readonly<Record<ColumnClass, readonly string[]>> = {
  text: ['char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext', 'enum', 'set'],
  binary: ['binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob'],
  integer: ['tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year'],
  number: ['decimal', 'float', 'double'],
  temporal: ['datetime', 'timestamp'],
  json: ['json'],
  other: [],
};

function classOf(type: string): ColumnClass {
  const found = Object.entries(classes).find(([, types]) => types.includes(type.toLowerCase()));
  return found === undefined ? 'other' : (found[0] as ColumnClass);
}

function uniqueKeysOf(rows: readonly Row[]): UniqueKey[] {
  const keys = new Map<string, (string | null)[]>();
  for (const row of rows) {
    const columns = keys.get(String(row['name'])) ?? [];
    columns.push(row['prefix'] === null && row['part'] != null ? String(row['part']) : null);
    keys.set(String(row['name']), columns);
  }
  return [...keys].map(([name, columns]) => ({ name, columns }));
}

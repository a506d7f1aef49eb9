import type { Cells, Session } from './session.ts';
import type { ColumnClass, ColumnShape } from './values.ts';

export interface TableColumn extends ColumnShape {
  /** As the dictionary calls it, such as TIMESTAMP(6) WITH TIME ZONE. */
  readonly type: string;
  readonly hasDefault: boolean;
  readonly virtual: boolean;
  /** null: as the session compares, which is by bytes. */
  readonly collation: string | null;
}

/** A unique constraint, or a unique index without one. */
export interface UniqueKey {
  readonly owner: string;
  readonly name: string;
  /** Checked at the commit, or may be: then a statement does not tell which row it refuses. */
  readonly deferrable: boolean;
  readonly columns: readonly string[];
}

/** What the dictionary tells of a table that is there. */
export interface TableFacts {
  readonly owner: string;
  readonly isTable: boolean;
  readonly temporary: boolean;
  readonly readOnly: boolean;
  readonly columns: readonly TableColumn[];
  readonly uniqueKeys: readonly UniqueKey[];
  readonly triggers: readonly string[];
}

export interface Place {
  readonly owner: string;
  readonly table: string;
}

/** Each with the binds owner and table. */
export const dictionary = {
  objects:
    "SELECT OBJECT_TYPE FROM ALL_OBJECTS WHERE OWNER = :1 AND OBJECT_NAME = :2 AND OBJECT_TYPE IN ('TABLE', 'VIEW', 'MATERIALIZED VIEW')",
  tables: 'SELECT TEMPORARY, READ_ONLY FROM ALL_TABLES WHERE OWNER = :1 AND TABLE_NAME = :2',
  columns:
    'SELECT COLUMN_NAME, DATA_TYPE, DATA_LENGTH, DATA_SCALE, NULLABLE, DEFAULT_LENGTH, VIRTUAL_COLUMN, IDENTITY_COLUMN, COLLATION ' +
    "FROM ALL_TAB_COLS WHERE OWNER = :1 AND TABLE_NAME = :2 AND HIDDEN_COLUMN = 'NO' ORDER BY COLUMN_ID",
  constraints:
    'SELECT c.CONSTRAINT_NAME, c.INDEX_NAME, c.DEFERRABLE, k.COLUMN_NAME FROM ALL_CONSTRAINTS c ' +
    'JOIN ALL_CONS_COLUMNS k ON (k.OWNER = c.OWNER AND k.CONSTRAINT_NAME = c.CONSTRAINT_NAME) ' +
    "WHERE c.OWNER = :1 AND c.TABLE_NAME = :2 AND c.CONSTRAINT_TYPE IN ('P', 'U') AND c.STATUS = 'ENABLED' " +
    'ORDER BY c.CONSTRAINT_NAME, k.POSITION',
  indexes:
    'SELECT i.OWNER, i.INDEX_NAME, k.COLUMN_NAME FROM ALL_INDEXES i ' +
    'JOIN ALL_IND_COLUMNS k ON (k.INDEX_OWNER = i.OWNER AND k.INDEX_NAME = i.INDEX_NAME) ' +
    "WHERE i.TABLE_OWNER = :1 AND i.TABLE_NAME = :2 AND i.UNIQUENESS = 'UNIQUE' ORDER BY i.INDEX_NAME, k.COLUMN_POSITION",
  triggers:
    "SELECT TRIGGER_NAME FROM ALL_TRIGGERS WHERE TABLE_OWNER = :1 AND TABLE_NAME = :2 AND STATUS = 'ENABLED' ORDER BY TRIGGER_NAME",
  grants:
    'SELECT PRIVILEGE FROM ALL_TAB_PRIVS WHERE TABLE_SCHEMA = :1 AND TABLE_NAME = :2 ' +
    "AND (GRANTEE = USER OR GRANTEE = 'PUBLIC' OR GRANTEE IN (SELECT ROLE FROM SESSION_ROLES))",
} as const;
export const SYSTEM_PRIVILEGES_SQL = 'SELECT PRIVILEGE FROM SESSION_PRIVS';

/** null: no such table, or none that this user may see. */
export async function readTable(session: Session, { owner, table }: Place): Promise<TableFacts | null> {
  const ask = (query: keyof typeof dictionary) => session.rows(dictionary[query], [owner, table]);
  const types = (await ask('objects')).map(([type]) => type);
  if (types.length === 0) return null;
  const [temporary, readOnly] = (await ask('tables'))[0] ?? [];
  const columns = (await ask('columns')).map(columnOf);
  const uniqueKeys = uniqueKeysOf(owner, await ask('constraints'), await ask('indexes'));
  const triggers = (await ask('triggers')).map(([name]) => name!);
  return {
    owner,
    isTable: types.includes('TABLE') && !types.includes('MATERIALIZED VIEW'),
    temporary: temporary === 'Y',
    readOnly: readOnly === 'YES',
    columns,
    uniqueKeys,
    triggers,
  };
}

export interface Privileges {
  /** On the table. */
  readonly granted: ReadonlySet<string>;
  /** Of the session, such as INSERT ANY TABLE. */
  readonly system: ReadonlySet<string>;
}

/** By the dictionary: nothing is read or written. */
export async function readPrivileges(session: Session, { owner, table }: Place): Promise<Privileges> {
  const granted = await session.rows(dictionary.grants, [owner, table]);
  const system = await session.rows(SYSTEM_PRIVILEGES_SQL);
  return { granted: new Set(granted.map(([name]) => name!)), system: new Set(system.map(([name]) => name!)) };
}

function columnOf([name, type, length, scale, nullable, defaultLength, virtual, identity, collation]: Cells): TableColumn {
  return {
    name: name!,
    type: type!,
    class: classOf(type!, { length: Number(length), scale: scale == null ? null : Number(scale) }),
    nullable: nullable === 'Y',
    hasDefault: defaultLength != null || identity === 'YES',
    virtual: virtual === 'YES',
    collation: collation ?? null,
  };
}

export function classOf(
  type: string,
  { length, scale }: { readonly length: number; readonly scale: number | null },
): ColumnClass {
  const time = /^TIMESTAMP\((\d)\)( WITH (LOCAL )?TIME ZONE)?$/.exec(type);
  if (time !== null) {
    return { kind: 'time', form: time[2] === undefined ? 'timestamp' : 'timestamp_tz', secondDecimals: Number(time[1]) };
  }
  switch (type) {
    case 'VARCHAR2':
    case 'CHAR':
      return { kind: 'text', bytesMax: length, national: false };
    case 'NVARCHAR2':
    case 'NCHAR':
      return { kind: 'text', bytesMax: length, national: true };
    case 'CLOB':
    case 'NCLOB':
      return { kind: 'clob' };
    case 'RAW':
      return { kind: 'raw', bytesMax: length };
    case 'BLOB':
      return { kind: 'blob' };
    case 'NUMBER':
    case 'FLOAT':
      return { kind: 'number', scale };
    case 'BINARY_FLOAT':
    case 'BINARY_DOUBLE':
      return { kind: 'float', single: type === 'BINARY_FLOAT' };
    case 'DATE':
      return { kind: 'time', form: 'date', secondDecimals: 0 };
    case 'JSON':
      return { kind: 'json' };
    default:
      return { kind: 'other' };
  }
}

function uniqueKeysOf(owner: string, constraints: readonly Cells[], indexes: readonly Cells[]): UniqueKey[] {
  const keys = new Map<string, Omit<UniqueKey, 'columns'> & { readonly columns: string[] }>();
  const add = (key: Omit<UniqueKey, 'columns'>, column: string) => {
    const known = keys.get(`${key.owner}.${key.name}`) ?? { ...key, columns: [] };
    known.columns.push(column);
    keys.set(`${key.owner}.${key.name}`, known);
  };
  for (const [name, , deferrable, column] of constraints) {
    add({ owner, name: name!, deferrable: deferrable === 'DEFERRABLE' }, column!);
  }
  // The index of a constraint is named by the constraint when it is violated.
  const taken = new Set<string | null | undefined>(constraints.map(([, index]) => index));
  for (const [indexOwner, name, column] of indexes) {
    if (!taken.has(name)) add({ owner: indexOwner!, name: name!, deferrable: false }, column!);
  }
  return [...keys.values()];
}

import { bindTypes } from './database.ts';
import type { BindType, OracleError } from './database.ts';

/** Oracle's statements and errors, and those of H2 in its Oracle mode. The translation is ours: it shows nothing of Oracle. */

/** In a list that is selected, Oracle takes no longer values than these as they are. */
const SELECTED_TEXT_BYTES_MAX = 4_000;
const SELECTED_RAW_BYTES_MAX = 2_000;

export type Translated =
  | {
      readonly kind: 'statement';
      readonly sql: string;
      /** Which bind each question mark stands for. */ readonly order: readonly number[];
    }
  | { readonly kind: 'nothing to do' }
  | { readonly kind: 'refused'; readonly error: OracleError };

export function translate(sql: string, binds: readonly BindType[], user: string): Translated {
  if (/^\s*ALTER SESSION SET \w+ = ('[^']*'|\w+)$/.test(sql)) return { kind: 'nothing to do' };
  const isMerge = /^\s*MERGE\b/i.test(sql);
  if (isMerge && binds.some(isTooLongToSelect)) {
    return { kind: 'refused', error: { number: 1461, message: 'can bind a LONG value only for insert into a LONG column' } };
  }
  const order: number[] = [];
  const tokens = /SYS_CONTEXT\('USERENV', '(\w+)'\)|'(?:[^']|'')*'|"[^"]*"|:(\d+)|\bEMPTY_([BC])LOB\(\)|\bUSER\b/g;
  const text = sql.replace(tokens, (whole, context?: string, bind?: string, lob?: string) => {
    if (context !== undefined)
      return context === 'CURRENT_SCHEMA' ? quoted(user) : context === 'DATABASE_ROLE' ? "'PRIMARY'" : 'NULL';
    if (lob !== undefined) return lob === 'B' ? "CAST(X'' AS BLOB)" : 'SYS.EMPTY_CLOB()';
    if (whole === 'USER') return quoted(user);
    if (bind === undefined) return whole;
    const place = Number(bind) - 1;
    order.push(place);
    // Elsewhere H2 knows the type from what the value is compared with, or stored in.
    return isMerge ? `CAST(? AS ${typeOf(binds[place]!)})` : '?';
  });
  return { kind: 'statement', sql: text, order };
}

function isTooLongToSelect({ type, size }: BindType): boolean {
  return (
    (type === bindTypes.varchar && size > SELECTED_TEXT_BYTES_MAX) || (type === bindTypes.raw && size > SELECTED_RAW_BYTES_MAX)
  );
}

function typeOf({ type }: BindType): string {
  switch (type) {
    case bindTypes.number:
      return 'NUMERIC(40)';
    case bindTypes.raw:
      return 'VARBINARY(2000)';
    case bindTypes.clob:
      return 'CLOB';
    case bindTypes.blob:
      return 'BLOB';
    default:
      return 'VARCHAR(4000)';
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** By number of H2. */
const numbers: Readonly<Record<number, number>> = {
  23505: 1,
  22001: 12899,
  22003: 1438,
  23502: 1400,
  23513: 2290,
  23506: 2291,
  23503: 2292,
  22018: 1722,
  22007: 1861,
  42101: 955,
  42102: 942,
  42103: 942,
  42104: 942,
  42122: 904,
  42000: 900,
  42001: 900,
  21002: 913,
  40001: 60,
  90131: 8177,
  50200: 54,
  57014: 1013,
};
const UNTRANSLATED = 600;

/** The column is named as Oracle names it; the table is not known here. */
export function translateError(number: number, text: string, user: string): OracleError {
  const column = /column "([^" ]+)/.exec(text)?.[1];
  const place = column === undefined ? '' : ` "${user}"."T"."${column}"`;
  const isNumeric = /column "\S+ (NUMERIC|DECFLOAT)/.test(text);
  if (number === 22001 && isNumeric)
    return { number: 1438, message: `value larger than specified precision for column${place}` };
  if (number === 23505) return { number: 1, message: `unique constraint ${text} violated` };
  return { number: numbers[number] ?? UNTRANSLATED, message: `[H2 ${number}]${place}` };
}

/** The views of the dictionary that the sink asks, over those of H2; and grants, which tests write by hand. */
export const dictionarySql: readonly string[] = [
  'CREATE SCHEMA SYS',
  `CREATE VIEW SYS.ALL_OBJECTS AS SELECT TABLE_SCHEMA OWNER, TABLE_NAME OBJECT_NAME,
     CASE WHEN TABLE_TYPE = 'VIEW' THEN 'VIEW' ELSE 'TABLE' END OBJECT_TYPE FROM INFORMATION_SCHEMA.TABLES`,
  `CREATE VIEW SYS.ALL_TABLES AS SELECT TABLE_SCHEMA OWNER, TABLE_NAME,
     CASE WHEN TABLE_TYPE LIKE '%TEMPORARY%' THEN 'Y' ELSE 'N' END TEMPORARY, 'NO' READ_ONLY
     FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE <> 'VIEW'`,
  `CREATE VIEW SYS.ALL_TAB_COLS AS SELECT TABLE_SCHEMA OWNER, TABLE_NAME, COLUMN_NAME, CASE DATA_TYPE
       WHEN 'CHARACTER VARYING' THEN 'VARCHAR2' WHEN 'CHARACTER' THEN 'CHAR'
       WHEN 'NUMERIC' THEN 'NUMBER' WHEN 'DECFLOAT' THEN 'NUMBER' WHEN 'DOUBLE PRECISION' THEN 'BINARY_DOUBLE' WHEN 'REAL' THEN 'BINARY_FLOAT'
       WHEN 'BINARY LARGE OBJECT' THEN 'BLOB' WHEN 'CHARACTER LARGE OBJECT' THEN 'CLOB' WHEN 'BINARY VARYING' THEN 'RAW'
       WHEN 'TIMESTAMP' THEN CASE DATETIME_PRECISION WHEN 0 THEN 'DATE' ELSE 'TIMESTAMP(' || DATETIME_PRECISION || ')' END
       WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'TIMESTAMP(' || DATETIME_PRECISION || ') WITH TIME ZONE'
       ELSE DATA_TYPE END DATA_TYPE,
     CASE WHEN DATA_TYPE LIKE 'BINARY%' THEN LEAST(CHARACTER_OCTET_LENGTH, 4000) ELSE LEAST(CHARACTER_OCTET_LENGTH, 1000) * 4 END DATA_LENGTH,
     NUMERIC_SCALE DATA_SCALE, CASE IS_NULLABLE WHEN 'YES' THEN 'Y' ELSE 'N' END NULLABLE,
     LENGTH(COLUMN_DEFAULT) DEFAULT_LENGTH, CASE IS_GENERATED WHEN 'ALWAYS' THEN 'YES' ELSE 'NO' END VIRTUAL_COLUMN,
     IS_IDENTITY IDENTITY_COLUMN, CAST(NULL AS VARCHAR) COLLATION, 'NO' HIDDEN_COLUMN, ORDINAL_POSITION COLUMN_ID
     FROM INFORMATION_SCHEMA.COLUMNS`,
  `CREATE VIEW SYS.ALL_CONSTRAINTS AS SELECT CONSTRAINT_SCHEMA OWNER, CONSTRAINT_NAME, TABLE_NAME, INDEX_NAME,
     CASE CONSTRAINT_TYPE WHEN 'PRIMARY KEY' THEN 'P' WHEN 'UNIQUE' THEN 'U' WHEN 'CHECK' THEN 'C' ELSE 'R' END CONSTRAINT_TYPE,
     'ENABLED' STATUS, 'NOT DEFERRABLE' DEFERRABLE FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS`,
  `CREATE VIEW SYS.ALL_CONS_COLUMNS AS SELECT CONSTRAINT_SCHEMA OWNER, CONSTRAINT_NAME, COLUMN_NAME, ORDINAL_POSITION POSITION
     FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE`,
  `CREATE VIEW SYS.ALL_INDEXES AS SELECT INDEX_SCHEMA OWNER, INDEX_NAME, TABLE_SCHEMA TABLE_OWNER, TABLE_NAME,
     CASE WHEN INDEX_TYPE_NAME IN ('PRIMARY KEY', 'UNIQUE INDEX') THEN 'UNIQUE' ELSE 'NONUNIQUE' END UNIQUENESS
     FROM INFORMATION_SCHEMA.INDEXES`,
  `CREATE VIEW SYS.ALL_IND_COLUMNS AS SELECT INDEX_SCHEMA INDEX_OWNER, INDEX_NAME, COLUMN_NAME, ORDINAL_POSITION COLUMN_POSITION
     FROM INFORMATION_SCHEMA.INDEX_COLUMNS`,
  'CREATE TABLE SYS.ALL_TRIGGERS (TRIGGER_NAME VARCHAR(128), TABLE_OWNER VARCHAR(128), TABLE_NAME VARCHAR(128), STATUS VARCHAR(8))',
  'CREATE TABLE SYS.ALL_TAB_PRIVS (GRANTEE VARCHAR(128), TABLE_SCHEMA VARCHAR(128), TABLE_NAME VARCHAR(128), PRIVILEGE VARCHAR(40))',
  'CREATE TABLE SYS.SESSION_ROLES (ROLE VARCHAR(128))',
  'CREATE TABLE SYS.SESSION_PRIVS (PRIVILEGE VARCHAR(40))',
  "INSERT INTO SYS.SESSION_PRIVS VALUES ('CREATE SESSION'), ('CREATE TABLE')",
  'CREATE TABLE SYS.NLS_DATABASE_PARAMETERS (PARAMETER VARCHAR(64), "VALUE" VARCHAR(64))',
  "INSERT INTO SYS.NLS_DATABASE_PARAMETERS VALUES ('NLS_CHARACTERSET', 'AL32UTF8')",
  `CREATE ALIAS SYS.EMPTY_CLOB AS $$ java.sql.Clob emptyClob(java.sql.Connection connection) throws Exception {
     return connection.createClob(); } $$`,
];

import { describe, expect, test } from 'vitest';
import { layoutOf } from '../../../sinks/sql/columns.ts';
import type { ColumnSource, Layout } from '../../../sinks/sql/columns.ts';
import { foldLayout } from '../../../sinks/oracle/rows.ts';
import { createTableSql, FACTS_SQL, SESSION_SQL, statementsFor } from '../../../sinks/oracle/sql.ts';
import { classOf, dictionary, SYSTEM_PRIVILEGES_SQL } from '../../../sinks/oracle/table.ts';
import type { ColumnShape } from '../../../sinks/oracle/values.ts';
import { oracleSqlProblems } from '../../support/oracle-grammar.ts';

/** Types of the default table, by column. */
const defaultTypes: Readonly<Record<string, string>> = {
  STREAM_SEQUENCE: 'NUMBER',
  MESSAGE_TIME_NS: 'NUMBER',
  HEADERS: 'CLOB',
  PAYLOAD: 'BLOB',
  PAYLOAD_JSON: 'CLOB',
};
const everyType = [
  'VARCHAR2',
  'NVARCHAR2',
  'CHAR',
  'CLOB',
  'RAW',
  'BLOB',
  'NUMBER',
  'FLOAT',
  'BINARY_FLOAT',
  'BINARY_DOUBLE',
  'DATE',
  'TIMESTAMP(6)',
  'TIMESTAMP(9) WITH TIME ZONE',
  'TIMESTAMP(3) WITH LOCAL TIME ZONE',
  'JSON',
  'XMLTYPE',
];

function layout(
  columns: Readonly<Record<string, ColumnSource>> | null,
  key: Layout['key'],
  field: string | null = null,
): Layout {
  const found = layoutOf(columns, { key, field });
  if (!found.ok) throw new Error(found.missing);
  return foldLayout(found.layout);
}

const origin = { inc: { field: 'incarnation' }, seq: { field: 'sequence' } } as const;
const byType = Object.fromEntries(everyType.map((_, i) => [`c${i}`, { payload: `/${i}` }]));
/** Reserved words, lower case and other letters as names. */
const oddNames = {
  ORDER: { payload: '/id' },
  level: { payload: '/l' },
  '"lower case"': { payload: '/x' },
  Grüße: { payload: '/g' },
};

const layouts: readonly (readonly [string, Layout, readonly string[] | null])[] = [
  ['default', layout(null, 'stream_sequence'), null],
  ['default by message id', layout(null, 'message_id'), null],
  [
    'every type',
    layout({ id: { payload: '/id' }, ...byType, ...origin }, 'payload_field', '/id'),
    ['VARCHAR2', ...everyType, 'VARCHAR2', 'NUMBER'],
  ],
  [
    'without origin',
    layout({ id: { payload: '/id' }, name: { payload: '/name' } }, 'payload_field', '/id'),
    ['NUMBER', 'CLOB'],
  ],
  ['the key alone', layout({ id: { payload: '/id' } }, 'payload_field', '/id'), ['NUMBER']],
  [
    'odd names',
    layout({ ...oddNames, ...origin }, 'payload_field', '/id'),
    ['NUMBER', 'NUMBER', 'CLOB', 'BLOB', 'VARCHAR2', 'NUMBER'],
  ],
];

const tables = [
  { schema: null, table: 'ORDERS' },
  { schema: 'Shop & Co', table: 'SELECT' },
];

function shapesOf({ columns }: Layout, types: readonly string[] | null): ColumnShape[] {
  return columns.map(({ name }, i) => {
    const type = types?.[i] ?? defaultTypes[name] ?? 'VARCHAR2';
    return { name, class: classOf(type, { length: 4_000, scale: null }), nullable: true };
  });
}

/** Every statement that the sink can send, but for the number of keys in a look-up. */
function everyStatement(): [string, string][] {
  const found: [string, string][] = [];
  for (const [name, ofLayout, types] of layouts) {
    const shapes = shapesOf(ofLayout, types);
    const lobs = shapes.flatMap(({ class: { kind } }, i) => (kind === 'clob' || kind === 'blob' ? [i] : []));
    for (const table of name === 'odd names' ? tables : tables.slice(0, 1)) {
      const statements = statementsFor(ofLayout, table, shapes);
      const at = `${name} in ${table.table}`;
      for (const empty of lobs.length === 0 ? [[]] : [[], lobs]) {
        found.push([`${at}: insert, empty ${empty.join()}`, statements.insert(empty)]);
        found.push([`${at}: merge, empty ${empty.join()}`, statements.merge(empty)]);
      }
      for (const keys of [1, 2]) {
        found.push([`${at}: look at ${keys}`, statements.lookup(keys, 'look')]);
        found.push([`${at}: lock ${keys}`, statements.lookup(keys, 'lock')]);
      }
      if (ofLayout.isDefault) found.push([`${at}: create`, createTableSql(ofLayout, table)]);
    }
  }
  found.push(['look at 256', statementsFor(layouts[0]![1], tables[0]!, shapesOf(layouts[0]![1], null)).lookup(256, 'look')]);
  found.push(...Object.entries(dictionary).map(([name, sql]): [string, string] => [`dictionary: ${name}`, sql]));
  found.push(['privileges', SYSTEM_PRIVILEGES_SQL], ['facts', FACTS_SQL]);
  found.push(...SESSION_SQL.map((sql): [string, string] => [sql, sql]));
  return found;
}

describe('the grammar', () => {
  test.each(everyStatement())('takes %s', (_, sql) => {
    expect(oracleSqlProblems(sql)).toEqual([]);
  });

  /** Of other databases, and slips. Each must be refused, or the test above shows nothing. */
  test.each([
    'SELECT * FROM t LIMIT 1',
    'INSERT INTO t (a) VALUES (:1) ON CONFLICT DO NOTHING',
    'INSERT INTO t (a) VALUES (:1) ON DUPLICATE KEY UPDATE a = a',
    'INSERT IGNORE INTO t (a) VALUES (:1)',
    'REPLACE INTO t (a) VALUES (:1)',
    'INSERT t (a) VALUES (:1)',
    'INSERT INTO t (a,) VALUES (:1)',
    'INSERT INTO t (a) VALUES (:1',
    'INSERT INTO t (a) VALUES (?)',
    'INSERT INTO t (a, b) VALUES (:1, :3)',
    'INSERT INTO t (a) VALUES (:1);',
    'INSERT INTO `t` (a) VALUES (:1)',
    'INSERT INTO t (order) VALUES (:1)',
    'INSERT INTO t (a) VALUES',
    'SELECT a FROM t AS x',
    'SELECT a FROM t WHERE a IN (:1) FOR UPDATE OF',
    'MERGE INTO t USING (SELECT :1 a FROM DUAL) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)',
    'MERGE INTO t USING (SELECT :1 a FROM DUAL) s ON (t.a = s.a)',
    'MERGE INTO t AS x USING (SELECT :1 a FROM DUAL) s ON (x.a = s.a) WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)',
    'MERGE INTO t USING (SELECT :1 a FROM DUAL) s ON (t.a = s.a) WHEN MATCHED THEN SET t.a = s.a',
    'CREATE TABLE t (a BIGINT)',
    'CREATE TABLE t (a VARCHAR2(10) NOT NULL,)',
    'CREATE TABLE t a VARCHAR2(10)',
    'ALTER SESSION NLS_SORT = BINARY',
    `INSERT INTO "${'t'.repeat(129)}" (a) VALUES (:1)`,
  ])('refuses %s', (sql) => {
    expect(oracleSqlProblems(sql)).not.toEqual([]);
  });
});

describe('texts', () => {
  const shapes = shapesOf(layouts[0]![1], null);
  const { insert, merge, lookup } = statementsFor(layouts[0]![1], tables[0]!, shapes);

  test('no value stands in a statement: binds, in order, and one for each column', () => {
    expect(insert([])).toBe(
      'INSERT INTO "ORDERS" ("STREAM_NAME", "STREAM_INCARNATION", "STREAM_SEQUENCE", "SUBJECT", "MESSAGE_TIME_NS", "MESSAGE_ID", ' +
        '"HEADERS", "PAYLOAD", "PAYLOAD_JSON", "REPLAY_PLAN", "REPLAY_RUN") ' +
        'VALUES (:1, :2, CAST(:3 AS NUMBER), :4, CAST(:5 AS NUMBER), :6, :7, :8, :9, :10, :11)',
    );
    expect(insert([7])).toContain(':7, EMPTY_BLOB(), :8, :9, :10)');
    expect(lookup(2, 'lock')).toBe(
      'SELECT "STREAM_NAME", "STREAM_INCARNATION", "STREAM_SEQUENCE", "STREAM_INCARNATION", "STREAM_SEQUENCE" FROM "ORDERS" ' +
        'WHERE ("STREAM_NAME", "STREAM_INCARNATION", "STREAM_SEQUENCE") IN ((:1, :2, CAST(:3 AS NUMBER)), (:4, :5, CAST(:6 AS NUMBER))) FOR UPDATE',
    );
  });

  test('a merge never updates a column that it joins by, and an older record changes nothing', () => {
    for (const [name, ofLayout, types] of layouts) {
      const sql = statementsFor(ofLayout, tables[0]!, shapesOf(ofLayout, types)).merge([]);
      const sets = /UPDATE SET (.*?)(?: WHERE| WHEN|$)/.exec(sql)?.[1] ?? '';
      for (const key of ofLayout.keyColumns) expect(sets, name).not.toContain(`t."${key}" =`);
      expect(sql.includes('WHERE (t."INC" IS NULL OR'), name).toBe(ofLayout.origin?.incarnation === 'INC');
    }
    expect(merge([])).toContain('t."STORED_AT" = SYSTIMESTAMP WHERE (t."STREAM_INCARNATION" IS NULL');
  });
});

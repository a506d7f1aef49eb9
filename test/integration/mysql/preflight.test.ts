import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addDatabase, testMysql, withoutMysql, type TestDatabase } from '../../support/mysql.ts';
import { makeMysqlSink, type TestSinkOptions } from '../../support/mysql-sink.ts';
import { faultCode } from '../../support/outcomes.ts';

const signal = new AbortController().signal;
const byId = { key: 'payload_field', field: '/id', key_conflicts: 'reject' } as const;
const origin = { inc: { field: 'incarnation' }, seq: { field: 'sequence' } };
const columns = { id: { payload: '/id' }, name: { payload: '/name' }, ...origin };
const rest = 'name VARCHAR(20) CHARACTER SET utf8mb4, inc VARCHAR(40), seq BIGINT UNSIGNED';

let database: TestDatabase;
beforeEach(async () => {
  database = await addDatabase(await testMysql());
});
afterEach(() => database.drop());

async function findings(options: TestSinkOptions): Promise<string[]> {
  const found = await makeMysqlSink(database, options).probe(signal);
  return found.map(({ severity, message, next }) =>
    `${severity}: ${message} -> ${next ?? ''}`.replaceAll(database.database, 'db'),
  );
}

const mapped = (mode: 'insert' | 'upsert' = 'insert'): TestSinkOptions => ({ fields: { columns, mode }, idempotency: byId });

/** Table, mode, what the finding says and does; and what opening the sink ends with. */
const cases: readonly (readonly [string, string, 'insert' | 'upsert', readonly RegExp[], string])[] = [
  ['a good table', `CREATE TABLE orders (id INT PRIMARY KEY, ${rest})`, 'upsert', [], 'no fault'],
  [
    'a unique key beside a row number',
    `CREATE TABLE orders (row_id INT AUTO_INCREMENT PRIMARY KEY, id INT UNIQUE, ${rest})`,
    'upsert',
    [],
    'no fault',
  ],
  [
    'no unique key',
    `CREATE TABLE orders (id INT, ${rest})`,
    'insert',
    [/^error: It has no unique key of exactly \(`id`\).*-> ALTER TABLE `db`.`orders` ADD UNIQUE KEY replay_key \(`id`\);$/],
    'sink_unfit',
  ],
  [
    'a second unique key in upsert',
    `CREATE TABLE orders (id INT PRIMARY KEY, ${rest}, UNIQUE KEY by_name (name))`,
    'upsert',
    [/^error: It has a second unique key, `by_name`.*DROP INDEX `by_name`;$/],
    'sink_unfit',
  ],
  [
    'a second unique key in insert',
    `CREATE TABLE orders (id INT PRIMARY KEY, ${rest}, UNIQUE KEY by_name (name))`,
    'insert',
    [/^warning: It has a second unique key, `by_name`/],
    'no fault',
  ],
  [
    'a key that merges ABC and abc',
    `CREATE TABLE orders (id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, ${rest})`,
    'insert',
    [/^error: Its key column `id` compares by utf8mb4_0900_ai_ci.*MODIFY COLUMN `id` .* COLLATE utf8mb4_0900_bin NOT NULL;$/],
    'sink_unfit',
  ],
  [
    'a key that ignores spaces at the end',
    `CREATE TABLE orders (id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, ${rest})`,
    'insert',
    [/^info: Its key column `id` compares by utf8mb4_bin/],
    'no fault',
  ],
  [
    'a missing column',
    'CREATE TABLE orders (id INT PRIMARY KEY, inc VARCHAR(40), seq BIGINT)',
    'insert',
    [/^error: It has no column `name`. -> ALTER TABLE `db`.`orders` ADD COLUMN `name` TYPE;$/],
    'sink_missing',
  ],
  [
    'a column that must be written',
    `CREATE TABLE orders (id INT PRIMARY KEY, ${rest}, must INT NOT NULL)`,
    'insert',
    [/^error: Its column `must` must not be null, has no default, and is not written/],
    'sink_unfit',
  ],
  [
    'a generated column',
    'CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20) AS (CONCAT("n", id)), inc VARCHAR(40), seq BIGINT)',
    'insert',
    [/^error: Its column `name` is generated/],
    'sink_unfit',
  ],
  [
    'a narrow character set',
    'CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20) CHARACTER SET latin1, inc VARCHAR(40), seq BIGINT)',
    'insert',
    [/^warning: Its column `name` has the character set latin1/],
    'no fault',
  ],
  [
    'another engine',
    `CREATE TABLE orders (id INT PRIMARY KEY, ${rest}) ENGINE=MyISAM`,
    'insert',
    [/^error: Its storage engine \(MyISAM\) is not InnoDB.*-> ALTER TABLE `db`.`orders` ENGINE=InnoDB;$/],
    'sink_unfit',
  ],
];

describe.skipIf(withoutMysql)('preflight', () => {
  test.each(cases)('%s', async (_, ddl, mode, expected, code) => {
    await database.query(ddl);
    const found = await findings(mapped(mode));
    expect(found).toHaveLength(expected.length);
    expected.forEach((pattern, i) => expect(found[i]).toMatch(pattern));
    expect(await faultCode(makeMysqlSink(database, mapped(mode)).open(signal))).toBe(code);
  });

  test('a missing table comes with the statement that makes it, and that statement is right', async () => {
    const [finding] = await makeMysqlSink(database).probe(signal);
    expect(finding).toMatchObject({ severity: 'error', message: expect.stringContaining('missing') });
    await database.query(/CREATE TABLE .*/s.exec(finding!.next!)![0]);
    expect(await findings({})).toEqual([]);
  });

  test('a view, and triggers', async () => {
    await database.query(`CREATE TABLE base (id INT PRIMARY KEY, ${rest})`);
    await database.query('CREATE VIEW orders AS SELECT * FROM base');
    expect((await findings(mapped()))[0]).toMatch(/^error: It is a view/);
    await database.query('DROP VIEW orders');
    await database.query('RENAME TABLE base TO orders');
    await database.query('SET @x = 0').catch(() => undefined);
    await database.query('SET GLOBAL log_bin_trust_function_creators = ON').catch(() => undefined);
    await database.query('CREATE TRIGGER audit BEFORE INSERT ON orders FOR EACH ROW SET @x = 1');
    expect(await findings(mapped())).toEqual([expect.stringMatching(/^warning: Its trigger `audit` runs/)]);
  });

  test.each([
    ['insert', 'SELECT', 'SELECT, INSERT'],
    ['upsert', 'SELECT, INSERT', 'SELECT, INSERT, UPDATE'],
  ] as const)('%s with %s alone: what to grant', async (mode, granted, needed) => {
    await database.query(`CREATE TABLE orders (id INT PRIMARY KEY, ${rest})`);
    await database.query(`REVOKE ALL ON ${database.database}.* FROM ${database.user}@'%'`);
    await database.query(`GRANT ${granted} ON ${database.database}.orders TO ${database.user}@'%'`);
    const found = await findings(mapped(mode));
    expect(found).toEqual([expect.stringContaining(`GRANT ${needed} ON \`db\`.\`orders\``)]);
    await database.query(`GRANT ${needed} ON ${database.database}.orders TO ${database.user}@'%'`);
    expect(await findings(mapped(mode))).toEqual([]);
  });

  test('without incarnation and sequence', async () => {
    await database.query(`CREATE TABLE orders (id INT PRIMARY KEY, ${rest})`);
    const options = { fields: { columns: { id: columns.id, name: columns.name }, mode: 'upsert' }, idempotency: byId };
    expect(await findings(options)).toEqual([
      expect.stringMatching(/^warning: The table does not keep incarnation and sequence/),
    ]);
  });

  test('read-only, and a small packet', async () => {
    const { server } = await testMysql();
    if (server === null) return;
    await database.query(`CREATE TABLE orders (id INT PRIMARY KEY, ${rest})`);
    await database.query('SET GLOBAL read_only = ON, GLOBAL max_allowed_packet = 1048576');
    try {
      const found = await findings(mapped());
      expect(found[0]).toMatch(/^error: The server is read-only/);
      expect(found[1]).toMatch(/^warning: The server takes statements of at most 1048576 bytes/);
      expect(await faultCode(makeMysqlSink(database, mapped()).open(signal))).toBe('sink_denied');
    } finally {
      await database.query('SET GLOBAL read_only = OFF, GLOBAL max_allowed_packet = 67108864');
    }
  });
});

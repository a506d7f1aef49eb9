import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bytesOf, makeBatch, makeRecord } from '../../contract/records.ts';
import { addDatabase, testMysql, withoutMysql, type TestDatabase } from '../../support/mysql.ts';
import { writeOnce, type TestSinkOptions } from '../../support/mysql-sink.ts';
import { inWords } from '../../support/outcomes.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await addDatabase(await testMysql());
});
afterEach(() => database.drop());

const byId = { key: 'payload_field', field: '/id', key_conflicts: 'reject' } as const;
const record = (sequence: number, body: string) => makeRecord(sequence, { payload: bytesOf(body) });
const columnsOf = (...names: string[]) => Object.fromEntries(names.map((name) => [name, { payload: `/${name}` }]));

describe.skipIf(withoutMysql)('default columns', () => {
  const fields = { create_table: true };

  test('hold the whole record', async () => {
    const headers = new Map([
      ['Trace', ['a', 'b']],
      ['__proto__', ['x']],
    ]);
    await writeOnce(database, [makeRecord(7, { headers, payload: bytesOf('{"id":1.10,"big":7088992364139642880}') })], {
      fields,
    });
    const [row] = await database.query('SELECT *, JSON_EXTRACT(payload_json, "$.big") AS big FROM orders');
    expect(row).toMatchObject({
      stream_name: 'ORDERS',
      stream_sequence: 7,
      subject: 'orders.updated',
      message_id: 'order-7',
      big: '7088992364139642880',
      replay_plan: 'orders-replay',
      replay_run: 'run-1',
    });
    expect(JSON.parse(row!['headers'] as string)).toEqual(Object.fromEntries(headers));
    expect(String(row!['payload'])).toBe('{"id":1.10,"big":7088992364139642880}');
    expect(row!['stored_at']).toMatch(/^20\d\d-/);
  });

  test('JSON that MySQL does not take is written as bytes, with null beside it', async () => {
    const bodies = [
      '"\\ud800"',
      '{"e":1e400}',
      `${'['.repeat(101)}${']'.repeat(101)}`,
      'text',
      '{"a":1,"a":2}',
      `{"${'k'.repeat(70_000)}":1}`,
      `{"n":${'9'.repeat(400)}}`,
    ];
    const taken = [
      `${'['.repeat(100)}${']'.repeat(100)}`,
      '{"e":1e308}',
      '"\\ud83d\\ude00"',
      '"\\\\ud800"',
      '{"nul":"\\u0000"}',
    ];
    const all = [...bodies, ...taken];
    const batch = all.map((body, i) => record(i + 1, body));
    expect(inWords(await writeOnce(database, batch, { fields }))).toEqual(all.map(() => 'written'));
    const rows = await database.query('SELECT payload, payload_json IS NULL AS none FROM orders ORDER BY stream_sequence');
    expect(rows.map((row) => String(row['payload']))).toEqual(all);
    expect(rows.map((row) => row['none'])).toEqual([...bodies.map(() => 1), ...taken.map(() => 0)]);
  });

  test('a record larger than a statement may be is refused alone', async () => {
    const { server } = await testMysql();
    if (server === null) return;
    await database.query('SET GLOBAL max_allowed_packet = 1048576');
    try {
      const batch = [makeRecord(1), makeRecord(2, { payload: new Uint8Array(1_100_000).fill(0xff) }), makeRecord(3)];
      const json = makeRecord(4, { payload: bytesOf(`"${'x'.repeat(700_000)}"`) });
      expect(inWords(await writeOnce(database, [...batch, json], { fields }))).toEqual([
        'written',
        'too_large',
        'written',
        'written',
      ]);
      const [row] = await database.query('SELECT LENGTH(payload) AS bytes, payload_json FROM orders WHERE stream_sequence = 4');
      expect(row).toEqual({ bytes: 700_002, payload_json: null });
    } finally {
      await database.query('SET GLOBAL max_allowed_packet = 67108864');
    }
  });
});

describe.skipIf(withoutMysql)('columns of the target', () => {
  test('numbers keep every digit, in each type', async () => {
    await database.query(
      `CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, price DECIMAL(30,10), label VARCHAR(50), doc JSON, part JSON, yes BOOLEAN,
       ratio DOUBLE, at DATETIME(6), day DATE, bin VARBINARY(20)) ENGINE=InnoDB`,
    );
    const body =
      '{"id":18446744073709551615,"price":12345678901234567890.0123456789,"label":1.10,"doc":{"b":1,"n":9223372036854775807},' +
      '"part":"text","yes":true,"ratio":0.1,"at":"2026-05-01T12:00:00.123456789+02:00","day":"2026-05-01","bin":"é"}';
    const fields = { columns: columnsOf('id', 'price', 'label', 'doc', 'part', 'yes', 'ratio', 'at', 'day', 'bin') };
    const batch = [record(1, body), record(2, '{"id":1e3}'), record(3, '{"id":4.0,"doc":null}')];
    expect(inWords(await writeOnce(database, batch, { fields, idempotency: byId }))).toEqual(['written', 'written', 'written']);
    const rows = await database.query('SELECT * FROM orders ORDER BY id DESC');
    expect(rows[0]).toEqual({
      id: '18446744073709551615',
      price: '12345678901234567890.0123456789',
      label: '1.10',
      doc: '{"b": 1, "n": 9223372036854775807}',
      part: '"text"',
      yes: 1,
      ratio: 0.1,
      at: '2026-05-01 10:00:00.123456',
      day: '2026-05-01',
      bin: Buffer.from('é'),
    });
    expect(rows.slice(1).map(({ id, doc }) => [String(id), doc])).toEqual([
      ['1000', null],
      ['4', null],
    ]);
  });

  test('what would be stored changed is refused: rounded, cut, wrong', async () => {
    await database.query(
      `CREATE TABLE orders (id INT PRIMARY KEY, n INT, price DECIMAL(6,2), name VARCHAR(5), doc JSON, kind ENUM('a','b'), at DATETIME,
       three VARCHAR(9) CHARACTER SET utf8mb3, must INT NOT NULL DEFAULT 1, CHECK (n < 1000)) ENGINE=InnoDB`,
    );
    const names = ['id', 'n', 'price', 'name', 'doc', 'kind', 'at', 'three'];
    const cases: readonly (readonly [string, string])[] = [
      ['{"id":1,"n":1.5}', 'value_invalid n'],
      ['{"id":2,"n":2147483648}', 'value_invalid n'],
      ['{"id":3,"n":1001}', 'constraint_failed'],
      ['{"id":4,"n":"x"}', 'value_invalid n'],
      ['{"id":5,"price":1.005}', 'value_invalid price'],
      ['{"id":6,"name":"123456"}', 'value_too_long name'],
      ['{"id":7,"name":"12345 "}', 'value_invalid name'],
      ['{"id":8,"name":"\\ud800"}', 'value_invalid name'],
      ['{"id":9,"doc":1e400}', 'value_invalid doc'],
      ['{"id":10,"kind":"c"}', 'value_invalid kind'],
      ['{"id":11,"at":"yesterday"}', 'value_invalid at'],
      ['{"id":12,"three":"😀"}', 'value_invalid three'],
      ['{"n":1}', 'key_missing id'],
      ['{"id":null}', 'key_missing id'],
      ['{"id":{"a":1}}', 'key_missing id'],
      ['{"id":" "}', 'key_missing id'],
      ['not json', 'not_json'],
      ['{"id":13,"n":999,"price":1.10,"name":"12345","kind":"b"}', 'written'],
    ];
    const batch = cases.map(([body], i) => record(i + 1, body));
    const outcomes = inWords(await writeOnce(database, batch, { fields: { columns: columnsOf(...names) }, idempotency: byId }));
    expect(cases.map(([body], i) => [body, outcomes[i]])).toEqual(cases);
    expect(await database.query('SELECT id, price FROM orders')).toEqual([{ id: 13, price: '1.10' }]);
  });

  test('null into NOT NULL and a missing parent', async () => {
    await database.query('CREATE TABLE customers (id INT PRIMARY KEY) ENGINE=InnoDB');
    await database.query('INSERT INTO customers VALUES (1)');
    await database.query(
      'CREATE TABLE orders (id INT PRIMARY KEY, must INT NOT NULL, customer INT, FOREIGN KEY (customer) REFERENCES customers (id)) ENGINE=InnoDB',
    );
    const batch = [
      record(1, '{"id":1}'),
      record(2, '{"id":2,"must":1,"customer":9}'),
      record(3, '{"id":3,"must":1,"customer":1}'),
    ];
    const fields = { columns: columnsOf('id', 'must', 'customer') };
    expect(inWords(await writeOnce(database, batch, { fields, idempotency: byId }))).toEqual([
      'value_missing must',
      'constraint_failed customer',
      'written',
    ]);
  });
});

const originColumns = { incarnation: { field: 'incarnation' }, seq: { field: 'sequence' } };

describe.skipIf(withoutMysql)('keys', () => {
  const table = (key: string) =>
    `CREATE TABLE orders (id ${key} PRIMARY KEY, state VARCHAR(20), incarnation VARCHAR(40), seq BIGINT UNSIGNED) ENGINE=InnoDB`;
  const fields = { columns: { id: { payload: '/id' }, state: { payload: '/state' }, ...originColumns } };
  const options: TestSinkOptions = { fields, idempotency: byId };

  test('a key of another record is a conflict; keep counts it as a duplicate', async () => {
    await database.query(table('BIGINT'));
    const batch = [record(1, '{"id":1,"state":"a"}'), record(2, '{"id":2}'), record(3, '{"id":1.0,"state":"b"}')];
    expect(inWords(await writeOnce(database, batch, options))).toEqual(['written', 'written', 'key_conflict']);
    expect(inWords(await writeOnce(database, batch, options))).toEqual(['duplicate', 'duplicate', 'key_conflict']);
    const keep = { ...options, idempotency: { ...byId, key_conflicts: 'keep' as const } };
    expect(inWords(await writeOnce(database, batch, keep))).toEqual(['duplicate', 'duplicate', 'duplicate']);
    expect(await database.query('SELECT id, state FROM orders')).toEqual([
      { id: 1, state: 'a' },
      { id: 2, state: null },
    ]);
  });

  test('a refused first record leaves its key to the next of the batch', async () => {
    await database.query(table('BIGINT'));
    const batch = [record(1, `{"id":1,"state":"${'x'.repeat(21)}"}`), record(2, '{"id":1,"state":"b"}'), record(3, '{"id":1}')];
    expect(inWords(await writeOnce(database, batch, options))).toEqual(['value_too_long state', 'written', 'key_conflict']);
  });

  test('upsert: the newest state wins, whatever comes late, and counts are honest', async () => {
    await database.query(table('BIGINT'));
    const upsert = { ...options, fields: { ...fields, mode: 'upsert' } };
    const first = [
      record(5, '{"id":1,"state":"five"}'),
      record(6, '{"id":2,"state":"six"}'),
      record(7, '{"id":1,"state":"seven"}'),
    ];
    expect(inWords(await writeOnce(database, first, upsert))).toEqual(['written', 'written', 'written']);
    expect(inWords(await writeOnce(database, first, upsert))).toEqual(['duplicate', 'duplicate', 'duplicate']);
    const late = [
      record(4, '{"id":1,"state":"four"}'),
      record(8, '{"id":2,"state":"eight"}'),
      record(9, '{"id":3,"state":"nine"}'),
    ];
    expect(inWords(await writeOnce(database, late, upsert))).toEqual(['duplicate', 'written', 'written']);
    const recreated = { ...record(1, '{"id":1,"state":"anew"}'), incarnation: '2026-06-01T10:00:00.000000001Z' };
    expect(inWords(await writeOnce(database, [recreated], upsert))).toEqual(['written']);
    expect(inWords(await writeOnce(database, first, upsert))).toEqual(['duplicate', 'duplicate', 'duplicate']);
    expect(await database.query('SELECT id, state, seq FROM orders ORDER BY id')).toEqual([
      { id: 1, state: 'anew', seq: 1 },
      { id: 2, state: 'eight', seq: 8 },
      { id: 3, state: 'nine', seq: 9 },
    ]);
  });

  test('text keys compare as bytes: case and spaces at the end', async () => {
    await database.query(table('VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin'));
    const batch = ['ABC', 'abc', 'abc ', 'äbc'].map((id, i) => record(i + 1, JSON.stringify({ id })));
    expect(inWords(await writeOnce(database, batch, options))).toEqual(['written', 'written', 'written', 'written']);
    expect(inWords(await writeOnce(database, batch, options))).toEqual(['duplicate', 'duplicate', 'duplicate', 'duplicate']);
  });

  test('a collation that pads refuses the second key, and never calls it a duplicate', async () => {
    await database.query(table('VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin'));
    const batch = ['abc', 'abc '].map((id, i) => record(i + 1, JSON.stringify({ id })));
    expect(inWords(await writeOnce(database, batch, options))).toEqual(['written', 'key_conflict']);
    expect(inWords(await writeOnce(database, batch, options))).toEqual(['duplicate', 'key_conflict']);
  });

  test('message_id: the same id again is a duplicate, without one a record is refused', async () => {
    const byMessage = { idempotency: { key: 'message_id', field: null, key_conflicts: 'reject' } as const };
    const { messageId: _, ...without } = makeRecord(9);
    const batch = [makeRecord(1), makeRecord(2, { messageId: 'order-1' }), makeRecord(3, { messageId: 'ORDER-1' }), without];
    const all = { fields: { create_table: true }, ...byMessage };
    expect(inWords(await writeOnce(database, batch, all))).toEqual([
      'written',
      'duplicate',
      'written',
      'key_missing message_id',
    ]);
    expect(inWords(await writeOnce(database, batch, all))).toEqual([
      'duplicate',
      'duplicate',
      'duplicate',
      'key_missing message_id',
    ]);
  });

  test('a second unique key refuses its record alone in insert mode', async () => {
    await database.query(
      'CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20) UNIQUE, incarnation VARCHAR(40), seq BIGINT) ENGINE=InnoDB',
    );
    const batch = ['a', 'b', 'a', 'c'].map((state, i) => record(i + 1, JSON.stringify({ id: i, state })));
    expect(inWords(await writeOnce(database, batch, options))).toEqual(['written', 'written', 'constraint_failed', 'written']);
    expect(inWords(await writeOnce(database, batch, options))).toEqual([
      'duplicate',
      'duplicate',
      'constraint_failed',
      'duplicate',
    ]);
  });
});

test.skipIf(withoutMysql)('every record of a large batch refused, and every second one', async () => {
  const fields = { create_table: true };
  const bad = makeBatch(1, 2_000, { subject: 'x'.repeat(5_000) });
  expect(new Set(inWords(await writeOnce(database, bad, { fields })))).toEqual(new Set(['value_too_long subject']));
  const mixed = makeBatch(1, 2_000).map((one, i) => (i % 2 === 0 ? one : bad[i]!));
  const outcomes = inWords(await writeOnce(database, mixed, { fields }));
  expect(outcomes.filter((outcome) => outcome === 'written')).toHaveLength(1_000);
  expect(await database.query('SELECT COUNT(*) AS n FROM orders')).toEqual([{ n: 1_000 }]);
});

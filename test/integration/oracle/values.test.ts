import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bytesOf, makeBatch, makeRecord } from '../../contract/records.ts';
import { testOracle, withoutOracle, withoutWire, type TestUser } from '../../support/oracle.ts';
import { makeOracleSink, writeOnce, type TestSinkOptions } from '../../support/oracle-sink.ts';
import { inWords } from '../../support/outcomes.ts';

const signal = new AbortController().signal;
const byId = { key: 'payload_field', field: '/id', key_conflicts: 'reject' } as const;
const record = (sequence: number, body: string) => makeRecord(sequence, { payload: bytesOf(body) });
const columnsOf = (...names: string[]) => Object.fromEntries(names.map((name) => [name, { payload: `/${name}` }]));
const origin = { inc: { field: 'incarnation' }, seq: { field: 'sequence' } };
const originSql = 'INC VARCHAR2(40), SEQ NUMBER(20)';

let user: TestUser;
describe.skipIf(withoutOracle)('values', () => {
  beforeAll(async () => void (await testOracle()), 180_000);
  beforeEach(async () => {
    user = await (await testOracle()).addUser();
  });
  afterEach(() => user.drop());

  test('the default table holds the whole record', async () => {
    const headers = new Map([
      ['Trace', ['a', 'b']],
      ['__proto__', ['x']],
    ]);
    const body = '{"id":1.10,"big":7088992364139642880}';
    await writeOnce(user, [makeRecord(7, { headers, payload: bytesOf(body) })], { fields: { create_table: true } });
    const [row] = await user.query('SELECT * FROM ORDERS');
    expect(row).toMatchObject({
      STREAM_NAME: 'ORDERS',
      STREAM_SEQUENCE: '7',
      SUBJECT: 'orders.updated',
      MESSAGE_ID: 'order-7',
      HEADERS: '{"Trace":["a","b"],"__proto__":["x"]}',
      PAYLOAD: Buffer.from(body),
      PAYLOAD_JSON: body,
      REPLAY_PLAN: 'orders-replay',
      REPLAY_RUN: 'run-1',
    });
    expect(row!['STORED_AT']).toMatch(/20\d\d/);
  });

  test('38 digits, nanoseconds and 50,000 characters arrive exactly', async () => {
    await user.query(
      `CREATE TABLE ORDERS (ID NUMBER(20) PRIMARY KEY, PRICE NUMBER(38, 18), N NUMBER, LABEL VARCHAR2(50 CHAR), DOC CLOB, YES NUMBER(1),
       TZ TIMESTAMP(9) WITH TIME ZONE, TS TIMESTAMP(6), ON_DAY DATE, BIN BLOB)`,
    );
    const text = `${'x'.repeat(49_990)}é👋`;
    const body =
      `{"id":18446744073709551615,"price":12345678901234567890.012345678901234567,"n":-98765432109876543210987654321098765432,` +
      `"label":1.10,"doc":"${text}","yes":true,"tz":"2026-05-01T12:00:00.123456789+02:00","ts":"2026-05-01T10:00:00.123456789Z",` +
      `"on_day":"2026-05-01T10:00:00.9Z","bin":"é"}`;
    const fields = { columns: columnsOf('id', 'price', 'n', 'label', 'doc', 'yes', 'tz', 'ts', 'on_day', 'bin') };
    const batch = [record(1, body), record(2, '{"id":1e3}'), record(3, '{"id":4.0,"doc":{"b":1,"n":9223372036854775807}}')];
    expect(inWords(await writeOnce(user, batch, { fields, idempotency: byId }))).toEqual(['written', 'written', 'written']);
    const rows = await user.query(
      `SELECT TO_CHAR(ID) ID, TO_CHAR(PRICE) PRICE, TO_CHAR(N) N, LABEL, DOC, YES, TO_CHAR(TZ, 'YYYY-MM-DD HH24:MI:SS.FF9') TZ,
       TO_CHAR(TS, 'YYYY-MM-DD HH24:MI:SS.FF6') TS, TO_CHAR(ON_DAY, 'YYYY-MM-DD HH24:MI:SS') ON_DAY, BIN FROM ORDERS ORDER BY 1 DESC`,
    );
    expect(rows.find(({ ID: id }) => id === '18446744073709551615')).toEqual({
      ID: '18446744073709551615',
      PRICE: '12345678901234567890.012345678901234567',
      N: '-98765432109876543210987654321098765432',
      LABEL: '1.10',
      DOC: text,
      YES: '1',
      TZ: '2026-05-01 10:00:00.123456789',
      TS: '2026-05-01 10:00:00.123456',
      ON_DAY: '2026-05-01 10:00:00',
      BIN: Buffer.from('é'),
    });
    expect(new Set(rows.map(({ ID: id }) => id))).toEqual(new Set(['1000', '18446744073709551615', '4']));
    expect(rows.find(({ ID: id }) => id === '4')!['DOC']).toBe('{"b":1,"n":9223372036854775807}');
  });

  test('what would be stored changed is refused, and what the database refuses is told by row', async () => {
    await user.query('CREATE TABLE CUSTOMERS (ID NUMBER PRIMARY KEY)');
    await user.query(
      `CREATE TABLE ORDERS (ID NUMBER PRIMARY KEY, N NUMBER(5), PRICE NUMBER(6, 2), NAME VARCHAR2(5 CHAR), AT TIMESTAMP(0) WITH TIME ZONE,
       MUST VARCHAR2(9) NOT NULL, CUSTOMER NUMBER REFERENCES CUSTOMERS (ID), CHECK (N < 1000))`,
    );
    const cases: readonly (readonly [string, string])[] = [
      ['{"id":1,"must":"x","n":1.5}', 'value_invalid N'],
      ['{"id":2,"must":"x","n":123456}', 'value_invalid N'],
      ['{"id":3,"must":"x","n":1001}', 'constraint_failed'],
      ['{"id":4,"must":"x","n":"x"}', 'value_invalid N'],
      ['{"id":5,"must":"x","price":1.005}', 'value_invalid PRICE'],
      ['{"id":6,"must":"x","name":"123456"}', 'value_too_long NAME'],
      ['{"id":7,"must":"x","name":"\\ud800"}', 'value_invalid NAME'],
      ['{"id":8,"must":"x","at":"yesterday"}', 'value_invalid AT'],
      ['{"id":9,"must":"x","n":1e400}', 'value_invalid N'],
      ['{"id":10,"must":""}', 'value_invalid MUST'],
      ['{"id":11}', 'value_missing MUST'],
      ['{"id":12,"must":"x","customer":9}', 'constraint_failed'],
      ['{"n":1}', 'key_missing ID'],
      ['{"id":null}', 'key_missing ID'],
      ['{"id":" "}', 'key_missing ID'],
      ['not json', 'not_json'],
      ['{"id":13,"must":"x","n":999,"price":1.10,"name":"12345"}', 'written'],
    ];
    const batch = cases.map(([body], i) => record(i + 1, body));
    const fields = { columns: columnsOf('id', 'n', 'price', 'name', 'at', 'must', 'customer') };
    const outcomes = inWords(await writeOnce(user, batch, { fields, idempotency: byId }));
    expect(cases.map(([body], i) => [body, outcomes[i]])).toEqual(cases);
    expect(await user.query('SELECT TO_CHAR(ID) ID FROM ORDERS')).toEqual([{ ID: '13' }]);
  });

  test('empty texts: refused, or NULL when the target says so; a LOB keeps them', async () => {
    await user.query('CREATE TABLE ORDERS (ID NUMBER PRIMARY KEY, NAME VARCHAR2(9), DOC CLOB, BIN BLOB NOT NULL)');
    const fields = { columns: columnsOf('id', 'name', 'doc', 'bin') };
    const batch = [record(1, '{"id":1,"name":"","doc":"","bin":""}'), record(2, '{"id":2,"doc":"","bin":"x"}')];
    expect(inWords(await writeOnce(user, batch, { fields, idempotency: byId }))).toEqual(['value_invalid NAME', 'written']);
    const withNull = { ...fields, empty_string: 'null' };
    expect(inWords(await writeOnce(user, batch, { fields: withNull, idempotency: byId }))).toEqual(['written', 'duplicate']);
    const rows = await user.query('SELECT ID, NAME, LENGTH(DOC) DOC, LENGTH(BIN) BIN FROM ORDERS ORDER BY ID');
    expect(rows).toEqual([
      { ID: '1', NAME: null, DOC: '0', BIN: '0' },
      { ID: '2', NAME: null, DOC: '0', BIN: '1' },
    ]);
  });

  test('names: upper case without quotes, exact with them', async () => {
    await user.query('CREATE TABLE "Order Lines" ("id" NUMBER PRIMARY KEY, "ORDER" VARCHAR2(9))');
    const fields = {
      table: '"Order Lines"',
      columns: { '"id"': { payload: '/id' }, order: { payload: '/order' } },
    };
    expect(inWords(await writeOnce(user, [record(1, '{"id":1,"order":"a"}')], { fields, idempotency: byId }))).toEqual([
      'written',
    ]);
    expect(await user.query('SELECT "id", "ORDER" FROM "Order Lines"')).toEqual([{ id: '1', ORDER: 'a' }]);
  });

  describe('keys', () => {
    const columns = { id: { payload: '/id' }, name: { payload: '/name' }, ...origin };
    const options = (fields: object = {}, conflicts: 'reject' | 'keep' = 'reject'): TestSinkOptions => ({
      fields: { columns, ...fields },
      idempotency: { ...byId, key_conflicts: conflicts },
    });
    const orders = (rest = '') => `CREATE TABLE ORDERS (ID VARCHAR2(20) PRIMARY KEY, NAME VARCHAR2(20), ${originSql}${rest})`;
    const names = async () =>
      (await user.query('SELECT ID, NAME FROM ORDERS ORDER BY ID')).map((row) => `${String(row['ID'])} ${String(row['NAME'])}`);

    test('insert: the same record is a duplicate, another one a conflict', async () => {
      await user.query(orders());
      const batch = [
        record(1, '{"id":"a","name":"1"}'),
        record(2, '{"id":"b","name":"2"}'),
        record(3, '{"id":"a","name":"3"}'),
      ];
      expect(inWords(await writeOnce(user, batch, options()))).toEqual(['written', 'written', 'key_conflict']);
      expect(inWords(await writeOnce(user, batch, options()))).toEqual(['duplicate', 'duplicate', 'key_conflict']);
      expect(inWords(await writeOnce(user, batch, options({}, 'keep')))).toEqual(['duplicate', 'duplicate', 'duplicate']);
      expect(await names()).toEqual(['a 1', 'b 2']);
    });

    test('upsert: the newest wins, whatever comes late', async () => {
      await user.query(orders());
      const upsert = options({ mode: 'upsert' });
      const later = [
        record(5, '{"id":"a","name":"5"}'),
        record(6, '{"id":"b","name":"6"}'),
        record(7, '{"id":"a","name":"7"}'),
      ];
      expect(inWords(await writeOnce(user, later, upsert))).toEqual(['written', 'written', 'written']);
      const late = [record(1, '{"id":"a","name":"1"}'), record(8, '{"id":"b","name":"8"}')];
      expect(inWords(await writeOnce(user, late, upsert))).toEqual(['duplicate', 'written']);
      expect(inWords(await writeOnce(user, later, upsert))).toEqual(['duplicate', 'duplicate', 'duplicate']);
      const anew = makeRecord(2, {
        incarnation: '2027-01-01T00:00:00.000000000Z',
        payload: bytesOf('{"id":"a","name":"new"}'),
      });
      expect(inWords(await writeOnce(user, [anew], upsert))).toEqual(['written']);
      expect(await names()).toEqual(['a new', 'b 8']);
    });

    test('upsert into a table that does not keep the origin: the last one stays', async () => {
      await user.query('CREATE TABLE ORDERS (ID NUMBER PRIMARY KEY, NAME VARCHAR2(20))');
      const upsert = { fields: { columns: columnsOf('id', 'name'), mode: 'upsert' }, idempotency: byId };
      const batch = [
        record(1, '{"id":1,"name":"1"}'),
        record(2, '{"id":1.0,"name":"2"}'),
        record(3, '{"id":10e-1,"name":"3"}'),
      ];
      expect(inWords(await writeOnce(user, batch, upsert))).toEqual(['written', 'written', 'written']);
      expect(await user.query('SELECT ID, NAME FROM ORDERS')).toEqual([{ ID: '1', NAME: '3' }]);
    });

    test('a row of an upsert may have null where the origin stands', async () => {
      await user.query(orders());
      await user.query("INSERT INTO ORDERS (ID, NAME) VALUES ('a', 'old')");
      expect(inWords(await writeOnce(user, [record(1, '{"id":"a","name":"1"}')], options({ mode: 'upsert' })))).toEqual([
        'written',
      ]);
      expect(await names()).toEqual(['a 1']);
    });

    test('another unique key refuses a record, and never says duplicate', async () => {
      await user.query(orders(', CONSTRAINT BY_NAME UNIQUE (NAME)'));
      const batch = [
        record(1, '{"id":"a","name":"x"}'),
        record(2, '{"id":"b","name":"x"}'),
        record(3, '{"id":"c","name":"y"}'),
      ];
      expect(inWords(await writeOnce(user, batch, options()))).toEqual(['written', 'constraint_failed', 'written']);
      expect(inWords(await writeOnce(user, batch, options()))).toEqual(['duplicate', 'constraint_failed', 'duplicate']);
    });

    test('a unique index without a constraint keeps a key as well', async () => {
      await user.query(`CREATE TABLE ORDERS (ID VARCHAR2(20) NOT NULL, NAME VARCHAR2(20), ${originSql})`);
      await user.query('CREATE UNIQUE INDEX BY_ID ON ORDERS (ID)');
      const batch = [record(1, '{"id":"a"}'), record(2, '{"id":"b"}')];
      expect(inWords(await writeOnce(user, batch, options()))).toEqual(['written', 'written']);
      expect(inWords(await writeOnce(user, batch, options()))).toEqual(['duplicate', 'duplicate']);
    });

    test('keys with spaces at the end and other case are other keys', async () => {
      await user.query(orders());
      const batch = ['abc', 'ABC', 'abc ', ' abc'].map((id, i) => record(i + 1, JSON.stringify({ id })));
      expect(inWords(await writeOnce(user, batch, options()))).toEqual(batch.map(() => 'written'));
      expect(inWords(await writeOnce(user, batch, options()))).toEqual(batch.map(() => 'duplicate'));
    });
  });

  test.each(['insert', 'upsert'])('JSON that the database refuses is null in payload_json, in mode %s', async (mode) => {
    await user.query(
      `CREATE TABLE ORDERS (ID NUMBER PRIMARY KEY, N NUMBER CHECK (N < 10), DOC CLOB CHECK (DOC NOT LIKE '%refused%'), ${originSql})`,
    );
    const fields = { columns: { ...columnsOf('id', 'n'), doc: { field: 'payload_json' }, ...origin }, mode };
    const write = async (first: number) => {
      const bodies = ['{"id":1,"n":1}', '{"id":2,"n":2,"why":"refused"}', '{"id":3,"n":99,"why":"refused"}', '{"id":4,"n":99}'];
      const batch = bodies.map((body, i) => record(first + i, body));
      return inWords(await writeOnce(user, batch, { fields, idempotency: byId }));
    };
    expect(await write(1)).toEqual(['written', 'written', 'constraint_failed', 'constraint_failed']);
    const again = mode === 'upsert' ? 'written' : 'key_conflict';
    expect(await write(11)).toEqual([again, again, 'constraint_failed', 'constraint_failed']);
    expect(await user.query('SELECT ID, DOC FROM ORDERS ORDER BY ID')).toEqual([
      { ID: '1', DOC: '{"id":1,"n":1}' },
      { ID: '2', DOC: null },
    ]);
  });

  test('an upsert of large bodies', async () => {
    await user.query(`CREATE TABLE ORDERS (ID NUMBER PRIMARY KEY, DOC CLOB, BIN BLOB, ${originSql})`);
    const fields = { columns: { ...columnsOf('id', 'doc'), bin: { field: 'payload' }, ...origin }, mode: 'upsert' };
    const bodies = (text: string) => [1, 2, 3].map((id) => `{"id":${id},"doc":"${id === 2 ? 'short' : text.repeat(50_000)}"}`);
    const write = async (first: number, texts: readonly string[]) =>
      inWords(
        await writeOnce(
          user,
          texts.map((text, i) => record(first + i, text)),
          { fields, idempotency: byId },
        ),
      );
    expect(await write(1, bodies('a'))).toEqual(['written', 'written', 'written']);
    const newer = bodies('é');
    expect(await write(11, newer)).toEqual(['written', 'written', 'written']);
    expect(await write(1, bodies('a'))).toEqual(['duplicate', 'duplicate', 'duplicate']);
    const rows = await user.query('SELECT DOC, BIN FROM ORDERS ORDER BY ID');
    expect(rows.map((row) => String(row['BIN']))).toEqual(newer);
    expect(rows.map((row) => row['DOC'])).toEqual(newer.map((text) => (JSON.parse(text) as { doc: string }).doc));
  });

  describe.skipIf(withoutWire)('calls on the wire', () => {
    const counted = async (work: () => Promise<unknown>) => {
      const { calls } = (await testOracle()).listener!;
      const before = { ...calls };
      await work();
      return {
        statements: calls.statement - before.statement,
        lobs: calls.lob - before.lob,
        commits: calls.commit - before.commit,
      };
    };

    test('a batch with its LOBs is one call; one with poison in it costs not one more', async () => {
      const sink = makeOracleSink(user, { fields: { create_table: true } });
      await sink.open(signal);
      const clean = makeBatch(1, 500, { payload: bytesOf(`{"text":"${'x'.repeat(5_000)}"}`) });
      expect(await counted(() => sink.write(clean, signal))).toEqual({ statements: 1, lobs: 0, commits: 1 });
      const poisoned = makeBatch(2_001, 1_000).map((each, i) => (i === 500 ? { ...each, stream: 'x'.repeat(300) } : each));
      expect(await counted(() => sink.write(poisoned, signal))).toEqual({ statements: 1, lobs: 0, commits: 1 });
      await sink.close();
      expect(await user.query('SELECT COUNT(*) N FROM ORDERS')).toEqual([{ N: '1499' }]);
    });

    test('a batch that is there already: one failed call and its look-ups, then look-ups alone', async () => {
      const sink = makeOracleSink(user, { fields: { create_table: true } });
      await sink.write(makeBatch(1, 1_000), signal);
      const again = await counted(() => sink.write(makeBatch(1, 1_000), signal));
      expect(again).toEqual({ statements: 5, lobs: 0, commits: 1 });
      expect(await counted(() => sink.write(makeBatch(1, 1_000), signal))).toEqual({ statements: 4, lobs: 0, commits: 1 });
      await sink.close();
    });
  });
});

import { readFile } from 'node:fs/promises';
import type { Connection } from 'mysql2/promise';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ReplayRecord } from '../../../core/record.ts';
import { makeBatch, makeRecord } from '../../contract/records.ts';
import {
  addDatabase,
  adminConnection,
  ownMysql,
  withoutOwnMysql,
  type TestDatabase,
  type TestMysql,
} from '../../support/mysql.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { makeMysqlSink, writeOnce } from '../../support/mysql-sink.ts';
import { faultCode, inWords } from '../../support/outcomes.ts';

const fields = { create_table: true };
const signal = new AbortController().signal;

let mysql: TestMysql;
let database: TestDatabase;

describe.skipIf(withoutOwnMysql)('faults of the server', () => {
  beforeAll(async () => {
    mysql = await ownMysql({
      // A system tablespace that can fill up, for tables that live in it.
      args: ['--innodb-data-file-path=ibdata1:12M:autoextend:max:64M'],
    });
  }, 180_000);
  beforeEach(async () => {
    database = await addDatabase(mysql);
  });
  afterEach(() => database.drop());

  const other = async (): Promise<Connection> => {
    const connection = await adminConnection(mysql);
    await connection.query(`USE ${database.database}`);
    return connection;
  };

  test('a deadlock begins the transaction again', async () => {
    await writeOnce(database, makeBatch(1, 1), { fields });
    const rival = await other();
    try {
      await rival.query('START TRANSACTION');
      for (const record of makeBatch(10_000, 3_000)) await rival.query(insertOf(record));
      await rival.query(insertOf(makeRecord(900)));
      const writing = writeOnce(database, makeBatch(100, 1_500), { fields });
      await waitsForLock();
      // It has written 100 and waits for 900. Now the rival wants 100, and has more to lose: it is the sink that is rolled back.
      await rival.query(insertOf(makeRecord(100)));
      await rival.query('ROLLBACK');
      expect(new Set(inWords(await writing))).toEqual(new Set(['written']));
    } finally {
      rival.destroy();
    }
  });

  test('a lock wait ends as busy, and the batch is not half in', async () => {
    await writeOnce(database, makeBatch(1, 1), { fields });
    const rival = await other();
    try {
      await rival.query('START TRANSACTION');
      await rival.query(insertOf(makeRecord(1_205)));
      const sink = makeMysqlSink(database, { fields });
      await sink.open(signal);
      expect(await faultCode(sink.write(makeBatch(2, 2_000), signal))).toBe('sink_busy');
      await sink.close();
      expect(await countRows()).toBe(1);
      await rival.query('COMMIT');
      expect(
        inWords(await writeOnce(database, makeBatch(2, 2_000), { fields })).filter((word) => word === 'duplicate'),
      ).toHaveLength(1);
    } finally {
      rival.destroy();
    }
  }, 90_000);

  test('a commit whose answer is lost is settled by the key', async () => {
    const sink = makeMysqlSink(database, { fields });
    await sink.open(signal);
    const batch = makeBatch(1, 500);
    const rival = await other();
    const writing = faultCode(sink.write(batch, signal));
    try {
      for (;;) {
        const [threads] = (await rival.query(
          `SELECT PROCESSLIST_ID AS id FROM performance_schema.threads WHERE PROCESSLIST_USER = '${database.user}'`,
        )) as unknown as [{ id: number }[]];
        for (const { id } of threads) await rival.query(`KILL ${id}`).catch(() => undefined);
        if (threads.length === 0) break;
      }
    } finally {
      rival.destroy();
    }
    const code = await writing;
    expect(['sink_unreachable', 'sink_busy', 'no fault']).toContain(code);
    const before = await countRows();
    expect([0, 500]).toContain(before);
    const words = inWords(await writeOnce(database, batch, { fields }));
    expect(words.filter((word) => word === 'duplicate')).toHaveLength(before);
    expect(await countRows()).toBe(500);
  });

  test('a full tablespace stops, and nothing is dead-lettered', async () => {
    await database.query('SET SESSION innodb_strict_mode = ON');
    const [{ ddl }] = (await ddlOf()) as [{ ddl: string }];
    await database.query(`${ddl} TABLESPACE = innodb_system`);
    const body = new Uint8Array(1_048_576).fill(0x61);
    let code = 'no fault';
    for (let first = 1; first < 200 && code === 'no fault'; first += 10) {
      code = await faultCode(writeOnce(database, makeBatch(first, 10, { payload: body }), { fields }));
    }
    expect(code).toBe('sink_full');
    expect((await countRows()) % 10).toBe(0);
  }, 120_000);

  test('an aborted write leaves no lock behind', async () => {
    await writeOnce(database, makeBatch(1, 1), { fields });
    const rival = await other();
    try {
      await rival.query('START TRANSACTION');
      await rival.query(insertOf(makeRecord(50)));
      const controller = new AbortController();
      const sink = makeMysqlSink(database, { fields });
      const writing = sink.write(makeBatch(2, 100), controller.signal).catch((error: unknown) => error);
      await waitsForLock();
      const began = Date.now();
      controller.abort(new Error('cancelled'));
      expect(await writing).toBe(controller.signal.reason);
      expect(Date.now() - began).toBeLessThan(15_000);
      await rival.query('ROLLBACK');
      expect(new Set(inWords(await writeOnce(database, makeBatch(2, 100), { fields })))).toEqual(new Set(['written']));
    } finally {
      rival.destroy();
    }
  });

  test('a server that hangs does not hold up a cancel', async () => {
    const sink = makeMysqlSink(database, { fields });
    await sink.open(signal);
    mysql.server!.signal('SIGSTOP');
    try {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error('cancelled')), 300);
      const began = Date.now();
      await expect(sink.write(makeBatch(1, 10), controller.signal)).rejects.toThrow('cancelled');
      expect(Date.now() - began).toBeLessThan(15_000);
    } finally {
      mysql.server!.signal('SIGCONT');
    }
  });

  test.each([
    ['a wrong password', { password: 'wrong' }, 'sink_login'],
    ['no such database', { fields: { ...fields, database: 'nowhere' } }, 'sink_denied'],
    ['nobody at the port', { fields: { ...fields, port: 1 } }, 'sink_unreachable'],
    ['no such host', { fields: { ...fields, host: 'nowhere.invalid' } }, 'sink_unreachable'],
    ['a certificate that is not trusted', { fields: { ...fields, tls: {} } }, 'sink_tls'],
    ['no table', {}, 'sink_missing'],
    ['a table that is gone since', { fields, begun: true }, 'sink_missing'],
  ])('%s: %s', async (_, options, code) => {
    const told: unknown[] = [];
    const sink = makeMysqlSink(database, { ...options, told });
    const opened = await sink.open(signal).then(
      () => 'opened',
      (error: unknown) => error,
    );
    expect(opened).toMatchObject({ code });
    const text = [opened instanceof Error ? `${opened.message} ${String(opened.cause)}` : '', JSON.stringify(told)].join(' ');
    for (const secret of [database.password, database.user, '127.0.0.1', 'wrong']) expect(text).not.toContain(secret);
  });

  test('TLS that only encrypts', async () => {
    const encrypted = { ...fields, tls: { verify: false } };
    expect(inWords(await writeOnce(database, makeBatch(1, 2), { fields: encrypted }))).toEqual(['written', 'written']);
  });

  test("TLS that trusts the target's authority, as text", async () => {
    const file = await makeCertificates(['server']);
    const args = [`--ssl-ca=${file('ca.pem')}`, `--ssl-cert=${file('server.pem')}`, `--ssl-key=${file('server.key')}`];
    const guarded = await addDatabase(await ownMysql({ args }));
    const tls = { ca: await readFile(file('ca.pem'), 'utf8') };
    const trusting = { ...fields, host: 'localhost', tls };
    expect(inWords(await writeOnce(guarded, makeBatch(1, 2), { fields: trusting }))).toEqual(['written', 'written']);
    await guarded.drop();
  }, 120_000);

  async function waitsForLock(): Promise<void> {
    for (let look = 0; look < 200; look++) {
      const waits = await database.query('SELECT 1 FROM performance_schema.data_lock_waits LIMIT 1');
      if (waits.length > 0) return;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error('nobody waits for a lock');
  }

  async function countRows(): Promise<number> {
    return Number((await database.query('SELECT COUNT(*) AS n FROM orders'))[0]!['n']);
  }

  async function ddlOf(): Promise<{ ddl: string }[]> {
    await writeOnce(database, [], { fields });
    const sink = makeMysqlSink(database, { fields });
    await sink.open(signal);
    await sink.close();
    const [row] = await database.query('SHOW CREATE TABLE orders');
    await database.query('DROP TABLE orders');
    return [{ ddl: String(row!['Create Table']) }];
  }
});

function insertOf({ stream, incarnation, sequence }: ReplayRecord): string {
  return (
    'INSERT INTO orders (stream_name, stream_incarnation, stream_sequence, subject, message_time_ns, headers, payload, replay_plan, replay_run) ' +
    `VALUES ('${stream}', '${incarnation}', ${sequence}, 's', 1, '{}', '', 'p', 'r')`
  );
}

import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { JetStreamManager, NatsConnection } from 'nats';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Progress } from '../../../core/progress.ts';
import type { Report } from '../../../core/report.ts';
import type { ReplayRequest } from '../../../core/steps.ts';
import { atFileEnd, tempDir } from '../../support/file-end.ts';
import { addDatabase, ownMysql, withoutOwnMysql, type TestDatabase, type TestMysql } from '../../support/mysql.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../../support/servers.ts';
import { requestInto } from '../../support/request.ts';
import { addStream, mixedMessages, publishAll, type TestMessage, type TestStream } from '../../support/streams.ts';
import { startWorker, type TestWorker } from '../../support/worker.ts';
import { command } from '../cli/command-line.ts';

const SECRET = 'REPLAY_SECRET_MYSQL';

let nats: NatsConnection;
let manager: JetStreamManager;
let client: Client;
let mysql: TestMysql;
let database: TestDatabase;
let worker: TestWorker;

describe.skipIf(withoutOwnMysql)('a replay into MySQL', () => {
  beforeAll(async () => {
    mysql = await ownMysql();
    database = await addDatabase(mysql);
    nats = await connectTestNats();
    manager = await nats.jetstreamManager();
    const connection = await Connection.connect({ address: temporalAddress() });
    atFileEnd(() => connection.close());
    client = new Client({ connection });
    worker = await startWorker({ [SECRET]: database.password });
  }, 180_000);

  test('20,000 mixed bodies land exactly; again under another durable they are 20,000 duplicates', async () => {
    const stream = await filled(mixedMessages, 20_000);
    const input = request(stream, { table: 'mixed', create_table: true });
    const report = (await (await start(input)).result()) as Report;
    expect(report.counts).toMatchObject({ written: 20_000, duplicate: 0, rejected: 0, acked: 20_000 });
    const stored = await database.query('SELECT stream_sequence AS n, subject, payload FROM mixed ORDER BY stream_sequence');
    const rows = stored.map(({ n, subject, payload }) => ({ n, subject, md5: md5(payload as Buffer) }));
    const sent = [...mixedMessages(stream.prefix, 20_000)].map(({ subject, body }, i) => ({
      n: i + 1,
      subject,
      md5: md5(body),
    }));
    expect(rows).toEqual(sent);
    const again = (await (await start(request(stream, { table: 'mixed' }))).result()) as Report;
    expect(again.counts).toMatchObject({ written: 0, duplicate: 20_000, acked: 20_000 });
    expect(await countRows('mixed')).toBe(20_000);
  });

  test('20 of 10,000 records too long: 9,980 rows, exactly 20 dead letters, exit status 3', async () => {
    const stream = await filled(function* (prefix, count) {
      const encoder = new TextEncoder();
      for (let i = 0; i < count; i++) {
        const name = i % 500 === 250 ? 'x'.repeat(101) : `customer ${i}`;
        yield { subject: `${prefix}.created`, body: encoder.encode(JSON.stringify({ id: i, name })) };
      }
    }, 10_000);
    await database.query('CREATE TABLE long_names (id BIGINT PRIMARY KEY, name VARCHAR(100), seq BIGINT, inc VARCHAR(40))');
    const columns = {
      id: { payload: '/id' },
      name: { payload: '/name' },
      seq: { field: 'sequence' },
      inc: { field: 'incarnation' },
    };
    const { plan, target } = request(stream, { table: 'long_names', columns }, { end_sequence: 10_000 });
    const files = await toFiles({
      plan,
      target: { ...(target as object), idempotency: { key: 'payload_field', field: '/id' } },
    });
    const ended = await command([...files, '--execute', '--json']);
    expect(ended.status).toBe(3);
    const report = JSON.parse(ended.stdout) as Report;
    expect(report.counts).toMatchObject({ written: 9_980, rejected: 20, dead_lettered: 20, acked: 10_000 });
    expect(report.rejects[0]).toMatchObject({ code: 'value_too_long', field: 'name', sequence: 251 });
    expect(await countRows('long_names')).toBe(9_980);
    expect((await manager.streams.info(stream.deadLetterStream)).state.messages).toBe(20);
    expect(JSON.stringify([ended, worker.log()])).not.toContain(database.password);
  });

  test('a wrong password blocks at once, writes no dead letter, and the run goes on after the mend and resume', async () => {
    const stream = await filled(mixedMessages, 500);
    await setPassword('something else');
    const began = Date.now();
    const handle = await start(request(stream, { table: 'login', create_table: true }));
    const progress = await until(handle.workflowId, (seen) => seen.state === 'blocked');
    expect(Date.now() - began).toBeLessThan(60_000);
    expect(progress.problem).toMatchObject({ code: 'sink_login', next: expect.stringContaining('resume') });
    await setPassword(database.password);
    await handle.signal('resume');
    expect(((await handle.result()) as Report).counts).toMatchObject({ written: 500, rejected: 0, dead_lettered: 0 });
    expect((await manager.streams.info(stream.deadLetterStream)).state.messages).toBe(0);
    expect(JSON.stringify(await historyOf(handle.workflowId))).not.toContain(database.password);
  });

  test('a dropped table blocks; made again, the run goes on', async () => {
    const stream = await filled(mixedMessages, 3_000);
    const input = request(stream, { table: 'dropped', create_table: true }, { batch_size: 100, rate_limit_per_second: 1_000 });
    const handle = await start(input);
    await until(handle.workflowId, (seen) => seen.counts.written >= 500);
    await handle.signal('pause');
    await until(handle.workflowId, (seen) => seen.state === 'paused');
    const [{ ddl }] = (await database.query('SHOW CREATE TABLE dropped')).map((row) => ({
      ddl: String(row['Create Table']),
    })) as [{ ddl: string }];
    const before = await countRows('dropped');
    await database.query('RENAME TABLE dropped TO dropped_before');
    await handle.signal('resume');
    const progress = await until(handle.workflowId, (seen) => seen.state === 'blocked');
    expect(progress.problem?.code).toBe('sink_missing');
    await database.query(ddl);
    await handle.signal('resume');
    const { counts } = (await handle.result()) as Report;
    expect(counts).toMatchObject({ written: 3_000, duplicate: 0, acked: 3_000 });
    expect((await countRows('dropped')) + before).toBe(3_000);
  });

  test('a column made too narrow is drift: nothing is dead-lettered', async () => {
    const stream = await filled(mixedMessages, 1_000);
    const input = request(stream, { table: 'narrow', create_table: true }, { batch_size: 100, end_sequence: 1_000 });
    await (await start(request(stream, { table: 'narrow', create_table: true }, { max_messages: 1 }))).result();
    await database.query('TRUNCATE TABLE narrow');
    await database.query('ALTER TABLE narrow MODIFY replay_run VARCHAR(3) NOT NULL');
    const handle = await start(input);
    const progress = await until(handle.workflowId, (seen) => seen.state === 'blocked');
    expect(progress.problem?.code).toBe('drift');
    expect(progress.counts).toMatchObject({ dead_lettered: 0, acked: 0 });
    await database.query('ALTER TABLE narrow MODIFY replay_run VARCHAR(64) NOT NULL');
    await handle.terminate();
    expect((await manager.streams.info(stream.deadLetterStream)).state.messages).toBe(0);
    const done = (await (await start(input)).result()) as Report;
    expect(done.counts).toMatchObject({ written: 1_000, rejected: 0 });
  });

  test('a server made read-only blocks; writable again, the run goes on', async () => {
    const stream = await filled(mixedMessages, 2_000);
    const input = request(stream, { table: 'readonly', create_table: true }, { batch_size: 100, rate_limit_per_second: 1_000 });
    const handle = await start(input);
    await until(handle.workflowId, (seen) => seen.counts.written >= 200);
    await database.query('SET GLOBAL read_only = ON');
    try {
      const progress = await until(handle.workflowId, (seen) => seen.state === 'blocked');
      expect(progress.problem?.code).toBe('sink_denied');
    } finally {
      await database.query('SET GLOBAL read_only = OFF');
    }
    await handle.signal('resume');
    expect(((await handle.result()) as Report).counts).toMatchObject({ acked: 2_000, rejected: 0 });
    expect(await countRows('readonly')).toBe(2_000);
  });

  test('connections killed and mysqld killed in mid-write: nothing lost, nothing twice', async () => {
    const stream = await filled(mixedMessages, 20_000);
    const input = request(stream, { table: 'killed', create_table: true }, { batch_size: 500, end_sequence: 20_000 });
    const handle = await start(input);
    for (let kills = 0; kills < 3; kills++) {
      await until(handle.workflowId, (seen) => seen.counts.written >= 1_000 * (kills + 1));
      const threads = await database.query(
        `SELECT PROCESSLIST_ID AS id FROM performance_schema.threads WHERE PROCESSLIST_USER = '${database.user}'`,
      );
      for (const { id } of threads) await database.query(`KILL ${String(id)}`).catch(() => undefined);
    }
    await until(handle.workflowId, (seen) => seen.counts.written >= 5_000);
    await mysql.server!.kill();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await mysql.server!.restart();
    const revived = await addDatabase(mysql);
    try {
      const { counts } = (await handle.result()) as Report;
      expect(counts).toMatchObject({ acked: 20_000, rejected: 0, dead_lettered: 0 });
      expect(counts.written + counts.duplicate).toBe(20_000);
      const [row] = await revived.query(
        `SELECT COUNT(*) AS n, COUNT(DISTINCT stream_sequence) AS sequences, MAX(stream_sequence) AS last FROM ${database.database}.killed`,
      );
      expect(row).toMatchObject({ n: 20_000, sequences: 20_000 });
    } finally {
      await revived.drop();
    }
  }, 180_000);
});

type Messages = (prefix: string, count: number) => Iterable<TestMessage>;

async function filled(messages: Messages, count: number): Promise<TestStream> {
  const stream = await addStream(manager);
  await publishAll(nats, messages(stream.prefix, count));
  return stream;
}

function request(
  stream: TestStream,
  sink: Readonly<Record<string, unknown>>,
  plan: Readonly<Record<string, unknown>> = {},
): ReplayRequest {
  return requestInto({ type: 'mysql', ...database.place, password: { env: SECRET }, ...sink }, stream, plan);
}

async function start(input: ReplayRequest) {
  const options = { taskQueue: 'durable-replay', workflowId: uniqueName('mysql'), workflowTaskTimeout: '5s', args: [input] };
  return await client.workflow.start('replayPlan', options);
}

async function until(workflowId: string, wanted: (progress: Progress) => boolean, limitMs = 40_000): Promise<Progress> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const progress = await client.workflow.getHandle(workflowId).query<Progress>('progress');
    if (wanted(progress)) return progress;
    const over = ['completed', 'canceled', 'refused'].includes(progress.state);
    if (over || Date.now() > deadline) throw new Error(`not reached; last: ${JSON.stringify(progress)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function historyOf(workflowId: string): Promise<unknown> {
  return await client.workflow.getHandle(workflowId).fetchHistory();
}

function md5(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}

async function countRows(table: string): Promise<number> {
  const [row] = await database.query(`SELECT COUNT(*) AS n FROM ${table}`);
  return Number(row!['n']);
}

async function setPassword(password: string): Promise<void> {
  await database.query(`ALTER USER ${database.user}@'%' IDENTIFIED BY '${password}'`);
}

async function toFiles(input: ReplayRequest): Promise<[string, string]> {
  const folder = await tempDir();
  const files: [string, string] = [join(folder, 'plan.json'), join(folder, 'target.json')];
  await writeFile(files[0], JSON.stringify(input.plan));
  await writeFile(files[1], JSON.stringify(input.target));
  expect(await readFile(files[1], 'utf8')).not.toContain(database.password);
  return files;
}

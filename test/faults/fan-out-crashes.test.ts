import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { spoolConfigSchema } from '../../sinks/spool/config.ts';
import { createSpoolDrain } from '../../sinks/spool/drain.ts';
import { expectAccounted, expectNoEarlyAck, fillWithBad, recordBytesMax } from '../support/accounts.ts';
import type { CrashPoint } from '../support/crash-points.ts';
import { newPlace, openBench, startLocalWorker, startRun, until, type Bench, type Place } from '../support/fault-bench.ts';
import { addDatabase, adminConnection, testMysql, withoutMysql, type TestDatabase, type TestMysql } from '../support/mysql.ts';
import { startProxy } from '../support/proxy.ts';
import { readRecords } from '../support/records.ts';
import { oneBatchAStep, requestInto } from '../support/request.ts';
import { uniqueName } from '../support/servers.ts';
import { addStream, type TestStream } from '../support/streams.ts';
import { startVictim } from '../support/victim.ts';

/** Files, MySQL and the spool at the same time, each required: what one has and another has not yet, when something is lost. */
const testMs = 180_000;
const points: readonly CrashPoint[] =
  process.env['REPLAY_TEST_LONG'] === '1'
    ? ['after_pull', 'in_write', 'after_write', 'during_dead_letter', 'after_dead_letter', 'before_ack', 'after_ack_sent']
    : ['in_write', 'after_dead_letter'];
const records = 60;
const batch = 10;
const pollMs = 20;

let bench: Bench;
let mysql: TestMysql;

const spool = { type: 'spool', directory: 'spool', allow_unencrypted: true };
const file = { type: 'file', directory: 'archive' };

/** The database itself refuses a body that is too long. */
const columns = {
  stream: { field: 'stream' },
  incarnation: { field: 'incarnation' },
  seq: { field: 'sequence' },
  body: { field: 'payload' },
};

interface Tables {
  readonly database: TestDatabase;
  /** Of the table of that name, as the `sink` of a child. */
  sink(table: string, port?: number): object;
  sequences(table: string): Promise<number[]>;
}

/** Empty tables of one database. */
async function addTables(names: readonly string[]): Promise<Tables> {
  const database = await addDatabase(mysql);
  const key = 'CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL';
  for (const name of names) {
    await database.query(
      `CREATE TABLE ${name} (stream VARCHAR(255) ${key}, incarnation VARCHAR(40) ${key}, seq BIGINT UNSIGNED NOT NULL,
       body VARCHAR(${recordBytesMax}) CHARACTER SET utf8mb4, PRIMARY KEY (stream, incarnation, seq))`,
    );
  }
  const secret = uniqueName('REPLAY_SECRET').replaceAll('-', '_').toUpperCase();
  process.env[secret] = database.password;
  return {
    database,
    sink: (table, port = database.place.port) => ({
      type: 'mysql',
      ...database.place,
      port,
      password: { env: secret },
      table,
      columns,
    }),
    sequences: async (table) => (await database.query(`SELECT seq FROM ${table} ORDER BY seq`)).map(({ seq }) => Number(seq)),
  };
}

async function archived({ dataRoot }: Place): Promise<number[]> {
  return (await readRecords(join(dataRoot, file.directory)).catch(() => [])).map(({ sequence }) => sequence);
}

async function spooled({ dataRoot }: Place): Promise<number[]> {
  const log = { info: () => undefined, warn: () => undefined };
  const drain = createSpoolDrain(spoolConfigSchema.parse(spool), { dataRoot, secret: () => '', log });
  const taken = await drain.take(records, new AbortController().signal);
  return taken.records.map(({ sequence }) => Number(sequence)).toSorted((a, b) => a - b);
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

function requestFor(stream: TestStream, children: Readonly<Record<string, object>>, plan: Record<string, unknown> = {}) {
  const sinks = Object.fromEntries(Object.entries(children).map(([name, sink]) => [name, { sink }]));
  return requestInto({ type: 'fanout', sinks }, stream, {
    batch_size: batch,
    end_sequence: records,
    ...oneBatchAStep,
    ...plan,
  });
}

async function ackFloor(stream: TestStream, request: ReturnType<typeof requestFor>): Promise<number> {
  const durable = request.plan.replay['durable_consumer'] as string;
  return (await bench.manager.consumers.info(stream.name, durable)).ack_floor.stream_seq;
}

/** Ends with the test's own limit. */
async function untilTrue(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(pollMs);
}

describe.skipIf(withoutMysql).concurrent('a replay into files, MySQL and the spool', () => {
  beforeAll(async () => {
    [bench, mysql] = await Promise.all([openBench(), testMysql()]);
  }, testMs);

  test(
    'the database down: nothing is ACKed, nobody is filled twice, and it goes on by itself',
    { timeout: testMs },
    async () => {
      const place = await newPlace();
      const stream = await addStream(bench.manager);
      await fillWithBad(bench.nats, stream, 3);
      const tables = await addTables(['orders']);
      const proxy = await startProxy(`tcp://${mysql.host}:${mysql.port}`);
      const children = { archive: file, table: tables.sink('orders', Number(new URL(proxy.url).port)), edge: spool };
      // The rest comes once the database is gone.
      const request = requestFor(stream, children, {
        end_sequence: null,
        max_messages: records,
        stop_after_idle_seconds: 3_600,
      });
      await startLocalWorker(bench, place);
      const run = await startRun(bench.client, place, request);
      await until(bench.client, run.workflowId, ({ counts }) => counts.written === 3, testMs);
      await untilTrue(async () => (await ackFloor(stream, request)) === 3);
      proxy.cut();
      const content = await fillWithBad(bench.nats, stream, records - 3);
      expect(content.bad.length).toBeGreaterThan(0);
      const blocked = await until(bench.client, run.workflowId, ({ state }) => state === 'blocked', testMs);
      expect(blocked.problem).toMatchObject({ code: 'sink_unreachable', detail: expect.stringContaining('child "table"') });
      const before = { archived: await archived(place), spooled: await spooled(place) };
      const refused = proxy.refused();
      await untilTrue(async () => {
        await run.signal('resume');
        return proxy.refused() >= refused + 3;
      });
      expect(await ackFloor(stream, request)).toBe(3);
      expect(await tables.sequences('orders')).toEqual([1, 2, 3]);
      expect({ archived: await archived(place), spooled: await spooled(place) }).toEqual(before);
      proxy.mend();
      const report = await run.result();
      expect(report.counts).toMatchObject({ pulled: records, acked: records, rejected: content.bad.length });
      const good = upTo(records).filter((n) => !content.bad.includes(n - 3));
      expect(await tables.sequences('orders')).toEqual(good);
      expect(await archived(place)).toEqual(upTo(records));
      expect(await spooled(place)).toEqual(upTo(records));
      await tables.database.drop();
    },
  );

  test.each(['first', 'second'])(
    'a worker lost when all but the %s of two tables have the batch',
    { timeout: testMs },
    async (late) => {
      const place = await newPlace();
      const stream = await addStream(bench.manager);
      const content = await fillWithBad(bench.nats, stream, records);
      const tables = await addTables(['first', 'second']);
      const children = { first: tables.sink('first'), archive: file, second: tables.sink('second'), edge: spool };
      const request = requestFor(stream, children);
      const ahead = late === 'first' ? 'second' : 'first';
      const rival = await adminConnection(mysql);
      await rival.query(`LOCK TABLES ${tables.database.database}.${late} WRITE`);
      const victim = await startVictim(bench, place, { crash: null });
      const run = await startRun(bench.client, place, request);
      await untilTrue(async () => (await tables.sequences(ahead)).length > 0 && (await archived(place)).length === batch);
      victim.signal('SIGKILL');
      expect(await victim.ended).toBe('SIGKILL');
      expect(await ackFloor(stream, request)).toBe(0);
      await rival.query('UNLOCK TABLES');
      rival.destroy();
      await startLocalWorker(bench, place);
      const report = await run.result();
      for (const table of ['first', 'second']) {
        await expectAccounted(bench.manager, stream, { content, directory: () => tables.sequences(table), report });
      }
      expect(await archived(place)).toEqual(upTo(records));
      expect(await spooled(place)).toEqual(upTo(records));
      await tables.database.drop();
    },
  );

  test.each(points)('a worker lost at the point %s', { timeout: testMs }, async (point) => {
    const place = await newPlace();
    const stream = await addStream(bench.manager);
    const content = await fillWithBad(bench.nats, stream, records);
    const tables = await addTables(['orders']);
    const request = requestFor(stream, { archive: file, table: tables.sink('orders'), edge: spool });
    const victim = await startVictim(bench, place, { crash: { point, at: 2, delayMs: 2 } });
    const run = await startRun(bench.client, place, request);
    expect(await victim.ended, victim.log()).toBe('SIGKILL');
    const durable = request.plan.replay['durable_consumer'] as string;
    await expectNoEarlyAck(bench.manager, stream, { durable, directory: () => tables.sequences('orders') });
    await startLocalWorker(bench, place);
    const directory = () => tables.sequences('orders');
    await expectAccounted(bench.manager, stream, { content, directory, report: await run.result() });
    expect(await archived(place)).toEqual(upTo(records));
    expect(await spooled(place)).toEqual(upTo(records));
    await tables.database.drop();
  });
});

import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { headerBlock, madeId } from '../../sinks/jetstream/format.ts';
import { makeRecord } from '../contract/records.ts';
import { expectAccounted, expectNoEarlyAck, fillWithBad, recordBytesMax } from '../support/accounts.ts';
import { crashPoints, type CrashPoint } from '../support/crash-points.ts';
import { newPlace, openBench, startLocalWorker, startRun, type Bench } from '../support/fault-bench.ts';
import { addDatabase, testMysql, withoutMysql } from '../support/mysql.ts';
import { testOracle, withoutOracle } from '../support/oracle.ts';
import { oneBatchAStep, requestInto } from '../support/request.ts';
import { uniqueName } from '../support/servers.ts';
import { addStream } from '../support/streams.ts';
import { startVictim } from '../support/victim.ts';

/**
 * The crash matrix with other destinations than files: another stream, a table of a real MySQL, and one of Oracle over the wire
 * ladder unless REPLAY_TEST_ORACLE_URL names a real one. The short run has the points at which the destination matters.
 */
const long = process.env['REPLAY_TEST_LONG'] === '1';
const points: readonly CrashPoint[] = long
  ? crashPoints
  : ['after_pull', 'in_write', 'after_write', 'after_dead_letter', 'after_ack_sent'];
const recoveries = long ? (['goes on', 'is terminated and started again'] as const) : (['goes on'] as const);
const cells = points.flatMap((point) => recoveries.map((recovery) => ({ point, recovery })));
const cellMs = 180_000;

/** The database itself refuses a body that is too long. */
const columns = {
  stream: { field: 'stream' },
  incarnation: { field: 'incarnation' },
  seq: { field: 'sequence' },
  body: { field: 'payload' },
};

/** An empty place of its own. */
interface Destination {
  readonly sink: Readonly<Record<string, unknown>>;
  /** Only a database has one. */
  readonly password?: string;
  /** Sequences of the records that are there, ascending. */
  sequences(): Promise<number[]>;
  drop(): Promise<void>;
}

async function addMysql(): Promise<Destination> {
  const database = await addDatabase(await testMysql());
  const key = 'CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL';
  await database.query(
    `CREATE TABLE orders (stream VARCHAR(255) ${key}, incarnation VARCHAR(40) ${key}, seq BIGINT UNSIGNED NOT NULL,
     body VARCHAR(${recordBytesMax}) CHARACTER SET utf8mb4, PRIMARY KEY (stream, incarnation, seq))`,
  );
  return {
    sink: { type: 'mysql', ...database.place, table: 'orders', columns },
    password: database.password,
    sequences: async () => (await database.query('SELECT seq FROM orders ORDER BY seq')).map(({ seq }) => Number(seq)),
    drop: () => database.drop(),
  };
}

async function addOracle(): Promise<Destination> {
  const user = await (await testOracle()).addUser();
  // In characters, since in bytes it might fit.
  await user.query(
    `CREATE TABLE ORDERS (STREAM VARCHAR2(255 CHAR), INCARNATION VARCHAR2(40), SEQ NUMBER(20), BODY VARCHAR2(${recordBytesMax} CHAR), PRIMARY KEY (STREAM, INCARNATION, SEQ))`,
  );
  return {
    sink: { type: 'oracle', ...user.place, table: 'orders', columns },
    password: user.password,
    sequences: async () => (await user.query('SELECT SEQ FROM ORDERS ORDER BY SEQ')).map(({ SEQ: seq }) => Number(seq)),
    drop: () => user.drop(),
  };
}

/** The stream itself refuses a message that is too long, its headers included. */
async function addJetStream(): Promise<Destination> {
  const name = uniqueName('COPY');
  const like = makeRecord(100, { stream: uniqueName('S'), subject: `${uniqueName('s')}.a`, headers: new Map() });
  const headers = headerBlock(like, madeId(like), { stream: name, plan: uniqueName('d'), run: randomUUID() });
  const max_msg_size = headers.length + recordBytesMax / 2;
  await bench.manager.streams.add({ name, subjects: [`${name}.>`], allow_direct: true, max_msg_size });
  return {
    sink: { type: 'jetstream', stream: name, subject_prefix: name },
    async sequences() {
      const { state } = await bench.manager.streams.info(name);
      const found: number[] = [];
      for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq++) {
        const { header } = await bench.manager.streams.getMessage(name, { seq });
        found.push(Number(header.get('Replay-Source-Sequence')));
      }
      return found.toSorted((a, b) => a - b);
    },
    drop: async () => void (await bench.manager.streams.delete(name)),
  };
}

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
}, 180_000);

describe.each([
  { name: 'JetStream', without: false, server: async () => undefined, add: addJetStream },
  { name: 'MySQL', without: withoutMysql, server: testMysql, add: addMysql },
  { name: 'Oracle', without: withoutOracle, server: testOracle, add: addOracle },
])('a worker lost while it writes into $name', ({ without, server, add }) => {
  describe.skipIf(without).concurrent('at a point', () => {
    beforeAll(async () => void (await server()), 180_000);

    test.each(cells)('$point, then the run $recovery', { timeout: cellMs }, async ({ point, recovery }) => {
      const destination = await add();
      try {
        await expectSurvives(destination, point, recovery);
      } finally {
        await destination.drop();
      }
    });
  });
});

async function expectSurvives(
  destination: Destination,
  point: CrashPoint,
  recovery: (typeof recoveries)[number],
): Promise<void> {
  const place = await newPlace();
  const stream = await addStream(bench.manager);
  // Enough steps for a second link, where that is the point.
  const links = point === 'first_step_after_continue_as_new';
  const [records, batch] = links ? [120, 2] : [60, 10];
  const content = await fillWithBad(bench.nats, stream, records);
  const { password } = destination;
  const sink = password === undefined ? destination.sink : { ...destination.sink, password: { env: addSecret(password) } };
  const plan = { batch_size: batch, end_sequence: records, report_file: `${stream.name}.json`, ...oneBatchAStep };
  const request = requestInto(sink, stream, plan);
  const durable = request.plan.replay['durable_consumer'] as string;
  const directory = () => destination.sequences();

  const victim = await startVictim(bench, place, { crash: crashAt(point) });
  let run = await startRun(bench.client, place, request);
  const lost = await Promise.race([victim.ended, run.result().then(() => 'reached the end' as const)]);
  expect(lost, victim.log()).toBe('SIGKILL');
  await expectNoEarlyAck(bench.manager, stream, { durable, directory });

  if (recovery !== 'goes on') {
    await run.terminate();
    run = await startRun(bench.client, place, request);
  }
  const heir = await startLocalWorker(bench, place);
  const report = await run.result();
  await heir.stop();
  await expectAccounted(bench.manager, stream, { content, directory, report, first: firstOf(report) });
  if (password !== undefined) expect(victim.log()).not.toContain(password);
}

/** Name of the variable of the workers that holds it. */
function addSecret(value: string): string {
  const name = uniqueName('REPLAY_SECRET').replaceAll('-', '_').toUpperCase();
  process.env[name] = value;
  return name;
}

function crashAt(point: CrashPoint) {
  switch (point) {
    case 'between_delete_and_create':
    case 'after_put_back':
      return { point, at: 2, delayMs: 1, deferAck: 2 };
    case 'first_step_after_continue_as_new':
    case 'before_close':
    case 'after_close':
    case 'before_report':
    case 'in_report':
    case 'after_report':
      return { point, at: 1, delayMs: 1 };
    default:
      return { point, at: 2, delayMs: 2 };
  }
}

/** Where a run began that went on at the floor of another. */
function firstOf(report: Report): number {
  const found = report.warnings.map((warning) => /stopped at (\d+)/.exec(warning)?.[1]).find((text) => text !== undefined);
  return report.plan.resumed ? Number(found) : 1;
}

import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { expectAccounted, expectNoEarlyAck, fillWithBad, recordBytesMax } from '../support/accounts.ts';
import { crashPoints, type CrashPoint } from '../support/crash-points.ts';
import { newPlace, openBench, startLocalWorker, startRun, type Bench } from '../support/fault-bench.ts';
import { testOracle, withoutOracle, type TestUser } from '../support/oracle.ts';
import { oneBatchAStep, requestInto } from '../support/request.ts';
import { uniqueName } from '../support/servers.ts';
import { addStream } from '../support/streams.ts';
import { startVictim } from '../support/victim.ts';

/**
 * The crash matrix with a table of Oracle as the destination, over the wire ladder unless REPLAY_TEST_ORACLE_URL names a real
 * one. The short run has the points at which the destination matters.
 */
const long = process.env['REPLAY_TEST_LONG'] === '1';
const points: readonly CrashPoint[] = long
  ? crashPoints
  : ['after_pull', 'in_write', 'after_write', 'after_dead_letter', 'after_ack_sent'];
const recoveries = long ? (['goes on', 'is terminated and started again'] as const) : (['goes on'] as const);
const cells = points.flatMap((point) => recoveries.map((recovery) => ({ point, recovery })));
const cellMs = 180_000;

/** The database itself refuses a body that is too long: in characters, since in bytes it might fit. */
const columns = {
  stream: { field: 'stream' },
  incarnation: { field: 'incarnation' },
  seq: { field: 'sequence' },
  body: { field: 'payload' },
};
const tableSql = `CREATE TABLE ORDERS (STREAM VARCHAR2(255 CHAR), INCARNATION VARCHAR2(40), SEQ NUMBER(20), BODY VARCHAR2(${recordBytesMax} CHAR), PRIMARY KEY (STREAM, INCARNATION, SEQ))`;

let bench: Bench;

describe.skipIf(withoutOracle)('a worker lost while it writes into Oracle', () => {
  beforeAll(async () => {
    bench = await openBench();
    await testOracle();
  }, 180_000);

  describe.concurrent('at a point', () => {
    test.each(cells)('$point, then the run $recovery', { timeout: cellMs }, async ({ point, recovery }) => {
      const user = await (await testOracle()).addUser();
      await user.query(tableSql);
      try {
        expect.hasAssertions();
        await survives(user, point, recovery);
      } finally {
        await user.drop();
      }
    });
  });
});

async function survives(user: TestUser, point: CrashPoint, recovery: (typeof recoveries)[number]): Promise<void> {
  const place = await newPlace();
  const stream = await addStream(bench.manager);
  // Enough steps for a second link, where that is the point.
  const links = point === 'first_step_after_continue_as_new';
  const [records, batch] = links ? [120, 2] : [60, 10];
  const content = await fillWithBad(bench.nats, stream, records);
  const secret = uniqueName('REPLAY_SECRET').replaceAll('-', '_').toUpperCase();
  process.env[secret] = user.password;
  const sink = { type: 'oracle', ...user.place, password: { env: secret }, table: 'orders', columns };
  const plan = { batch_size: batch, end_sequence: records, report_file: `${stream.name}.json`, ...oneBatchAStep };
  const request = requestInto(sink, stream, plan);
  const durable = request.plan.replay['durable_consumer'] as string;
  const directory = async () => (await user.query('SELECT SEQ FROM ORDERS ORDER BY SEQ')).map(({ SEQ: seq }) => Number(seq));

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
  expect(victim.log()).not.toContain(user.password);
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

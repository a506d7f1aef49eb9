import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { expectAccounted, expectNoEarlyAck, fillWithBad, recordBytesMax } from '../support/accounts.ts';
import { crashPoints, type Crash, type CrashPoint } from '../support/crash-points.ts';
import { newPlace, openBench, startLocalWorker, startRun, until, type Bench } from '../support/fault-bench.ts';
import { oneBatchAStep, requestOf } from '../support/request.ts';
import { addStream } from '../support/streams.ts';
import { startVictim } from '../support/victim.ts';

/**
 * A worker process is lost (SIGKILL) at each named point. Then either another worker goes on with the run, or the run is
 * terminated and the same plan starts again at the floor: only there would an ACK that came too early lose records.
 */
const long = process.env['REPLAY_TEST_LONG'] === '1';
const seeds = long ? [0, 1, 2, 3, 4] : [0];
const atOf = [3, 5, 7, 1, 2] as const;
const delayOf = [1, 0, 3, 8, 20] as const;
const cellMs = 120_000;

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});

const afresh = 'is terminated and started again';
type Recovery = 'goes on' | typeof afresh;
/** In the short run each point has one recovery, the one in which it is more dangerous. */
const goesOnOnly: ReadonlySet<CrashPoint> = new Set<CrashPoint>([
  'after_pull',
  'in_write',
  'ack_in_flight_during_delivery',
  'between_delete_and_create',
  'first_step_after_continue_as_new',
  'in_report',
]);

interface Cell {
  readonly name: string;
  readonly crash: Crash;
  readonly recovery: Recovery;
  readonly records: number;
  readonly batch: number;
  /** Many steps, so that the run continues as new. */
  readonly oneBatchAStep: boolean;
  /** The victim takes over from a terminated run. */
  readonly takeover: boolean;
}

function cellsOf(point: CrashPoint, seed: number): Cell[] {
  const crash = crashOf(point, seed);
  const links = point === 'first_step_after_continue_as_new';
  const size = links ? { records: 200, batch: 2, oneBatchAStep: true } : { records: 80, batch: 10, oneBatchAStep: false };
  const recoveries: readonly Recovery[] = long ? ['goes on', afresh] : [goesOnOnly.has(point) ? 'goes on' : afresh];
  return recoveries.map((recovery) => ({
    name: `${point} #${crash.at}, ${crash.delayMs} ms, then the run ${recovery}`,
    crash,
    recovery,
    ...size,
    takeover: false,
  }));
}

function crashOf(point: CrashPoint, seed: number): Crash {
  const at = atOf[seed]!;
  const delayMs = delayOf[seed]!;
  switch (point) {
    case 'during_dead_letter':
    case 'after_dead_letter':
      return { point, at: 2 * at, delayMs };
    case 'between_delete_and_create':
    case 'after_put_back':
      // The first time creates the durable.
      return seed === 3 ? { point, at: 1, delayMs } : { point, at: 2, delayMs, deferAck: at };
    case 'first_step_after_continue_as_new':
    case 'before_close':
    case 'after_close':
    case 'before_report':
    case 'in_report':
    case 'after_report':
      return { point, at: 1, delayMs };
    default:
      return { point, at, delayMs };
  }
}

const takeoverPoints: readonly CrashPoint[] = long
  ? ['between_delete_and_create', 'after_put_back', 'before_pull', 'after_write']
  : ['between_delete_and_create', 'after_write'];

const cells = seeds.flatMap((seed) => [
  ...crashPoints.flatMap((point) => cellsOf(point, seed)),
  ...takeoverPoints.map((point): Cell => {
    const crash = { point, at: 1, delayMs: delayOf[seed]! };
    const recovery = seed % 2 === 0 ? 'goes on' : afresh;
    return {
      name: `takeover, ${point}, seed ${seed}`,
      crash,
      recovery,
      records: 80,
      batch: 10,
      oneBatchAStep: false,
      takeover: true,
    };
  }),
]);

describe.concurrent('a worker lost', () => {
  test.each(cells)('$name', { timeout: cellMs }, survives);
});

async function survives(cell: Cell): Promise<void> {
  const place = await newPlace();
  const stream = await addStream(bench.manager);
  const content = await fillWithBad(bench.nats, stream, cell.records);
  const file = `${stream.name}.json`;
  const plan = {
    batch_size: cell.batch,
    end_sequence: cell.records,
    report_file: file,
    ...(cell.oneBatchAStep ? oneBatchAStep : {}),
  };
  const request = requestOf(stream, plan, { max_record_bytes: recordBytesMax });
  const directory = join(place.dataRoot, stream.name);
  const durable = request.plan.replay['durable_consumer'] as string;

  if (cell.takeover) await beginAndTerminate();
  const victim = await startVictim(bench, place, { crash: cell.crash });
  let run = await startRun(bench.client, place, request);
  const lost = await Promise.race([victim.ended, run.result().then(() => 'reached the end' as const)]);
  expect(lost, victim.log()).toBe('SIGKILL');
  await expectNoEarlyAck(bench.manager, stream, { durable, directory });

  if (cell.recovery !== 'goes on') {
    await run.terminate();
    run = await startRun(bench.client, place, request);
  }
  const heir = await startLocalWorker(bench, place);
  const report = await run.result();
  await heir.stop();
  const first = report.plan.resumed ? firstOf(report) : 1;
  await expectAccounted(bench.manager, stream, { content, directory, report, first });
  expect(JSON.parse(await readFile(join(place.reportRoot, file), 'utf8'))).toEqual(report);
  expect((await bench.manager.streams.info(stream.name)).state.consumer_count).toBe(0);

  async function beginAndTerminate(): Promise<void> {
    const worker = await startLocalWorker(bench, place);
    const slow = { plan: { replay: { ...request.plan.replay, rate_limit_per_second: 20 } }, target: request.target };
    const begun = await startRun(bench.client, place, slow);
    await until(bench.client, begun.workflowId, (progress) => progress.counts.written >= 10);
    await begun.terminate();
    await worker.stop();
  }
}

/** Where a run began that went on at the floor of another. */
function firstOf(report: Report): number {
  const found = report.warnings.map((warning) => /stopped at (\d+)/.exec(warning)?.[1]).find((text) => text !== undefined);
  return Number(found);
}

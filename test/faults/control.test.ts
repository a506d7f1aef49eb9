import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Deps } from '../../activities/deps.ts';
import type { Progress } from '../../core/progress.ts';
import type { Report } from '../../core/report.ts';
import type { Sink } from '../../sinks/sink.ts';
import { expectAccounted, fillWithBad, recordBytesMax } from '../support/accounts.ts';
import { newPlace, openBench, startLocalWorker, startRun, until, type Bench } from '../support/fault-bench.ts';
import { oneBatchAStep, requestOf } from '../support/request.ts';
import { startProxy } from '../support/proxy.ts';
import { readRecords } from '../support/records.ts';
import { natsUrl, uniqueName } from '../support/servers.ts';
import { addStream } from '../support/streams.ts';
import { startVictim } from '../support/victim.ts';

/** Operators and schedules: cancel from every state, one owner of a durable, workers that are told to stop. */

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});

const testMs = 120_000;
/** Five seconds is the promise; a test machine may be several times slower. */
const cancelMsMax = 20_000;

/** Lets a test stand in the way of the n-th write. */
function slowWrite(at: number, before: (signal: AbortSignal) => Promise<unknown>) {
  let writes = 0;
  const wrapDeps = (deps: Deps): Deps => ({
    ...deps,
    sinks: {
      async borrow(use, signal) {
        const borrowed = await deps.sinks.borrow(use, signal);
        const write: Sink['write'] = async (batch, abort) => {
          if (++writes === at) await before(abort);
          return await borrowed.sink.write(batch, abort);
        };
        return { ...borrowed, sink: { ...borrowed.sink, write } };
      },
    },
  });
  return { wrapDeps, reached: () => writes >= at };
}

interface Begin {
  readonly records?: number;
  readonly plan?: Record<string, unknown>;
  readonly wrapDeps?: (deps: Deps) => Deps;
  readonly env?: NodeJS.ProcessEnv;
}

async function begin({ records = 100, plan = {}, ...options }: Begin) {
  const [place, stream] = [await newPlace(), await addStream(bench.manager)];
  const content = await fillWithBad(bench.nats, stream, records);
  const request = requestOf(
    stream,
    { batch_size: 10, end_sequence: records, max_rejects: 10_000, ...plan },
    { max_record_bytes: recordBytesMax },
  );
  const worker = await startLocalWorker(bench, place, options);
  const run = await startRun(bench.client, place, request);
  return { place, stream, content, request, worker, run, directory: join(place.dataRoot, stream.name) };
}

type Begun = Awaited<ReturnType<typeof begin>>;

/** Canceled in time; the rows and dead letters are what is acknowledged, and the report says so. */
async function expectCancels(
  { run, worker, stream, request, directory }: Begun,
  { writtenAhead = 0 } = {},
): Promise<Report | null> {
  const asked = Date.now();
  await run.cancel();
  await expect(run.result()).rejects.toThrow();
  expect(Date.now() - asked).toBeLessThan(cancelMsMax);
  expect((await run.describe()).status.name).toBe('CANCELLED');
  const report = await run.query<Report | null>('report');
  await worker.stop();
  if (report === null) return null;
  expect(report).toMatchObject({ state: 'canceled', stop_reason: 'canceled' });
  const durable = request.plan.replay['durable_consumer'] as string;
  const floor = (await bench.manager.consumers.info(stream.name, durable)).ack_floor.stream_seq;
  const rows = await readRecords(directory).catch(() => []);
  expect(floor).toBe(report.range.cursor - 1);
  expect(rows.length + report.counts.dead_lettered).toBe(floor + writtenAhead);
  expect(report.counts.acked).toBe(floor);
  return report;
}

describe.concurrent('cancel', { timeout: testMs }, () => {
  test('while describing', async () => {
    const proxy = await startProxy(natsUrl());
    const [place, stream] = [await newPlace(), await addStream(bench.manager)];
    const worker = await startLocalWorker(bench, place, { env: { NATS_URL: proxy.url } });
    proxy.cut();
    const run = await startRun(bench.client, place, requestOf(stream));
    await until(bench.client, run.workflowId, ({ state }) => state === 'describing');
    await sleep(1_000);
    const asked = Date.now();
    await run.cancel();
    await expect(run.result()).rejects.toThrow();
    expect(Date.now() - asked).toBeLessThan(cancelMsMax);
    expect((await run.describe()).status.name).toBe('CANCELLED');
    proxy.mend();
    await worker.stop();
  });

  test('while it waits for its pace', async () => {
    const begun = await begin({ plan: { rate_limit_per_second: 2 } });
    await until(bench.client, begun.run.workflowId, ({ counts }) => counts.written > 0);
    await expectCancels(begun);
  });

  test('while paused', async () => {
    const begun = await begin({ plan: { rate_limit_per_second: 20 } });
    await until(bench.client, begun.run.workflowId, ({ counts }) => counts.written > 0);
    await begun.run.signal('pause');
    await until(bench.client, begun.run.workflowId, ({ state }) => state === 'paused');
    await expectCancels(begun);
  });

  test('while blocked', async () => {
    const begun = await begin({ plan: { max_rejects: 3 } });
    await until(bench.client, begun.run.workflowId, ({ state }) => state === 'blocked');
    const report = await expectCancels(begun, { writtenAhead: 8 });
    expect(report!.warnings).toContainEqual(expect.stringContaining('Records 11 to 20 are not acknowledged'));
  });

  test('with a batch of 1,000 in flight: it may finish', async () => {
    const write = slowWrite(3, () => sleep(2_000));
    const begun = await begin({ records: 10_000, plan: { batch_size: 1_000 }, wrapDeps: write.wrapDeps });
    while (!write.reached()) await sleep(20);
    const report = await expectCancels(begun);
    expect(report!.range.cursor).toBeGreaterThan(2_000);
  });

  test('with a batch of 1,000 in a write that hangs: nothing of it is acknowledged', async () => {
    const hang = (signal: AbortSignal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    const write = slowWrite(3, hang);
    const begun = await begin({ records: 10_000, plan: { batch_size: 1_000 }, wrapDeps: write.wrapDeps });
    while (!write.reached()) await sleep(20);
    const report = await expectCancels(begun);
    expect(report!.range.cursor).toBe(2_001);
  });
});

describe.concurrent('the owner of a durable', { timeout: testMs }, () => {
  const refusalOf = async (run: { result(): Promise<unknown> }): Promise<string> =>
    await run.result().then(
      () => 'not refused',
      (error: Error) => (error.cause as Error).message,
    );

  test('across continue-as-new: a second run is refused, by hand or by a Schedule', async () => {
    const begun = await begin({ records: 300, plan: { batch_size: 2, ...oneBatchAStep } });
    const { firstExecutionRunId } = begun.run;
    while ((await bench.client.workflow.getHandle(begun.run.workflowId).describe()).runId === firstExecutionRunId)
      await sleep(100);
    const second = await startRun(bench.client, begun.place, begun.request);
    expect(await refusalOf(second)).toContain(`belongs to the running replay "${begun.run.workflowId}"`);
    const scheduleId = uniqueName('schedule');
    const schedule = await bench.client.schedule.create({
      scheduleId,
      spec: { intervals: [{ every: '1 day' }] },
      state: { triggerImmediately: true },
      action: {
        type: 'startWorkflow',
        workflowType: 'replayPlan',
        workflowId: uniqueName('scheduled'),
        taskQueue: begun.place.taskQueue,
        args: [begun.request],
      },
    });
    const started = async (): Promise<string | undefined> => {
      const action = (await schedule.describe()).info.recentActions[0]?.action;
      return action?.type === 'startWorkflow' ? action.workflow.workflowId : undefined;
    };
    let id: string | undefined;
    while ((id = await started()) === undefined) await sleep(100);
    expect(await refusalOf(bench.client.workflow.getHandle(id))).toContain('belongs to the running replay');
    await schedule.delete();
    await expectAccounted(bench.manager, begun.stream, { ...begun, report: await begun.run.result() });
    await begun.worker.stop();
  });

  test('closed when its workflow id serves another chain by now: the same plan takes over', async () => {
    const begun = await begin({ plan: { rate_limit_per_second: 20 } });
    await until(bench.client, begun.run.workflowId, ({ counts }) => counts.written > 0);
    await begun.run.terminate();
    const idle = requestOf(await addStream(bench.manager), { dry_run: true });
    await startRun(bench.client, begun.place, idle, begun.run.workflowId);
    const other = {
      plan: { replay: { ...begun.request.plan.replay, rate_limit_per_second: null } },
      target: begun.request.target,
    };
    const report = await (await startRun(bench.client, begun.place, other)).result();
    await begun.worker.stop();
    expect(report.plan.resumed).toBe(true);
    await expectAccounted(bench.manager, begun.stream, { ...begun, report, first: report.range.first + resumedAt(report) - 1 });
  });

  test('another plan on the durable of an unfinished one is refused', async () => {
    const begun = await begin({ plan: { rate_limit_per_second: 20 } });
    await until(bench.client, begun.run.workflowId, ({ counts }) => counts.written > 0);
    await begun.run.cancel();
    await expect(begun.run.result()).rejects.toThrow();
    const other = { plan: { replay: { ...begun.request.plan.replay, end_sequence: 50 } }, target: begun.request.target };
    expect(await refusalOf(await startRun(bench.client, begun.place, other))).toContain('unfinished replay of another plan');
    await begun.worker.stop();
  });
});

function resumedAt(report: Report): number {
  return Number(/stopped at (\d+)/.exec(report.warnings.join('\n'))![1]);
}

describe.concurrent('a worker told to stop', { timeout: testMs }, () => {
  test('finishes its batch or hands it back; another goes on within seconds', async () => {
    const [place, stream] = [await newPlace(), await addStream(bench.manager)];
    const content = await fillWithBad(bench.nats, stream, 300);
    const victim = await startVictim(bench, place, { crash: null });
    const plan = { batch_size: 10, end_sequence: 300, rate_limit_per_second: 60 };
    const run = await startRun(bench.client, place, requestOf(stream, plan, { max_record_bytes: recordBytesMax }));
    await until(bench.client, run.workflowId, ({ counts }) => counts.written >= 20);
    victim.signal('SIGTERM');
    victim.signal('SIGTERM');
    expect(await victim.ended).toBeNull();
    const heir = await startLocalWorker(bench, place);
    const before = Date.now();
    const { cursor } = await run.query<Progress>('progress');
    await until(bench.client, run.workflowId, (progress) => progress.cursor > cursor);
    expect(Date.now() - before).toBeLessThan(60_000);
    const report = await run.result();
    await heir.stop();
    await expectAccounted(bench.manager, stream, { content, directory: join(place.dataRoot, stream.name), report });
    expect(report.counts.duplicate).toBe(0);
  });
});

import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { headers } from 'nats';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Deps } from '../../activities/deps.ts';
import { faultEntry, type FaultCode } from '../../core/errors.ts';
import type { Report } from '../../core/report.ts';
import { deadLetters, expectAccounted, fillWithBad, recordBytesMax, type Content } from '../support/accounts.ts';
import * as faultBench from '../support/fault-bench.ts';
import { startLocalWorker, startRun, until, type Bench, type LocalWorker, type Place } from '../support/fault-bench.ts';
import { requestOf } from '../support/request.ts';
import { atFileEnd, tempDir } from '../support/file-end.ts';
import { startProxy } from '../support/proxy.ts';
import { readRecords } from '../support/records.ts';
import { natsUrl } from '../support/servers.ts';
import { addStream, publishAll, type TestStream } from '../support/streams.ts';
import { startVictim } from '../support/victim.ts';

/** The world breaks under a run: it ends in the right state, and after the mend nothing is lost, doubled or wrongly dead-lettered. */

let bench: Bench;
beforeAll(async () => {
  bench = await faultBench.openBench();
});

const recordsOfRun = 100;
const testMs = 120_000;

interface Running {
  readonly place: Place;
  readonly stream: TestStream;
  readonly content: Content;
  readonly directory: string;
  readonly durable: string;
  readonly worker: LocalWorker;
  readonly run: Awaited<ReturnType<typeof startRun>>;
}

interface RunOptions {
  readonly plan?: Record<string, unknown>;
  readonly sink?: Record<string, unknown>;
  readonly place?: Place;
  readonly env?: NodeJS.ProcessEnv;
  readonly wrapDeps?: (deps: Deps) => Deps;
  /** Without: none of the records is refused. */
  readonly bad?: boolean;
}

/** A run that is on its way, slowly: some of its hundred records are settled. */
async function running(options: RunOptions = {}): Promise<Running> {
  const place = options.place ?? (await faultBench.newPlace());
  const stream = await addStream(bench.manager);
  const content = await fill(stream, options.bad === true);
  const request = requestOf(
    stream,
    { batch_size: 10, end_sequence: recordsOfRun, rate_limit_per_second: 25, report_file: 'r.json', ...options.plan },
    { ...(options.bad === true ? { max_record_bytes: recordBytesMax } : {}), ...options.sink },
  );
  const worker = await startLocalWorker(bench, place, options);
  const run = await startRun(bench.client, place, request);
  await until(bench.client, run.workflowId, (progress) => progress.counts.written >= 15);
  const durable = request.plan.replay['durable_consumer'] as string;
  return { place, stream, content, directory: join(place.dataRoot, stream.name), durable, worker, run };
}

async function fill(stream: TestStream, bad: boolean): Promise<Content> {
  if (bad) return await fillWithBad(bench.nats, stream, recordsOfRun);
  const body = (i: number): Uint8Array => new TextEncoder().encode(`{"n":${i}}`);
  await publishAll(
    bench.nats,
    Array.from({ length: recordsOfRun }, (_, i) => ({ subject: `${stream.prefix}.${i % 2 === 0 ? 'a' : 'b'}`, body: body(i) })),
  );
  return { records: recordsOfRun, bad: [] };
}

async function expectBlocked({ run, worker }: Running, code: FaultCode): Promise<void> {
  // A slow machine may meet a passing fault first, and tell that one.
  const progress = await until(bench.client, run.workflowId, ({ problem }) => problem?.code === code, 60_000);
  expect(progress).toMatchObject({ state: 'blocked', problem: { next: faultEntry(code).next } });
  const told = worker.log.filter((line) => line['code'] === code && String(line['msg']).startsWith('step failed'));
  const steps = told.map((line) => line['step']);
  // Each step tells its own fault once: an ACK of its own may fail beside the delivery.
  expect(steps.length).toBeGreaterThan(0);
  expect(new Set(steps).size).toBe(steps.length);
}

async function expectGoesOn(found: Running, options: { readonly resume: boolean }): Promise<Report> {
  if (options.resume) await found.run.signal('resume');
  await found.run.executeUpdate('setRate', { args: [{ perSecond: null }] });
  const report = await found.run.result();
  await expectAccounted(bench.manager, found.stream, { ...found, report });
  await found.worker.stop();
  return report;
}

/** The run can only be given up: it ends Canceled, with as many rows as records acknowledged, and no dead letters. */
async function expectCancels(found: Running): Promise<Report> {
  await found.run.cancel();
  await expect(found.run.result()).rejects.toThrow();
  expect((await found.run.describe()).status.name).toBe('CANCELLED');
  const report = await found.run.query<Report>('report');
  const rows = await readRecords(found.directory);
  expect(rows.map(({ sequence }) => sequence)).toEqual(Array.from({ length: rows.length }, (_, i) => i + 1));
  expect(report).toMatchObject({ state: 'canceled', counts: { written: rows.length, rejected: 0, dead_lettered: 0 } });
  expect(JSON.parse(await readFile(join(found.place.reportRoot, 'r.json'), 'utf8'))).toMatchObject({ state: 'canceled' });
  await found.worker.stop();
  return report;
}

/** Between two batches, so that it is not a write in flight that finds out. */
async function moveAway({ run, place }: Running): Promise<void> {
  await run.signal('pause');
  await until(bench.client, run.workflowId, ({ state }) => state === 'paused');
  await rename(place.dataRoot, `${place.dataRoot}-away`);
  await run.signal('resume');
}

function shell(command: string, ...args: readonly string[]): boolean {
  return spawnSync('sh', ['-c', command, ...args]).status === 0;
}

describe.concurrent('the stream', { timeout: testMs }, () => {
  test('deleted: blocked, then canceled', async () => {
    const found = await running();
    await bench.manager.streams.delete(found.stream.name);
    await expectBlocked(found, 'stream_missing');
    await expectCancels(found);
  });

  test('created anew under its name: blocked, and nothing of the new one is touched', async () => {
    const found = await running();
    await bench.manager.streams.delete(found.stream.name);
    await bench.manager.streams.add({ name: found.stream.name, subjects: [`${found.stream.prefix}.>`], allow_direct: true });
    await fill(found.stream, false);
    await expectBlocked(found, 'stream_recreated');
    await expectCancels(found);
    expect((await bench.manager.streams.info(found.stream.name)).state.consumer_count).toBe(0);
  });

  test('purged: what is gone is counted as vanished', async () => {
    const found = await running();
    await bench.manager.streams.purge(found.stream.name);
    await found.run.executeUpdate('setRate', { args: [{ perSecond: null }] });
    const { counts, range } = await found.run.result();
    expect(counts.vanished).toBeGreaterThan(0);
    expect(counts).toMatchObject({ written: recordsOfRun - counts.vanished, acked: counts.pulled, duplicate: 0 });
    expect(range.not_reached).toBe(0);
    expect(await readRecords(found.directory)).toHaveLength(counts.written);
    await found.worker.stop();
  });

  test('messages deleted before the run reaches them: vanished, the others exact', async () => {
    const found = await running();
    for (const sequence of [70, 71, 95]) await bench.manager.streams.deleteMessage(found.stream.name, sequence);
    await found.run.executeUpdate('setRate', { args: [{ perSecond: null }] });
    const { counts } = await found.run.result();
    expect(counts).toMatchObject({ vanished: 3, written: recordsOfRun - 3, acked: recordsOfRun - 3, gaps: 0 });
    const sequences = (await readRecords(found.directory)).map(({ sequence }) => sequence);
    expect(sequences).toEqual(Array.from({ length: 100 }, (_, i) => i + 1).filter((n) => ![70, 71, 95].includes(n)));
    await found.worker.stop();
  });

  test('one of two filters purged while a record of the other waits', async () => {
    const stream = await addStream(bench.manager);
    const filters = [`${stream.prefix}.a`, `${stream.prefix}.b`];
    await publishAll(bench.nats, [
      ...Array.from({ length: 60 }, () => ({ subject: filters[0]!, body: new Uint8Array(1) })),
      { subject: filters[1]!, body: new Uint8Array(2) },
    ]);
    const place = await faultBench.newPlace();
    const worker = await startLocalWorker(bench, place);
    const plan = { subject_filter: null, subject_filters: filters, batch_size: 5, rate_limit_per_second: 10, end_sequence: 61 };
    const run = await startRun(bench.client, place, requestOf(stream, plan));
    await until(bench.client, run.workflowId, (progress) => progress.counts.written >= 10);
    await bench.manager.streams.purge(stream.name, { filter: filters[0]! });
    const { counts, stop_reason } = await run.result();
    expect(stop_reason).toBe('end_of_range');
    const sequences = (await readRecords(join(place.dataRoot, stream.name))).map(({ sequence }) => sequence);
    expect(sequences).toEqual([...Array.from({ length: counts.written - 1 }, (_, i) => i + 1), 61]);
    expect(counts).toMatchObject({ vanished: 61 - counts.written, acked: counts.written });
    await worker.stop();
  });
});

describe.concurrent('the durable consumer', { timeout: testMs }, () => {
  test('deleted: put back at the cursor', async () => {
    const found = await running({ bad: true });
    await bench.manager.consumers.delete(found.stream.name, found.durable);
    await expectGoesOn(found, { resume: false });
  });

  test('altered: put back as it must be', async () => {
    const found = await running({ bad: true });
    await bench.manager.consumers.update(found.stream.name, found.durable, {
      filter_subjects: [`${found.stream.prefix}.other`],
    });
    await expectGoesOn(found, { resume: false });
  });

  test('pulled from by somebody else: put back, nothing skipped', async () => {
    const found = await running({ bad: true });
    const consumer = await bench.nats.jetstream().consumers.get(found.stream.name, found.durable);
    for (let i = 0; i < 3; i++) (await consumer.next({ expires: 1_000 }))?.ack();
    await expectGoesOn(found, { resume: false });
  });

  test("taken by somebody else's: blocked, and left alone", async () => {
    const found = await running();
    const take = async (): Promise<boolean> => {
      await bench.manager.consumers.delete(found.stream.name, found.durable);
      const config = { durable_name: found.durable, ack_policy: 'explicit' as never };
      return await bench.manager.consumers.add(found.stream.name, config).then(
        () => true,
        () => false,
      );
    };
    // The run puts its durable back within milliseconds, and may be the faster one.
    await expect.poll(take, { timeout: 10_000, interval: 5 }).toBe(true);
    await expectBlocked(found, 'consumer_taken');
    await bench.manager.consumers.delete(found.stream.name, found.durable);
    await expectGoesOn(found, { resume: true });
  });
});

describe.concurrent('the connection', { timeout: testMs }, () => {
  test('cut for two seconds: goes on by itself', async () => {
    const proxy = await startProxy(natsUrl());
    const found = await running({ bad: true, env: { NATS_URL: proxy.url } });
    proxy.cut();
    await sleep(2_000);
    proxy.mend();
    await expectGoesOn(found, { resume: false });
  });

  test('cut for long: blocked, then goes on', async () => {
    const proxy = await startProxy(natsUrl());
    const found = await running({ bad: true, env: { NATS_URL: proxy.url } });
    proxy.cut();
    await expectBlocked(found, 'nats_unreachable');
    proxy.mend();
    await sleep(1_500);
    await expectGoesOn(found, { resume: true });
  });

  test('there, but mute', async () => {
    const proxy = await startProxy(natsUrl());
    const found = await running({ bad: true, env: { NATS_URL: proxy.url } });
    proxy.mute(true);
    await sleep(3_000);
    proxy.mute(false);
    await expectGoesOn(found, { resume: false });
  });

  test('slow: 50 ms for each piece of data', async () => {
    const proxy = await startProxy(natsUrl());
    proxy.slow(50);
    const found = await running({ bad: true, env: { NATS_URL: proxy.url } });
    await expectGoesOn(found, { resume: false });
  });
});

describe.concurrent('the data root', { timeout: testMs }, () => {
  test('moved away: blocked, nothing made in its place; moved back: goes on', async () => {
    const found = await running();
    await moveAway(found);
    await expectBlocked(found, 'sink_missing');
    expect(await readdir(found.place.dataRoot).catch(() => 'none')).toBe('none');
    await rename(`${found.place.dataRoot}-away`, found.place.dataRoot);
    await expectGoesOn(found, { resume: true });
  });

  test("another worker's: blocked; back on the first one: goes on", async () => {
    const found = await running();
    await found.worker.stop();
    const elsewhere = join(await tempDir(), 'other');
    await mkdir(elsewhere);
    await writeFile(join(elsewhere, '.replay-root'), 'another\n');
    const other = await startLocalWorker(bench, { ...found.place, dataRoot: elsewhere });
    await expectBlocked({ ...found, worker: other }, 'wrong_root');
    await other.stop();
    const first = await startLocalWorker(bench, found.place);
    await expectGoesOn({ ...found, worker: first }, { resume: true });
  });
});

const small = await mountSmall();
/** A file system of its own for a data root, which needs the right to mount one. */
async function mountSmall(): Promise<string | null> {
  const folder = join(await tempDir(), 'small');
  await mkdir(folder);
  if (process.getuid?.() !== 0 || !shell('mount -t tmpfs -o size=1m tmpfs "$0"', folder)) return null;
  atFileEnd(() => Promise.resolve(shell('umount -l "$0"', folder)));
  return folder;
}

describe.skipIf(small === null)('a file system (skipped where the tests may not mount one)', () => {
  test('read-only, then full: blocked each time, then goes on', async () => {
    const place = { ...(await faultBench.newPlace()), dataRoot: small! };
    const begun = await running({ place });
    // An open file would keep the file system from becoming read-only.
    await begun.worker.stop();
    expect(shell('mount -o remount,ro "$0"', small!)).toBe(true);
    const found = { ...begun, worker: await startLocalWorker(bench, place) };
    await expectBlocked(found, 'sink_denied');
    expect(shell('mount -o remount,rw "$0"', small!)).toBe(true);
    await writeFile(join(small!, 'filler'), Buffer.alloc(2_000_000)).catch(() => undefined);
    await found.run.signal('resume');
    await until(bench.client, found.run.workflowId, ({ problem }) => problem?.code === 'sink_full');
    await rm(join(small!, 'filler'));
    await expectGoesOn(found, { resume: true });
    expect(await deadLetters(bench.manager, found.stream)).toEqual([]);
  });
});

describe.concurrent('the dead-letter stream', { timeout: testMs }, () => {
  test('missing: blocked; made again: goes on', async () => {
    const found = await running({ bad: true, plan: { max_rejects: 1_000 } });
    const { config } = await bench.manager.streams.info(found.stream.deadLetterStream);
    // What it held must be there in the end, so it is set aside, not deleted.
    await bench.manager.streams.update(found.stream.deadLetterStream, {
      ...config,
      subjects: [`aside-${found.stream.prefix}`],
    });
    await expectBlocked(found, 'dead_letter_unbound');
    await bench.manager.streams.update(found.stream.deadLetterStream, config);
    await expectGoesOn(found, { resume: true });
  });

  test('full: blocked; with room: goes on', async () => {
    const found = await running({ bad: true });
    const { config, state } = await bench.manager.streams.info(found.stream.deadLetterStream);
    const full = { ...config, max_msgs: state.messages, discard: 'new' as never };
    await bench.manager.streams.update(found.stream.deadLetterStream, full);
    await expectBlocked(found, 'dead_letter_refused');
    await bench.manager.streams.update(found.stream.deadLetterStream, config);
    await expectGoesOn(found, { resume: true });
  });

  test('with a duplicate window of 2 s: warned of; stored again later, the distinct ids are exact', async () => {
    const stream = await addStream(bench.manager);
    const { config } = await bench.manager.streams.info(stream.deadLetterStream);
    await bench.manager.streams.update(stream.deadLetterStream, { ...config, duplicate_window: 2_000_000_000 });
    const content = await fillWithBad(bench.nats, stream, 20);
    const place = await faultBench.newPlace();
    const worker = await startLocalWorker(bench, place);
    const request = requestOf(stream, { end_sequence: 20, keep_consumer: true }, { max_record_bytes: recordBytesMax });
    const first = await (await startRun(bench.client, place, request)).result();
    expect(first.warnings).toContainEqual(expect.stringContaining('2 s'));
    await sleep(2_500);
    const report = await (await startRun(bench.client, place, request)).result();
    await worker.stop();
    expect((await bench.manager.streams.info(stream.deadLetterStream)).state.messages).toBe(2 * content.bad.length);
    await expectAccounted(bench.manager, stream, { content, directory: join(place.dataRoot, stream.name), report });
  });
});

describe.concurrent('time', { timeout: testMs }, () => {
  test('a write longer than any heartbeat: not tried a second time', async () => {
    let writes = 0;
    const wrapDeps = (deps: Deps): Deps => ({
      ...deps,
      sinks: {
        async borrow(use, signal) {
          const borrowed = await deps.sinks.borrow(use, signal);
          const { sink } = borrowed;
          const write: typeof sink.write = async (batch, abort) => {
            if (++writes === 4) await sleep(12_000);
            return await sink.write(batch, abort);
          };
          return { ...borrowed, sink: { ...sink, open: sink.open, probe: sink.probe, close: sink.close, write } };
        },
      },
    });
    const found = await running({ bad: true, wrapDeps });
    const report = await expectGoesOn(found, { resume: false });
    expect(writes).toBe(10);
    expect(report.counts).toMatchObject({ duplicate: 0, skipped: 0 });
  });

  test.each(['after_pull', 'after_write', 'in_write'] as const)('event loop blocked for 7 s %s', async (point) => {
    const place = await faultBench.newPlace();
    const stream = await addStream(bench.manager);
    const content = await fillWithBad(bench.nats, stream, recordsOfRun);
    const victim = await startVictim(bench, place, { crash: { point, at: 3, delayMs: 1 }, blockMs: 7_000 });
    const plan = { batch_size: 10, end_sequence: recordsOfRun };
    const run = await startRun(bench.client, place, requestOf(stream, plan, { max_record_bytes: recordBytesMax }));
    const report = await run.result();
    victim.signal('SIGTERM');
    await victim.ended;
    await expectAccounted(bench.manager, stream, { content, directory: join(place.dataRoot, stream.name), report });
  });
});

test('a body of 1 MB; repeated and empty headers', async () => {
  const stream = await addStream(bench.manager);
  const place = await faultBench.newPlace();
  const worker = await startLocalWorker(bench, place);
  const marked = headers();
  for (const value of ['one', '', 'two']) marked.append('Trace', value);
  marked.set('Empty', '');
  // The server takes 1 MiB with the headers.
  const big = Buffer.alloc(1_048_000, 'b');
  await publishAll(bench.nats, [{ subject: `${stream.prefix}.a`, body: big, headers: marked }]);
  const report = await (
    await startRun(bench.client, place, requestOf(stream, { end_sequence: 1, batch_bytes: 65_536 }))
  ).result();
  await worker.stop();
  expect(report.counts).toMatchObject({ written: 1, bytes: big.length });
  const [record] = await readRecords(join(place.dataRoot, stream.name));
  expect(record!.payload).toBe(big.toString());
  const line = JSON.parse(record!.line) as { headers: Record<string, string[]> };
  expect(line.headers).toEqual({ Trace: ['one', '', 'two'], Empty: [''] });
});

test('blocked for long: few events a try', async () => {
  const found = await running();
  await moveAway(found);
  await expectBlocked(found, 'sink_missing');
  const events = async (): Promise<number> => (await found.run.describe()).historyLength;
  const [before, tries] = [await events(), 5];
  for (let i = 0; i < tries; i++) {
    await found.run.signal('resume');
    await sleep(700);
  }
  // One event of each try is the signal itself; an hour has fewer than twenty tries (unit test of the pacing).
  expect((await events()) - before).toBeLessThanOrEqual(tries * 14);
  expect(found.worker.log.filter((line) => line['code'] === 'sink_missing')).toHaveLength(1);
  await rename(`${found.place.dataRoot}-away`, found.place.dataRoot);
  await expectGoesOn(found, { resume: true });
  expect(found.worker.log.filter((line) => line['code'] === 'sink_missing')).toHaveLength(2);
});

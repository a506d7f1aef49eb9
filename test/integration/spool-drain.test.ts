import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { spoolConfigSchema } from '../../sinks/spool/config.ts';
import { createSpoolSink } from '../../sinks/spool/sink.ts';
import { createDataRoot } from '../../worker/folders.ts';
import { makeRecord } from '../contract/records.ts';
import type { DrainRequest } from '../../core/drain.ts';
import type { Report } from '../../core/report.ts';
import { newPlace, openBench, startLocalWorker, startRun, until, type Bench, type Place } from '../support/fault-bench.ts';
import { readRecords } from '../support/records.ts';
import { requestOf } from '../support/request.ts';
import { uniqueName } from '../support/servers.ts';
import { drainCrashPoints, type CrashPoint } from '../support/crash-points.ts';
import { startVictim } from '../support/victim.ts';
import { addStream, mixedMessages, publishAll, type TestMessage, type TestStream } from '../support/streams.ts';
import { tempDir } from '../support/file-end.ts';
import { command } from './cli/command-line.ts';
import { startWorker } from '../support/worker.ts';

const SECRET = 'REPLAY_SECRET_SPOOL_TEST';
const KEY = randomBytes(32).toString('base64');
const encryption = { key_id: 'k1', key: { env: SECRET } };

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
  process.env[SECRET] = KEY;
}, 120_000);

interface Spooled {
  readonly place: Place;
  readonly stream: TestStream;
  readonly spool: { readonly sink: Record<string, unknown> };
  readonly directory: string;
}

/** A stream of which every message is in a spool, put there by a replay. */
async function replayedIntoSpool(messages: (prefix: string) => Iterable<TestMessage>): Promise<Spooled> {
  const place = await newPlace();
  const stream = await addStream(bench.manager);
  const all = [...messages(stream.prefix)];
  await publishAll(bench.nats, all);
  const spool = { sink: { type: 'spool', directory: 'spool', encryption } };
  await startLocalWorker(bench, place);
  const { plan } = requestOf(stream, { batch_size: 50, end_sequence: all.length });
  const report = await (await startRun(bench.client, place, { plan, target: spool })).result();
  expect(report.counts.written).toBe(all.length);
  return { place, stream, spool, directory: join(place.dataRoot, 'spool') };
}

/** The same by the sink alone, which is quicker. */
async function spooled(messages: (prefix: string) => Iterable<TestMessage>): Promise<Spooled> {
  const place = await newPlace();
  const stream = await addStream(bench.manager);
  const records = [...messages(stream.prefix)].map(({ subject, body }, i) =>
    makeRecord(i + 1, { stream: stream.name, subject, payload: body }),
  );
  await createDataRoot(place.dataRoot).readOrCreate();
  const sink = { type: 'spool', directory: 'spool', encryption };
  const silent = { info: () => undefined, warn: () => undefined };
  const context = { dataRoot: place.dataRoot, plan: 'plan', run: 'run', begun: false, secret: () => KEY, log: silent };
  const writer = createSpoolSink(spoolConfigSchema.parse(sink), context);
  const { signal } = new AbortController();
  for (let start = 0; start < records.length; start += 50) await writer.write(records.slice(start, start + 50), signal);
  await writer.close();
  return { place, stream, spool: { sink }, directory: join(place.dataRoot, 'spool') };
}

async function startDrain(place: Place, request: DrainRequest, workflowId = uniqueName('drain')) {
  return await bench.client.workflow.start<(request: DrainRequest) => Promise<Report>>('drainSpool', {
    taskQueue: place.taskQueue,
    workflowId,
    workflowTaskTimeout: '5s',
    args: [request],
  });
}

/** The short run has those at which something stands between target, dead letters and spool. */
const pointsOfLoss: readonly CrashPoint[] =
  process.env['REPLAY_TEST_LONG'] === '1'
    ? drainCrashPoints
    : ['after_take', 'in_write', 'after_write', 'after_dead_letter', 'in_remove'];

const execute = { dry_run: false, batch_size: 50 };
const intoFile = (stream: TestStream, fields: Record<string, unknown> = {}) => ({
  sink: { type: 'file', directory: 'out', ...fields },
  dead_letter: { subject: stream.deadLetterSubject },
});

async function sequencesIn({ place }: Spooled): Promise<number[]> {
  return (await readRecords(join(place.dataRoot, 'out'))).map(({ sequence }) => sequence);
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
const numbered = (count: number) => (prefix: string) =>
  upTo(count).map((n) => ({ subject: `${prefix}.a`, body: new TextEncoder().encode(`{"n":${n}}`) }));

describe('the drain of a spool', { timeout: 120_000 }, () => {
  test('a dry run makes, moves and removes nothing; the drain moves all, in order, and leaves the spool empty', async () => {
    const found = await replayedIntoSpool((prefix) => mixedMessages(prefix, 300));
    const { place, spool, stream, directory } = found;
    const before = await readdir(place.dataRoot, { recursive: true });
    const rehearsed = await (await startDrain(place, { spool, target: intoFile(stream) })).result();
    expect(rehearsed).toMatchObject({ state: 'rehearsed', range: { count: 300 }, counts: { pulled: 0 } });
    expect(await readdir(place.dataRoot, { recursive: true })).toEqual(before);

    const report = await (await startDrain(place, { spool, target: intoFile(stream), drain: execute })).result();
    expect(report).toMatchObject({ state: 'completed', stop_reason: 'drained', rejects: [] });
    expect(report.counts).toMatchObject({ pulled: 300, written: 300, duplicate: 0, acked: 300 });
    expect(await sequencesIn(found)).toEqual(upTo(300));
    expect(await readdir(join(directory, 'packs'))).toHaveLength(1);
    const again = await (await startDrain(place, { spool, target: intoFile(stream), drain: execute })).result();
    expect(again.counts.pulled).toBe(0);
  });

  test('what the target refuses is dead-lettered from the spool, though the stream is gone', async () => {
    const found = await spooled((prefix) =>
      upTo(40).map((n) => ({ subject: `${prefix}.a`, body: new TextEncoder().encode(n % 20 === 7 ? `bad ${n}` : '{}') })),
    );
    const { place, spool, stream } = found;
    await bench.manager.streams.delete(stream.name);
    await startLocalWorker(bench, place);
    const target = intoFile(stream, { require_json: true });
    const report = await (await startDrain(place, { spool, target, drain: execute })).result();
    expect(report.counts).toMatchObject({ pulled: 40, written: 38, rejected: 2, dead_lettered: 2, lost_body: 0, acked: 40 });
    const letter = await bench.manager.streams.getMessage(stream.deadLetterStream, { seq: 1 });
    expect([
      Buffer.from(letter.data).toString(),
      letter.header.get('Replay-Source-Sequence'),
      letter.header.get('Replay-Reason'),
    ]).toEqual(['bad 7', '7', 'not_json']);
  });

  test('over its reject budget it is blocked and the spool keeps all; skip leaves the refused ones out', async () => {
    const found = await spooled((prefix) =>
      upTo(20).map((n) => ({ subject: `${prefix}.a`, body: new TextEncoder().encode(n % 5 === 0 ? 'bad' : '{}') })),
    );
    const { place, spool, stream, directory } = found;
    await startLocalWorker(bench, place);
    const target = intoFile(stream, { require_json: true });
    const run = await startDrain(place, { spool, target, drain: { ...execute, max_rejects: 2 } });
    const blocked = await until(bench.client, run.workflowId, ({ state }) => state === 'blocked');
    expect(blocked.problem?.code).toBe('reject_budget');
    expect(await readdir(join(directory, 'packs'))).toHaveLength(1);
    await run.executeUpdate('decide', { args: [{ decision: 'skip' }] });
    const report = await run.result();
    expect(report.counts).toMatchObject({ pulled: 20, rejected: 4, dead_lettered: 0, acked: 20 });
    expect(report.rejects).toMatchObject([5, 10, 15, 20].map((sequence) => ({ sequence, decision: 'skip' })));
  });

  test('a second drain cannot take the same spool; paused, it goes on where it was; canceled, another one goes on', async () => {
    const found = await spooled(numbered(400));
    const { place, spool, stream } = found;
    await startLocalWorker(bench, place);
    const drain = { ...execute, rate_limit_per_second: 200 };
    const first = await startDrain(place, { spool, target: intoFile(stream), drain });
    await until(bench.client, first.workflowId, ({ counts }) => counts.acked > 0);
    await first.signal('pause');
    await until(bench.client, first.workflowId, ({ state }) => state === 'paused');
    const second = await startDrain(place, { spool, target: intoFile(stream), drain: execute });
    const taken = await until(bench.client, second.workflowId, ({ state }) => state === 'blocked');
    expect(taken.problem).toMatchObject({ code: 'spool_taken', detail: first.workflowId });
    await first.cancel();
    await expect(first.result()).rejects.toThrow();
    await second.signal('resume');
    const report = await second.result();
    const firstReport = await first.query<Report>('report');
    expect(firstReport).toMatchObject({ state: 'canceled' });
    expect(firstReport.counts.acked + report.counts.acked).toBe(400);
    expect(await sequencesIn(found)).toEqual(upTo(400));
  });

  describe.concurrent('a worker lost', () => {
    test.each(pointsOfLoss)('at the point %s: nothing lost, nothing twice', async (point) => {
      const isBad = (n: number) => n % 50 === 7;
      const found = await spooled((prefix) =>
        upTo(300).map((n) => ({ subject: `${prefix}.a`, body: new TextEncoder().encode(isBad(n) ? `bad ${n}` : '{}') })),
      );
      const { place, spool, stream, directory } = found;
      const at = point.endsWith('_report') ? 1 : 2;
      const victim = await startVictim(bench, place, { crash: { point, at, delayMs: 1 } });
      // Two packs a batch, so that one of them may be gone.
      const drain = { ...execute, batch_size: 100, report_file: 'drain.json' };
      const run = await startDrain(place, { spool, target: intoFile(stream, { require_json: true }), drain });
      expect(await victim.ended, victim.log()).toBe('SIGKILL');
      await startLocalWorker(bench, place);
      const report = await run.result();
      expect(report.counts).toMatchObject({ pulled: 300, acked: 300, rejected: 6, dead_lettered: 6, lost_body: 0 });
      expect(report.counts.written + report.counts.duplicate).toBe(294);
      expect(await sequencesIn(found)).toEqual(upTo(300).filter((n) => !isBad(n)));
      const letters = (await bench.manager.streams.info(stream.deadLetterStream)).state.messages;
      expect(letters).toBe(6);
      expect(await readdir(join(directory, 'packs'))).toHaveLength(1);
      expect(JSON.parse(await readFile(join(place.reportRoot, 'drain.json'), 'utf8'))).toMatchObject({ state: 'completed' });
    });
  });

  test('damaged entries are set aside and reported, the others drained', async () => {
    const found = await spooled(numbered(100));
    const { place, spool, stream, directory } = found;
    const [first] = await readdir(join(directory, 'packs'));
    const path = join(directory, 'packs', first!);
    const bytes = await readFile(path);
    bytes[bytes.length - 1]! ^= 1;
    await writeFile(path, bytes);
    await writeFile(join(directory, 'packs', 'stray'), 'x');
    await startLocalWorker(bench, place);
    const report = await (await startDrain(place, { spool, target: intoFile(stream), drain: execute })).result();
    expect(report.counts).toMatchObject({ pulled: 99, written: 99 });
    expect(report.warnings).toContainEqual(expect.stringContaining('2 damaged or foreign entries'));
    expect(await readdir(join(directory, 'aside'))).toHaveLength(2);
  });

  test.each([
    ['no spool there', { sink: { type: 'spool', directory: 'nowhere', encryption } }, 'spool: sink.directory'],
    ['a file sink as the spool', { sink: { type: 'file', directory: 'x' } }, 'spool: sink.type'],
    ['into itself', { sink: { type: 'spool', directory: 'itself', encryption } }, 'sink.directory: is the spool'],
  ])('%s is refused', async (name, spool, message) => {
    const place = await newPlace();
    await startLocalWorker(bench, place);
    const target = name === 'into itself' ? spool : { sink: { type: 'file', directory: 'out' } };
    const run = await startDrain(place, { spool, target, drain: execute });
    await expect(run.result()).rejects.toMatchObject({ cause: { message: expect.stringContaining(message) } });
  });
});

test('from the command line', { timeout: 120_000 }, async () => {
  const { place, spool, stream } = await spooled(numbered(60));
  const worker = await startWorker({ REPLAY_DATA_ROOT: place.dataRoot, [SECRET]: KEY });
  const folder = await tempDir();
  const files = [join(folder, 'spool.json'), join(folder, 'target.json')] as const;
  // Ids name the spool, and the server is shared.
  const directory = uniqueName('spool');
  await writeFile(files[0], JSON.stringify({ sink: { ...spool.sink, directory } }));
  await writeFile(files[1], JSON.stringify(intoFile(stream)));
  const missing = await command(['spool', 'drain', ...files, '--json']);
  expect([missing.status, JSON.parse(missing.stdout)]).toMatchObject([2, { state: 'refused' }]);

  await writeFile(files[0], JSON.stringify(spool));
  const dry = await command(['spool', 'drain', ...files]);
  expect(dry.status, dry.stderr).toBe(0);
  expect(dry.stdout).toContain('spool:spool: rehearsed');
  const done = await command(['spool', 'drain', ...files, '--execute', '--json']);
  expect(done.status, done.stderr).toBe(0);
  expect(JSON.parse(done.stdout)).toMatchObject({ state: 'completed', counts: { acked: 60 } });
  const status = await command(['status', 'spool-drain:spool', '--json']);
  expect(status.status, status.stderr).toBe(0);
  expect(JSON.stringify([missing, dry, done, status, worker.log()])).not.toContain(KEY);
});

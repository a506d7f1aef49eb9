import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { newPlace, openBench, startLocalWorker, startRun, until, type Bench, type Place } from '../support/fault-bench.ts';
import { tempDir } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { requestOf } from '../support/request.ts';
import { uniqueName } from '../support/servers.ts';
import { addStream, publishAll, type TestStream } from '../support/streams.ts';
import { startVictim } from '../support/victim.ts';
import { startWorker } from '../support/worker.ts';
import { command } from './cli/command-line.ts';

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
}, 120_000);

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

async function filled(count: number): Promise<TestStream> {
  const stream = await addStream(bench.manager);
  await publishAll(
    bench.nats,
    upTo(count).map((n) => ({
      subject: `${stream.prefix}.${n % 2 === 0 ? 'even' : 'odd'}`,
      body: new TextEncoder().encode(`${n}`),
    })),
  );
  return stream;
}

async function sequencesIn(place: Pick<Place, 'dataRoot'>, directory: string): Promise<number[]> {
  return (await readRecords(join(place.dataRoot, directory))).map(({ sequence }) => sequence);
}

const file = (directory: string) => ({ sink: { type: 'file', directory } });

function fanOut(stream: TestStream, sinks: object, plan: Record<string, unknown> = {}) {
  const { plan: document } = requestOf(stream, { batch_size: 20, ...plan });
  return { plan: document, target: { sink: { type: 'fanout', sinks }, dead_letter: { subject: stream.deadLetterSubject } } };
}

/** A file where the directory of a child should be: it cannot be written into. */
async function block(place: Pick<Place, 'dataRoot'>, name: string): Promise<void> {
  await mkdir(place.dataRoot, { recursive: true });
  await writeFile(join(place.dataRoot, name), 'in the way');
}

describe('a replay into several sinks', { timeout: 120_000 }, () => {
  test('each child has what it takes; counts by child are in progress and report', async () => {
    const place = await newPlace();
    const stream = await filled(100);
    const copy = uniqueName('COPY');
    await bench.manager.streams.add({ name: copy, subjects: [`${copy}.>`], allow_direct: true });
    await startLocalWorker(bench, place);
    const sinks = {
      all: file('all'),
      even: { ...file('even'), subjects: [`${stream.prefix}.even`] },
      spool: { sink: { type: 'spool', directory: 'spool', allow_unencrypted: true } },
      copy: { sink: { type: 'jetstream', stream: copy, subject_prefix: copy }, required: false },
    };
    const run = await startRun(bench.client, place, fanOut(stream, sinks, { end_sequence: 100 }));
    const report = await run.result();
    expect(report.counts).toMatchObject({ pulled: 100, written: 100, rejected: 0, acked: 100 });
    expect(report.children).toMatchObject([
      { name: 'all', required: true, written: 100, failed: 0, missing: [] },
      { name: 'even', written: 50 },
      { name: 'spool', written: 100 },
      { name: 'copy', required: false, written: 100, failed: 0, missing: [] },
    ]);
    expect(await run.query('progress')).toMatchObject({ children: report.children });
    expect(await sequencesIn(place, 'all')).toEqual(upTo(100));
    expect(await sequencesIn(place, 'even')).toEqual(upTo(50).map((n) => 2 * n));
    expect((await bench.manager.streams.info(copy)).state.messages).toBe(100);
  });

  test('a required child that is down: nothing is ACKed, the others are not filled twice, and it goes on once it is back', async () => {
    const place = await newPlace();
    const stream = await filled(60);
    await block(place, 'second');
    await startLocalWorker(bench, place);
    const request = fanOut(stream, { first: file('first'), second: file('second') }, { end_sequence: 60 });
    const run = await startRun(bench.client, place, request);
    const blocked = await until(bench.client, run.workflowId, ({ state }) => state === 'blocked');
    expect(blocked.problem).toMatchObject({ code: 'sink_missing', detail: expect.stringContaining('child "second"') });
    const durable = request.plan.replay['durable_consumer'] as string;
    expect((await bench.manager.consumers.info(stream.name, durable)).ack_floor.stream_seq).toBe(0);
    await rm(join(place.dataRoot, 'second'));
    await run.signal('resume');
    const report = await run.result();
    expect(report.counts).toMatchObject({ rejected: 0, acked: 60 });
    expect(report.counts.written + report.counts.duplicate).toBe(60);
    for (const directory of ['first', 'second']) expect(await sequencesIn(place, directory)).toEqual(upTo(60));
  });

  test('a worker lost between the children: both exact', async () => {
    const place = await newPlace();
    const stream = await filled(200);
    const request = fanOut(
      stream,
      { first: file('first'), second: { sink: { ...file('second').sink, compression: 'none' } } },
      { end_sequence: 200 },
    );
    const victim = await startVictim(bench, place, { crash: { point: 'in_write', at: 3, delayMs: 3 } });
    const run = await startRun(bench.client, place, request);
    expect(await victim.ended, victim.log()).toBe('SIGKILL');
    await startLocalWorker(bench, place);
    const report = await run.result();
    expect(report.counts).toMatchObject({ rejected: 0, acked: report.counts.pulled });
    for (const directory of ['first', 'second']) expect(await sequencesIn(place, directory)).toEqual(upTo(200));
  });
});

test('what an optional child missed is kept, and retry-optional brings it', { timeout: 180_000 }, async () => {
  const stream = await filled(90);
  const folder = await tempDir();
  const place = { dataRoot: join(folder, 'data') };
  await block(place, 'extra');
  const worker = await startWorker({ REPLAY_DATA_ROOT: place.dataRoot });
  const { plan, target } = fanOut(
    stream,
    { main: file('main'), extra: { ...file('extra'), required: false, subjects: [`${stream.prefix}.odd`] } },
    { end_sequence: 90 },
  );
  const files = [join(folder, 'plan.json'), join(folder, 'target.json')] as const;
  await writeFile(files[0], JSON.stringify(plan));
  await writeFile(files[1], JSON.stringify(target));
  const first = await command([...files, '--execute', '--json']);
  expect(first.status, first.stderr).toBe(0);
  const report = JSON.parse(first.stdout) as Report;
  expect(report.counts).toMatchObject({ written: 90, acked: 90 });
  const extra = report.children?.find(({ name }) => name === 'extra');
  expect(extra).toMatchObject({ written: 0, failed: 45 });
  expect([extra?.missing[0]?.[0], extra?.missing.at(-1)?.[1]]).toEqual([1, 89]);

  const names = [stream.name, plan.replay['durable_consumer'] as string] as const;
  const unknown = await command(['retry-optional', ...names, 'nobody']);
  expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining('its children: main, extra')]);
  const nothing = await command(['retry-optional', ...names, 'main', '--json']);
  expect([nothing.status, JSON.parse(nothing.stdout)]).toMatchObject([0, { missing: [] }]);

  await rm(join(place.dataRoot, 'extra'));
  const dry = await command(['retry-optional', ...names, 'extra', '--dry-run', '--json']);
  expect(JSON.parse(dry.stdout), dry.stderr).toMatchObject({ state: 'rehearsed', range: { first: 1, last: 89 } });
  const retried = await command(['retry-optional', ...names, 'extra', '--json']);
  expect(retried.status, retried.stderr).toBe(0);
  expect(JSON.parse(retried.stdout)).toMatchObject({ state: 'completed', counts: { written: 45, skipped: 44, rejected: 0 } });
  expect(await sequencesIn(place, 'extra')).toEqual(upTo(45).map((n) => 2 * n - 1));
  expect(await sequencesIn(place, 'main')).toEqual(upTo(90));
  await worker.stop();
});

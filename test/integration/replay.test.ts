import { createHash } from 'node:crypto';
import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection, ServiceError, WorkflowFailedError } from '@temporalio/client';
import type { JetStreamManager, NatsConnection } from 'nats';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import type { Progress } from '../../core/progress.ts';
import type { ReplayRequest } from '../../core/steps.ts';
import { atFileEnd } from '../support/file-end.ts';
import { countLines, originalBody, readRecords } from '../support/records.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../support/servers.ts';
import { oneBatchAStep, requestOf } from '../support/request.ts';
import { addStream, mixedMessages, publishAll, type TestStream } from '../support/streams.ts';
import { startWorker, type TestWorker } from '../support/worker.ts';

let nats: NatsConnection;
let manager: JetStreamManager;
let client: Client;
let worker: TestWorker;

beforeAll(async () => {
  nats = await connectTestNats();
  manager = await nats.jetstreamManager();
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  client = new Client({ connection });
  worker = await startWorker();
});

async function start(input: ReplayRequest, workflowId = uniqueName('test')) {
  return await client.workflow.start('replayPlan', {
    taskQueue: 'durable-replay',
    workflowId,
    workflowTaskTimeout: '5s',
    args: [input],
  });
}

async function replay(input: ReplayRequest): Promise<Report> {
  return (await (await start(input)).result()) as Report;
}

/** The message of a refused run: its problems, one a line. */
async function refusal(input: ReplayRequest): Promise<string> {
  try {
    await replay(input);
  } catch (error) {
    if (error instanceof WorkflowFailedError && error.cause instanceof Error) return error.cause.message;
    throw error;
  }
  throw new Error('the plan was not refused');
}

async function filled(count: number): Promise<TestStream> {
  const stream = await addStream(manager);
  await publishAll(nats, mixedMessages(stream.prefix, count));
  return stream;
}

const md5 = (bytes: Uint8Array): string => createHash('md5').update(bytes).digest('hex');

describe('20,000 mixed bodies', () => {
  let stream: TestStream;
  beforeAll(async () => {
    stream = await filled(20_000);
  });

  test('a dry run says the count and leaves nothing but its report', async () => {
    const input = requestOf(stream, { dry_run: true, report_file: `${stream.name}-dry.json` });
    const report = await replay(input);
    expect(report).toMatchObject({
      state: 'rehearsed',
      stop_reason: 'dry_run',
      counts: { pulled: 0, gaps: 0 },
      range: { count: 20_000, count_exact: true },
    });
    expect((await manager.streams.info(stream.name)).state.consumer_count).toBe(0);
    expect(await readdir(worker.dataRoot).catch(() => [])).toEqual([]);
    const file = JSON.parse(await readFile(join(worker.reportRoot, `${stream.name}-dry.json`), 'utf8')) as Report;
    expect(file).toEqual(report);
  });

  test('land exactly, in order, once', async () => {
    const report = await replay(requestOf(stream, { batch_size: 1_000 }));
    expect(report).toMatchObject({
      state: 'completed',
      stop_reason: 'drained',
      counts: {
        pulled: 20_000,
        written: 20_000,
        duplicate: 0,
        skipped: 0,
        rejected: 0,
        dead_lettered: 0,
        acked: 20_000,
        vanished: 0,
        gaps: 0,
      },
      warnings: [expect.stringContaining('no end')],
    });
    const records = await readRecords(join(worker.dataRoot, stream.name));
    expect(records.map((record) => record.sequence)).toEqual(Array.from({ length: 20_000 }, (_, i) => i + 1));
    let index = 0;
    for (const message of mixedMessages(stream.prefix, 20_000)) {
      const record = records[index++]!;
      const body =
        record.payload_format === 'json'
          ? Buffer.from(message.body)
              .toString('latin1')
              .replaceAll(/[\r\n]/g, ' ')
          : null;
      expect(md5(originalBody(record))).toBe(md5(body === null ? message.body : Buffer.from(body, 'latin1')));
      expect(record.subject).toBe(message.subject);
    }
    expect((await manager.streams.info(stream.name)).state.consumer_count).toBe(0);
  });

  test('the same again writes nothing and reports 20,000 duplicates', async () => {
    const before = await readRecords(join(worker.dataRoot, stream.name));
    const report = await replay(requestOf(stream));
    expect(report.counts).toMatchObject({ pulled: 20_000, written: 0, duplicate: 20_000, acked: 20_000 });
    expect(await readRecords(join(worker.dataRoot, stream.name))).toHaveLength(before.length);
  });
});

describe('the bounds of a run', () => {
  test('end_sequence is inclusive; a record beyond it is neither written nor acknowledged', async () => {
    const stream = await filled(300);
    const report = await replay(requestOf(stream, { start_sequence: 51, end_sequence: 250, batch_size: 64 }));
    expect(report).toMatchObject({
      stop_reason: 'end_of_range',
      counts: { pulled: 200, written: 200, acked: 200, vanished: 0 },
    });
    const sequences = (await readRecords(join(worker.dataRoot, stream.name))).map((record) => record.sequence);
    expect(sequences).toEqual(Array.from({ length: 200 }, (_, i) => i + 51));
  });

  test('a scope whose last match lies before end_sequence ends too', async () => {
    const stream = await filled(300);
    const report = await replay(requestOf(stream, { subject_filter: `${stream.prefix}.created`, end_sequence: 300 }));
    expect(report).toMatchObject({ stop_reason: 'end_of_range', counts: { pulled: 100, written: 100 }, range: { count: 100 } });
  });

  test('max_messages stops in the middle of a batch, and the same plan goes on after the records it settled', async () => {
    const stream = await filled(100);
    const input = requestOf(stream, { max_messages: 30, batch_size: 20 });
    expect(await replay(input)).toMatchObject({
      stop_reason: 'max_messages',
      counts: { written: 30, acked: 30 },
      range: { not_reached: 70 },
    });
  });

  test('times are resolved to sequences, to the nanosecond', async () => {
    const stream = await filled(100);
    const times: string[] = [];
    for (const sequence of [31, 81]) times.push((await manager.streams.getMessage(stream.name, { seq: sequence })).timestamp);
    const report = await replay(requestOf(stream, { start_sequence: null, start_time: times[0], end_time: times[1] }));
    expect(report).toMatchObject({ range: { first: 31, last: 80 }, stop_reason: 'end_of_range', counts: { written: 50 } });
  });

  test('gaps, deletes and a purge within the range are counted and passed over', async () => {
    const stream = await filled(200);
    for (const sequence of [50, 51, 120]) await manager.streams.deleteMessage(stream.name, sequence);
    await manager.streams.purge(stream.name, { seq: 11 });
    const report = await replay(requestOf(stream, { end_sequence: 200, batch_size: 32 }));
    expect(report).toMatchObject({ counts: { written: 187, gaps: 13, vanished: 0, acked: 187 }, range: { count: 187 } });
    expect(report.warnings).toContainEqual(expect.stringContaining('partly gone'));
  });

  test('several filters and small batch_bytes: everything in order, a larger record comes alone', async () => {
    const stream = await addStream(manager);
    const big = new Uint8Array(200_000).fill(0x61);
    await publishAll(nats, [
      ...mixedMessages(stream.prefix, 40),
      { subject: `${stream.prefix}.created`, body: big },
      ...mixedMessages(stream.prefix, 40),
    ]);
    const filters = [`${stream.prefix}.created`, `${stream.prefix}.paid`];
    const report = await replay(
      requestOf(stream, { subject_filter: null, subject_filters: filters, batch_bytes: 65_536, end_sequence: 81 }),
    );
    const records = await readRecords(join(worker.dataRoot, stream.name));
    expect(report.counts.written).toBe(records.length);
    expect(records.map((record) => record.sequence)).toEqual(
      records.map((record) => record.sequence).toSorted((a, b) => a - b),
    );
    expect(records).toHaveLength(14 + 13 + 1 + 14 + 13);
    expect(records.some((record) => record.sequence === 41)).toBe(true);
  });
});

describe('rejects', () => {
  test('are dead-lettered one by one, with the record around them written', async () => {
    const stream = await addStream(manager);
    const body = (i: number): Uint8Array => new TextEncoder().encode(i % 100 === 50 ? 'x'.repeat(2_000) : `{"i":${i}}`);
    await publishAll(
      nats,
      Array.from({ length: 1_000 }, (_, i) => ({ subject: `${stream.prefix}.a`, body: body(i) })),
    );
    const report = await replay(requestOf(stream, { batch_size: 100, end_sequence: 1_000 }, { max_record_bytes: 1_000 }));
    expect(report.counts).toMatchObject({ written: 990, rejected: 10, dead_lettered: 10, acked: 1_000, lost_body: 0 });
    expect(report.rejects.map((reject) => [reject.sequence, reject.code])).toEqual(
      Array.from({ length: 10 }, (_, i) => [i * 100 + 51, 'too_large']),
    );
    expect(report.rejects[0]).toMatchObject({ bytes: 2_000, bytes_max: 1_000 });
    const letters = await manager.streams.info(stream.deadLetterStream);
    expect(letters.state.messages).toBe(10);
    const letter = await manager.streams.getMessage(stream.deadLetterStream, { seq: 1 });
    expect(new TextDecoder().decode(letter.data)).toBe('x'.repeat(2_000));
    expect(letter.header.get('Replay-Source-Sequence')).toBe('51');
    expect(letter.header.get('Replay-Reason')).toBe('too_large');
  });

  test('over the budget block the plan with nothing acknowledged; resume grants one more', async () => {
    const stream = await addStream(manager);
    const body = (i: number): Uint8Array => new TextEncoder().encode(i < 5 ? 'x'.repeat(2_000) : `{"i":${i}}`);
    await publishAll(
      nats,
      Array.from({ length: 100 }, (_, i) => ({ subject: `${stream.prefix}.a`, body: body(i) })),
    );
    const input = requestOf(stream, { max_rejects: 3, end_sequence: 100 }, { max_record_bytes: 1_000 });
    const handle = await start(input);
    const progress = await until(handle.workflowId, (p) => p.state === 'blocked');
    expect(progress.problem).toMatchObject({ code: 'reject_budget', next: expect.stringContaining('resume') });
    expect(progress.problem?.detail).toContain('5 refused in this batch, 3 left in the budget');
    expect(progress.rejects).toHaveLength(4);
    expect(progress.counts).toMatchObject({ acked: 0, dead_lettered: 0 });
    expect((await manager.streams.info(stream.deadLetterStream)).state.messages).toBe(0);
    await handle.signal('resume');
    expect(await handle.result()).toMatchObject({
      counts: { rejected: 5, dead_lettered: 5, written: 0, duplicate: 95, acked: 100 },
    });
  });
});

async function until(workflowId: string, wanted: (progress: Progress) => boolean, limitMs = 30_000): Promise<Progress> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const progress = await queryProgress(workflowId);
    if (progress !== null && wanted(progress)) return progress;
    const over = progress !== null && ['completed', 'canceled', 'refused'].includes(progress.state);
    if (over || Date.now() > deadline) throw new Error(`not reached; last: ${JSON.stringify(progress)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** null while no worker answers: a query may have gone to one that was just killed. */
async function queryProgress(workflowId: string): Promise<Progress | null> {
  try {
    return await client.workflow.getHandle(workflowId).query<Progress>('progress');
  } catch (error) {
    if (error instanceof ServiceError) return null;
    throw error;
  }
}

describe('control', () => {
  test('pause holds between batches, resume goes on, the rate limit holds, cancel ends Canceled with rows = ACK floor', async () => {
    const stream = await filled(2_000);
    const input = requestOf(stream, { batch_size: 50, rate_limit_per_second: 200, report_file: `${stream.name}.json` });
    const handle = await start(input);
    await until(handle.workflowId, (p) => p.counts.written >= 100);
    await handle.signal('pause');
    const paused = await until(handle.workflowId, (p) => p.state === 'paused');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await handle.query<Progress>('progress')).counts.written).toBe(paused.counts.written);
    await handle.executeUpdate('setRate', { args: [{ perSecond: 100 }] });
    await expect(handle.executeUpdate('setRate', { args: [{ perSecond: 0 }] })).rejects.toThrow();
    await handle.signal('resume');
    const resumed = await until(handle.workflowId, (p) => p.counts.written > paused.counts.written);
    const before = Date.now();
    const later = await until(handle.workflowId, (p) => p.counts.written >= resumed.counts.written + 200);
    expect((later.counts.written - resumed.counts.written) / ((Date.now() - before) / 1_000)).toBeLessThan(150);
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow(WorkflowFailedError);
    expect((await handle.describe()).status.name).toBe('CANCELLED');
    const report = await handle.query<Report>('report');
    expect(report).toMatchObject({ state: 'canceled', stop_reason: 'canceled' });
    const { durable_consumer } = (input.plan as { replay: { durable_consumer: string } }).replay;
    const consumer = await manager.consumers.info(stream.name, durable_consumer);
    const rows = (await readRecords(join(worker.dataRoot, stream.name))).length;
    expect(consumer.ack_floor.stream_seq).toBe(rows);
    expect(report.counts).toMatchObject({ written: rows, acked: rows });
    expect(JSON.parse(await readFile(join(worker.reportRoot, `${stream.name}.json`), 'utf8'))).toEqual(
      expect.objectContaining({ state: 'canceled' }),
    );

    const again = await start({
      ...input,
      plan: { replay: { ...(input.plan as { replay: object }).replay, rate_limit_per_second: null } },
    });
    const finished = (await again.result()) as Report;
    expect(finished.plan.resumed).toBe(true);
    expect(finished.counts).toMatchObject({ written: 2_000 - rows, duplicate: 0 });
  });

  test('the signal cancel ends Canceled too', async () => {
    const stream = await filled(500);
    const handle = await start(requestOf(stream, { batch_size: 10, rate_limit_per_second: 50 }));
    await until(handle.workflowId, (p) => p.counts.written >= 10);
    await handle.signal('cancel');
    await expect(handle.result()).rejects.toThrow(WorkflowFailedError);
    expect((await handle.describe()).status.name).toBe('CANCELLED');
  });

  test('a second run on the same durable is refused while the first lives, under whatever id', async () => {
    const stream = await filled(500);
    const input = requestOf(stream, { batch_size: 10, rate_limit_per_second: 50 });
    const first = await start(input);
    await until(first.workflowId, (p) => p.counts.written >= 10);
    expect(await refusal(input)).toContain(`belongs to the running replay "${first.workflowId}"`);
    await first.terminate();
    const resumed = await replay({
      ...input,
      plan: { replay: { ...(input.plan as { replay: object }).replay, rate_limit_per_second: null } },
    });
    expect(resumed.plan.resumed).toBe(true);
    const sequences = (await readRecords(join(worker.dataRoot, stream.name))).map((record) => record.sequence);
    expect(sequences).toEqual(Array.from({ length: 500 }, (_, i) => i + 1));
  });
});

describe('what is taken away in the middle of a run', () => {
  test('messages of the range: counted as vanished, with a warning', async () => {
    const stream = await filled(1_000);
    const handle = await start(requestOf(stream, { batch_size: 50, rate_limit_per_second: 100, end_sequence: 1_000 }));
    await until(handle.workflowId, (p) => p.counts.written >= 50);
    await handle.signal('pause');
    const { cursor } = await until(handle.workflowId, (p) => p.state === 'paused');
    await manager.streams.purge(stream.name, { seq: 801 });
    await handle.executeUpdate('setRate', { args: [{ perSecond: null }] });
    await handle.signal('resume');
    const report = (await handle.result()) as Report;
    expect(report.counts).toMatchObject({ written: cursor - 1 + 200, vanished: 800 - (cursor - 1) });
    expect(report.warnings).toContainEqual(expect.stringContaining('were deleted from the stream'));
  });

  test('the directory: blocked, and not made anew; put back, the run goes on', async () => {
    const stream = await filled(1_000);
    const handle = await start(requestOf(stream, { batch_size: 50, rate_limit_per_second: 100, end_sequence: 1_000 }));
    await until(handle.workflowId, (p) => p.counts.written >= 50);
    const directory = join(worker.dataRoot, stream.name);
    await rename(directory, `${directory}-moved`);
    const progress = await until(handle.workflowId, (p) => p.state === 'blocked');
    expect(progress.problem).toMatchObject({ code: 'sink_missing', next: expect.stringContaining('put it back') });
    await handle.executeUpdate('setRate', { args: [{ perSecond: null }] });
    await handle.signal('resume');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(await readdir(worker.dataRoot)).not.toContain(stream.name);
    await rename(`${directory}-moved`, directory);
    await handle.signal('resume');
    expect(((await handle.result()) as Report).state).toBe('completed');
    expect((await readRecords(directory)).map((record) => record.sequence)).toEqual(
      Array.from({ length: 1_000 }, (_, i) => i + 1),
    );
  });
});

describe('refusals create nothing', () => {
  test('what only the server can show, all at once', async () => {
    const stream = await filled(10);
    const input = requestOf(stream, { start_sequence: 11, durable_consumer: 'd1' });
    expect(
      await refusal({
        ...input,
        target: { sink: { type: 'file', directory: 'x' }, dead_letter: { subject: 'nowhere.at-all' } },
      }),
    ).toBe(
      [
        'replay.start_sequence: 11 is past the end; the stream ends at 10',
        'dead_letter.subject: no stream takes "nowhere.at-all"; create one, for example: nats stream add DLQ --subjects "nowhere.at-all" --defaults --dupe-window 1h',
      ].join('\n'),
    );
    expect((await manager.streams.info(stream.name)).state.consumer_count).toBe(0);
  });

  test('missing stream; interest and work-queue streams', async () => {
    const stream = await filled(1);
    expect(await refusal(requestOf({ ...stream, name: 'NO-SUCH' }))).toContain('replay.stream: no stream "NO-SUCH"');
    for (const retention of ['interest', 'workqueue'] as const) {
      const kept = await addStream(manager, { retention } as never);
      await publishAll(nats, [{ subject: `${kept.prefix}.a`, body: new Uint8Array() }]);
      expect(await refusal(requestOf(kept, { dry_run: true }))).toContain(`${retention} retention`);
    }
  });

  test('a filter that no subject of the stream can match', async () => {
    const stream = await filled(10);
    expect(await refusal(requestOf(stream, { subject_filter: 'a.slip.of-the-pen' }))).toBe(
      `replay.subject_filters: "a.slip.of-the-pen" matches no subject of the stream, which takes ${stream.prefix}.>`,
    );
    const empty = await replay(requestOf(stream, { subject_filter: `${stream.prefix}.nothing-yet` }));
    expect(empty.warnings).toContainEqual(expect.stringContaining('No message in the range'));
  });

  test('a bad plan and a bad target are listed together', async () => {
    const message = await refusal({
      plan: { replay: { stream: 'a.b', start_sequence: 0 } },
      target: { sink: { type: 'file', directory: '../x' } },
    });
    for (const path of [
      'replay.stream',
      'replay.start_sequence',
      'replay.durable_consumer',
      'replay.max_messages',
      'sink.directory',
    ]) {
      expect(message).toContain(`${path}: `);
    }
  });
});

test('a worker killed three times in the middle: nothing lost, doubled or out of order', async () => {
  const stream = await filled(12_000);
  const shared = { REPLAY_DATA_ROOT: worker.dataRoot, REPLAY_REPORT_ROOT: worker.reportRoot };
  await worker.stop();
  let victim = await startWorker(shared);
  const handle = await start(requestOf(stream, { batch_size: 100, end_sequence: 12_000, rate_limit_per_second: 1_000 }));
  const directory = join(worker.dataRoot, stream.name);
  for (let kill = 1; kill <= 3; kill++) {
    const heir = await startWorker(shared);
    await until(handle.workflowId, (p) => p.counts.written >= kill * 1_000);
    await victim.kill();
    const rows = await countLines(directory);
    // Within 15 s where the machine is not busy otherwise.
    await expect.poll(() => countLines(directory), { timeout: 60_000 }).toBeGreaterThan(Math.min(rows, 11_999));
    victim = heir;
  }
  const report = (await handle.result()) as Report;
  worker = victim;
  expect(report.counts.written + report.counts.duplicate).toBe(12_000);
  expect(report.counts.acked).toBe(report.counts.pulled);
  const sequences = (await readRecords(join(victim.dataRoot, stream.name))).map((record) => record.sequence);
  expect(sequences).toEqual(Array.from({ length: 12_000 }, (_, i) => i + 1));
}, 300_000);

test('continue-as-new in the middle of a run changes nothing', async () => {
  const stream = await filled(1_000);
  const handle = await start(requestOf(stream, { batch_size: 5, end_sequence: 1_000, ...oneBatchAStep }));
  const report = (await handle.result()) as Report;
  expect((await handle.describe()).raw.workflowExecutionInfo?.firstRunId).not.toBe((await handle.describe()).runId);
  expect(report.counts).toMatchObject({ pulled: 1_000, written: 1_000, acked: 1_000, skipped: 0 });
}, 120_000);

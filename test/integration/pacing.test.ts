import { join } from 'node:path';
import { Client, Connection, WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import type { JetStreamManager, NatsConnection } from 'nats';
import { beforeAll, expect, test } from 'vitest';
import type { Progress } from '../../core/progress.ts';
import type { Report } from '../../core/report.ts';
import { atFileEnd } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { requestOf } from '../support/request.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll, type TestStream } from '../support/streams.ts';
import { startWorker, type TestWorker } from '../support/worker.ts';

const patience = { timeout: 60_000, interval: 100 };

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

async function start(stream: TestStream, plan: Readonly<Record<string, unknown>>): Promise<WorkflowHandle> {
  const args = [requestOf(stream, plan)];
  return await client.workflow.start('replayPlan', { taskQueue: 'durable-replay', workflowId: uniqueName('pace'), args });
}

const progressOf = (handle: WorkflowHandle) => handle.query<Progress>('progress');

async function sequencesOf(stream: TestStream): Promise<number[]> {
  return (await readRecords(join(worker.dataRoot, stream.name))).map(({ sequence }) => sequence);
}

const oneTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

test('bytes a second hold, and can be lifted', async () => {
  const stream = await addStream(manager);
  await publishAll(nats, mixedMessages(stream.prefix, 400));
  const beganMs = Date.now();
  const handle = await start(stream, { end_sequence: 400, rate_limit_bytes_per_second: 1_024 });
  await expect.poll(async () => (await progressOf(handle)).waiting?.for, patience).toBe('rate_limit');
  await expect.poll(async () => (await progressOf(handle)).counts.bytes, patience).toBeGreaterThan(3 * 1_024);
  const { counts, rate_limit_bytes_per_second } = await progressOf(handle);
  expect(rate_limit_bytes_per_second).toBe(1_024);
  // A batch goes ahead of its time, and lateness of timers is made up for.
  expect(counts.bytes).toBeLessThan(((Date.now() - beganMs) / 1_000 + 3) * 1_024 + 4_096);
  await expect(handle.executeUpdate('setRate', { args: [{ bytesPerSecond: 1 }] })).rejects.toThrow();
  await handle.executeUpdate('setRate', { args: [{ bytesPerSecond: null }] });
  expect(((await handle.result()) as Report).counts).toMatchObject({ written: 400, acked: 400, duplicate: 0 });
  expect(await sequencesOf(stream)).toEqual(oneTo(400));
});

test('the pace of the stream: gaps are kept, a wait says until when, and another factor holds at once', async () => {
  const stream = await addStream(manager);
  await publishAll(nats, mixedMessages(stream.prefix, 20));
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  await publishAll(nats, mixedMessages(stream.prefix, 20));
  const handle = await start(stream, { end_sequence: 40, pace: 'original', pace_factor: 0.01 });
  await expect.poll(async () => (await progressOf(handle)).counts.written, patience).toBeGreaterThan(0);
  await expect.poll(async () => (await progressOf(handle)).waiting?.for, patience).toBe('original_pace');
  const seen = await progressOf(handle);
  expect(seen).toMatchObject({ state: 'running', pace: 'original', pace_factor: 0.01 });
  expect(Date.parse(seen.waiting!.until)).toBeGreaterThan(Date.now() - 60_000);
  // The gap between the halves lasted 200 s, and lasts 400 s now: whatever the machine, the second half is not there yet.
  await handle.executeUpdate('setRate', { args: [{ factor: 0.005 }] });
  await expect.poll(async () => (await progressOf(handle)).pace_factor, patience).toBe(0.005);
  await handle.signal('pause');
  await expect.poll(async () => (await progressOf(handle)).state, patience).toBe('paused');
  expect((await progressOf(handle)).counts.written).toBeLessThanOrEqual(20);
  await handle.signal('resume');
  await handle.executeUpdate('setRate', { args: [{ factor: 1_000 }] });
  expect(((await handle.result()) as Report).counts).toMatchObject({ written: 40, acked: 40, duplicate: 0, vanished: 0 });
  expect(await sequencesOf(stream)).toEqual(oneTo(40));
});

test('outside of its hours a plan waits and says so; it can be let go, and canceled', async () => {
  const stream = await addStream(manager);
  await publishAll(nats, mixedMessages(stream.prefix, 50));
  const clock = (hoursAhead: number) => new Date(Date.now() + hoursAhead * 3_600_000).toISOString().slice(11, 16);
  const plan = { end_sequence: 50, allowed_hours: { zone: 'UTC', from: clock(3), to: clock(5) } };
  const handle = await start(stream, plan);
  await expect.poll(async () => (await progressOf(handle)).waiting?.for, patience).toBe('allowed_hours');
  const { waiting, counts } = await progressOf(handle);
  expect(Date.parse(waiting!.until)).toBeGreaterThan(Date.now() + 2 * 3_600_000);
  expect(counts.pulled).toBe(0);
  await handle.cancel();
  await expect(handle.result()).rejects.toThrow(WorkflowFailedError);

  const freed = await start(stream, { ...plan, durable_consumer: uniqueName('replay') });
  await expect.poll(async () => (await progressOf(freed)).waiting?.for, patience).toBe('allowed_hours');
  await freed.executeUpdate('setRate', { args: [{ allowedHours: null }] });
  expect(((await freed.result()) as Report).counts).toMatchObject({ written: 50, acked: 50 });
});

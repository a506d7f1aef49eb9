import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { connect, type NatsConnection } from 'nats';
import type { Progress } from '../core/progress.ts';
import { startServers } from './servers/servers.ts';

/**
 * Records one history of each kind of run for test/replay: `npx tsx scripts/record-histories.ts NAME...` (all without names).
 * Record a new one when the workflow learns something new; keep the old ones, since runs of older code are still open.
 */

const folder = fileURLToPath(new URL('../test/replay/histories/', import.meta.url));
const projectFolder = fileURLToPath(new URL('..', import.meta.url));
const pollMs = 20;
const waitMsMax = 60_000;

interface Recording {
  readonly name: string;
  readonly records: number;
  readonly plan?: Record<string, unknown>;
  readonly target?: Record<string, unknown>;
  /** The drain of a spool that a run of the plan has filled: its options. */
  readonly drain?: Record<string, unknown>;
  /** Drives the run; by default it is only awaited. */
  readonly act?: (handle: WorkflowHandle) => Promise<unknown>;
}

/** Time of day in UTC, so many hours from now. */
function clock(hoursAhead: number): string {
  return new Date(Date.now() + hoursAhead * 3_600_000).toISOString().slice(11, 16);
}

const recordings: readonly Recording[] = [
  { name: 'dry-run', records: 100, plan: { dry_run: true } },
  { name: 'completed', records: 300, plan: { batch_size: 100 } },
  { name: 'adaptive-batches', records: 3_000 },
  { name: 'several-batches-a-step', records: 3_000, plan: { batch_size: 100 } },
  {
    name: 'ack-rides',
    records: 500,
    plan: { batch_size: 50, rate_limit_per_second: 1_000_000 },
    target: { max_record_bytes: 30 },
  },
  { name: 'drained', records: 50, plan: { end_sequence: null, stop_after_idle_seconds: 1 } },
  { name: 'rejects', records: 300, plan: { batch_size: 100 }, target: { max_record_bytes: 30 } },
  {
    name: 'reject-budget-resumed',
    records: 300,
    plan: { batch_size: 100, max_rejects: 1 },
    target: { max_record_bytes: 30 },
    act: async (handle) => {
      for (let blocks = 0; blocks < 2; blocks++) {
        await until(handle, (progress) => progress.state === 'blocked');
        await handle.signal('resume');
        await until(handle, (progress) => progress.state !== 'blocked');
      }
    },
  },
  {
    name: 'decided',
    records: 300,
    plan: { batch_size: 100, max_rejects: 0 },
    target: { max_record_bytes: 30 },
    act: decideEach,
  },
  {
    name: 'approved',
    records: 300,
    plan: { batch_size: 100, require_approval: true },
    act: async (handle) => {
      const { approval } = await until(handle, (progress) => progress.approval !== null);
      const { fingerprint } = approval!;
      await handle.executeUpdate('approve', { args: [{ by: 'ann', reason: 'recorded', fingerprint }] });
    },
  },
  { name: 'approval-timed-out', records: 10, plan: { require_approval: true, approval_timeout_seconds: 1 } },
  {
    name: 'window',
    records: 300,
    plan: { start_sequence: null, end_sequence: null, window: 'since_last_success' },
  },
  { name: 'refused', records: 10, plan: { start_sequence: 11 } },
  {
    name: 'paused-rate-canceled',
    records: 1_000,
    plan: { batch_size: 10, rate_limit_per_second: 100 },
    act: async (handle) => {
      await handle.signal('pause');
      await until(handle, (progress) => progress.state === 'paused');
      await handle.executeUpdate('setRate', { args: [{ perSecond: 50 }] });
      await handle.signal('resume');
      await until(handle, (progress) => progress.counts.written >= 30);
      await handle.cancel();
    },
  },
  {
    name: 'paced',
    records: 100,
    plan: { batch_size: 10, pace: 'original', pace_factor: 0.001, rate_limit_bytes_per_second: 1_000_000 },
    act: async (handle) => {
      await until(handle, (progress) => progress.waiting?.for === 'original_pace');
      await handle.executeUpdate('setRate', { args: [{ factor: 100, bytesPerSecond: null }] });
    },
  },
  {
    name: 'allowed-hours',
    records: 100,
    plan: { batch_size: 10, allowed_hours: { zone: 'UTC', from: clock(3), to: clock(5) } },
    act: async (handle) => {
      await until(handle, (progress) => progress.waiting?.for === 'allowed_hours');
      await handle.executeUpdate('setRate', { args: [{ allowedHours: null }] });
    },
  },
  {
    name: 'cancel-signal',
    records: 1_000,
    plan: { batch_size: 10, rate_limit_per_second: 100 },
    act: async (handle) => {
      await until(handle, (progress) => progress.counts.written >= 10);
      await handle.signal('cancel');
    },
  },
  { name: 'continued', records: 160, plan: { batch_size: 2 } },
  { name: 'drain-dry-run', records: 100, drain: { dry_run: true } },
  {
    name: 'drain-rejects',
    records: 300,
    plan: { batch_size: 50 },
    drain: { batch_size: 100 },
    target: { max_record_bytes: 30 },
  },
  {
    name: 'drain-decided',
    records: 300,
    plan: { batch_size: 100 },
    drain: { batch_size: 100, max_rejects: 0 },
    target: { max_record_bytes: 30 },
    act: decideEach,
  },
  {
    name: 'drain-paused-rate-canceled',
    records: 500,
    plan: { batch_size: 10 },
    drain: { batch_size: 10, rate_limit_per_second: 100 },
    act: async (handle) => {
      await handle.signal('pause');
      await until(handle, (progress) => progress.state === 'paused');
      await handle.executeUpdate('setRate', { args: [{ perSecond: 50 }] });
      await handle.signal('resume');
      await until(handle, (progress) => progress.counts.written >= 30);
      await handle.cancel();
    },
  },
  { name: 'drain-continued', records: 160, plan: { batch_size: 2 }, drain: { batch_size: 2 } },
];

/** Answers each block of the run, in a way of its own. */
async function decideEach(handle: WorkflowHandle): Promise<void> {
  for (const decision of ['skip', 'retry', 'dead-letter', 'skip']) {
    const { problem } = await until(handle, (progress) => progress.state === 'blocked');
    await handle.executeUpdate('decide', { args: [{ decision }] });
    await until(handle, (progress) => progress.problem?.since !== problem?.since || progress.state === 'completed');
  }
}

async function until(handle: WorkflowHandle, wanted: (progress: Progress) => boolean): Promise<Progress> {
  const deadline = Date.now() + waitMsMax;
  for (;;) {
    const progress = await handle.query<Progress>('progress');
    if (wanted(progress)) return progress;
    if (Date.now() > deadline) throw new Error('the run did not get there in time');
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

async function fill(nats: NatsConnection, { name, records }: Recording): Promise<void> {
  const manager = await nats.jetstreamManager();
  await manager.streams.add({ name, subjects: [`${name}.>`], allow_direct: true });
  const stream = nats.jetstream();
  for (let i = 0; i < records; i++) {
    await stream.publish(`${name}.a`, JSON.stringify({ i, pad: i % 100 === 7 ? 'a longer one than the others' : '' }));
  }
}

async function record(client: Client, nats: NatsConnection, recording: Recording): Promise<void> {
  const { name, records, plan, target, drain, act } = recording;
  await fill(nats, recording);
  const spool = { sink: { type: 'spool', directory: `${name}-spool`, allow_unencrypted: true } };
  const into = { sink: { type: 'file', directory: name, ...target }, dead_letter: { subject: 'dlq.recorded' } };
  const request = {
    plan: {
      replay: {
        stream: name,
        subject_filter: `${name}.>`,
        durable_consumer: 'recorded',
        start_sequence: 1,
        end_sequence: records,
        max_messages: 100_000,
        dry_run: false,
        report_file: `${name}.json`,
        ...plan,
      },
    },
    target: drain === undefined ? into : spool,
  };
  const queue = 'durable-replay';
  if (drain !== undefined)
    await client.workflow.execute('replayPlan', { taskQueue: queue, workflowId: `${name}-fill`, args: [request] });
  const options = { taskQueue: queue, workflowId: name };
  const handle =
    drain === undefined
      ? await client.workflow.start('replayPlan', { ...options, args: [request] })
      : await client.workflow.start('drainSpool', {
          ...options,
          args: [{ spool, target: into, drain: { dry_run: false, report_file: `${name}.json`, ...drain } }],
        });
  await act?.(handle);
  await handle.result().catch(() => undefined);
  await write(name, await client.workflow.getHandle(name).fetchHistory());
  const first = await client.workflow.getHandle(name, handle.firstExecutionRunId).fetchHistory();
  if (first.events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes != null) await write(`${name}-first-link`, first);
}

/** Without what belongs to the machine that recorded it. */
async function write(name: string, history: History): Promise<void> {
  const text = historyToJSON(history)
    .replaceAll(projectFolder, '')
    .replaceAll(new RegExp(`\\d+@${hostname()}`, 'g'), 'worker');
  const bare: unknown = JSON.parse(text, (key, value: unknown) =>
    key === 'identity' || key === 'stickyAttributes' ? undefined : value,
  );
  await writeFile(join(folder, `${name}.json`), `${JSON.stringify(bare)}\n`);
  process.stdout.write(`${name}: ${history.events?.length ?? 0} events\n`);
}

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

const wanted = process.argv.slice(2);
const data = await mkdtemp(join(tmpdir(), 'durable-replay-histories-'));
const servers = await startServers({ env: {}, temporal: { dynamicConfig: ['limit.historyCount.suggestContinueAsNew=400'] } });
const worker = spawn(process.execPath, ['--import', 'tsx', 'client/main.ts', 'worker'], {
  cwd: projectFolder,
  env: {
    ...process.env,
    NATS_URL: servers.natsUrl,
    TEMPORAL_ADDRESS: servers.temporalAddress,
    REPLAY_DATA_ROOT: join(data, 'data'),
    REPLAY_REPORT_ROOT: join(data, 'reports'),
    REPLAY_METRICS_ADDRESS: 'off',
  },
  stdio: ['ignore', 'ignore', 'inherit'],
});
const nats = await connect({ servers: servers.natsUrl });
await (await nats.jetstreamManager()).streams.add({ name: 'DLQ', subjects: ['dlq.>'], duplicate_window: 3_600_000_000_000 });
const connection = await Connection.connect({ address: servers.temporalAddress });
const client = new Client({ connection });
for (const recording of recordings) {
  if (wanted.length === 0 || wanted.includes(recording.name)) await record(client, nats, recording);
}
await nats.close();
await connection.close();
worker.kill('SIGTERM');
await new Promise((resolve) => worker.once('exit', resolve));
await servers.stop();
await rm(data, { recursive: true });

/**
 * What the workflow costs: the same source and sink code in a bare loop (pull, write, fsync, ACK) and as a replay plan, in one run,
 * the two alternating. Prints rates, ratios, milliseconds a batch, the peak memory of the built worker, history events and bytes a
 * batch; writes JSON and a plot. Where the command `nats` is on PATH, its own fetch benchmark comes first.
 *
 *   npm run bench [-- MESSAGES]        100,000 messages of 288 bytes by default
 */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { connect, type NatsConnection } from 'nats';
import { receiptOf } from '../core/batch.ts';
import { createSource, type ConsumerSpec } from '../jetstream/source.ts';
import { startServers } from '../scripts/servers/servers.ts';
import { fileConfigSchema } from '../sinks/file/config.ts';
import { createFileSink } from '../sinks/file/sink.ts';
import { publishAll, repeat } from '../test/support/streams.ts';
import { startBuiltWorker } from './built-worker.ts';
import { median, plot } from './plot.ts';

const messages = Number(process.argv[2] ?? 100_000);
const bodyBytes = 288;
const pairs = 5;
const batchSizes = [5_000, 1_000];
const stream = 'BENCH';
const never = new AbortController().signal;
const projectFolder = fileURLToPath(new URL('..', import.meta.url));

interface Run {
  readonly perSecond: number;
  readonly msPerBatch: number;
  readonly historyEventsPerBatch?: number;
  readonly historyBytesPerBatch?: number;
}

let directories = 0;
const folder = await mkdtemp(join(tmpdir(), 'durable-replay-bench-'));
const dataRoot = join(folder, 'data');
await mkdir(dataRoot);
const servers = await startServers({ env: {} });
const nats = await connect({ servers: servers.natsUrl });
const connection = await Connection.connect({ address: servers.temporalAddress });
const client = new Client({ connection });
const worker = await startBuiltWorker({
  NATS_URL: servers.natsUrl,
  TEMPORAL_ADDRESS: servers.temporalAddress,
  REPLAY_DATA_ROOT: dataRoot,
});
try {
  await fill(nats);
  natsBench();
  await replay(1_000);
  const results = [];
  for (const batchSize of batchSizes) results.push(await compare(batchSize));
  const memory = await peakMegabytes(worker);
  print(`worker: peak ${memory} MB`);
  await mkdir(join(projectFolder, 'bench', 'results'), { recursive: true });
  const file = join(projectFolder, 'bench', 'results', 'replay.json');
  await writeFile(file, `${JSON.stringify({ messages, bodyBytes, pairs, peakMegabytes: memory, results }, null, 2)}\n`);
  await writeFile(file.replace('.json', '.svg'), plot(results));
} finally {
  await nats.close();
  await connection.close();
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  worker.kill('SIGTERM');
  await ended;
  await servers.stop();
  await rm(folder, { recursive: true, force: true });
}

async function compare(batchSize: number) {
  const bare: Run[] = [];
  const workflow: Run[] = [];
  for (let pair = 1; pair <= pairs; pair++) {
    bare.push(await bareLoop(batchSize));
    workflow.push(await replay(batchSize));
    const [a, b] = [bare.at(-1)!, workflow.at(-1)!];
    print(
      `${batchSize} a batch, pair ${pair}: bare ${rate(a)}, workflow ${rate(b)}, ratio ${(b.perSecond / a.perSecond).toFixed(2)}`,
    );
  }
  const ratio = median(workflow.map((run, index) => run.perSecond / bare[index]!.perSecond));
  const last = workflow.at(-1)!;
  print(
    `${batchSize} a batch, medians: bare ${Math.round(median(bare.map((run) => run.perSecond)))}/s, ` +
      `workflow ${Math.round(median(workflow.map((run) => run.perSecond)))}/s, ratio ${ratio.toFixed(2)}; ` +
      `${last.historyEventsPerBatch!.toFixed(1)} events and ${Math.round(last.historyBytesPerBatch!)} bytes of history a batch`,
  );
  return { batchSize, ratio, bare, workflow };
}

async function bareLoop(batchSize: number): Promise<Run> {
  const source = createSource(nats);
  const sink = createFileSink(fileConfigSchema.parse({ type: 'file', directory: nextDirectory() }), {
    dataRoot,
    plan: 'bare',
    run: 'bare',
    begun: false,
    secret: () => '',
    log: { info: () => undefined, warn: () => undefined },
  });
  const { incarnation } = await source.describe(stream);
  const owner = { cluster: 'c', namespace: 'n', workflowId: 'bare', firstRunId: 'bare', fingerprint: 'bare' };
  const spec: ConsumerSpec = {
    stream,
    incarnation,
    durable: 'bare',
    filters: ['bench.>'],
    maxAckPending: 2 * batchSize,
    owner,
  };
  const began = performance.now();
  await sink.open(never);
  await source.putBack(spec, 1);
  for (let settled = 0; settled < messages;) {
    const request = { stream, incarnation, durable: 'bare', maxRecords: batchSize, maxBytes: 8_388_608, waitMs: 0 };
    const { records } = await source.pull(request, never);
    await sink.write(records, never);
    const receipt = receiptOf({ stream, durable: 'bare', incarnation }, records);
    if (receipt === null || (await source.acknowledge(receipt, never)) !== 'confirmed')
      throw new Error('the bare loop lost a batch');
    settled += records.length;
  }
  const seconds = (performance.now() - began) / 1_000;
  await sink.close();
  await source.deleteConsumer(stream, 'bare');
  return { perSecond: messages / seconds, msPerBatch: (seconds * 1_000 * batchSize) / messages };
}

async function replay(batchSize: number): Promise<Run> {
  const request = {
    plan: {
      replay: {
        stream,
        subject_filter: 'bench.>',
        durable_consumer: 'workflow',
        start_sequence: 1,
        end_sequence: messages,
        max_messages: messages,
        batch_size: batchSize,
        dry_run: false,
      },
    },
    target: { sink: { type: 'file', directory: nextDirectory() } },
  };
  const workflowId = `bench-${directories}`;
  const began = performance.now();
  await client.workflow.execute('replayPlan', { taskQueue: 'durable-replay', workflowId, args: [request] });
  const seconds = (performance.now() - began) / 1_000;
  const batches = messages / batchSize;
  const { raw } = await client.workflow.getHandle(workflowId).describe();
  return {
    perSecond: messages / seconds,
    msPerBatch: (seconds * 1_000) / batches,
    historyEventsPerBatch: Number(raw.workflowExecutionInfo?.historyLength ?? 0) / batches,
    historyBytesPerBatch: Number(raw.workflowExecutionInfo?.historySizeBytes ?? 0) / batches,
  };
}

/** The worker that users run: plain node, workflows bundled before. */
/** The reference of NATS itself: explicit ACKs, the same messages. */
function natsBench(): void {
  const args = ['--server', servers.natsUrl, 'bench', 'js', 'fetch', '--stream', stream, '--msgs', String(messages)];
  const { status, stdout, error } = spawnSync('nats', [...args, '--batch', '500', '--acks', 'explicit', '--no-progress'], {
    encoding: 'utf8',
  });
  if (error !== undefined) print('nats bench: left out, since the command nats is not on PATH');
  else print(status === 0 ? `nats bench js fetch: ${/[\d,]+ msgs\/sec/.exec(stdout)?.[0] ?? stdout}` : 'nats bench: failed');
}

function nextDirectory(): string {
  return `bench-${++directories}`;
}

async function fill(nc: NatsConnection): Promise<void> {
  const manager = await nc.jetstreamManager();
  await manager.streams.add({ name: stream, subjects: ['bench.>'], allow_direct: true });
  const head = '{"order": 7088992364139642880, "price": 1.10, "note": "';
  const body = Buffer.from(`${head}${'x'.repeat(bodyBytes - head.length - 2)}"}`);
  await publishAll(
    nc,
    repeat(messages, (i) => ({ subject: `bench.${i % 10}`, body })),
  );
}

/** Linux only; 0 elsewhere. */
async function peakMegabytes({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024);
}

function rate({ perSecond, msPerBatch }: Run): string {
  return `${Math.round(perSecond)}/s (${msPerBatch.toFixed(1)} ms a batch)`;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

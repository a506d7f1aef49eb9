import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { connect, type NatsConnection } from 'nats';
import type { Report } from '../core/report.ts';
import { startServers } from '../scripts/servers/servers.ts';
import { publishAll, repeat } from '../test/support/streams.ts';
import { bodyOf } from './body.ts';

/** Servers, one worker and a stream of messages, for a bench of whole workflows. */
export interface World {
  readonly stream: string;
  readonly messages: number;
  readonly nats: NatsConnection;
  /** Below it, relative directories of targets. */
  readonly dataRoot: string;
  /** Runs a workflow to its end. Messages a second, its start and its report included; its report. */
  run(type: 'replayPlan' | 'drainSpool', input: object): Promise<{ readonly perSecond: number; readonly report: Report }>;
  /** The replay of the whole stream into this sink. */
  replayInto(sink: object, plan?: object): Promise<number>;
  stop(): Promise<void>;
}

/** `secrets`: variables of the worker. */
export async function openWorld(messages: number, secrets: Readonly<Record<string, string>>): Promise<World> {
  const [stream, dead] = ['BENCH', 'dlq.bench'];
  const servers = await startServers({ env: {} });
  const folder = await mkdtemp(join(tmpdir(), 'durable-replay-bench-'));
  const dataRoot = join(folder, 'data');
  const nats = await connect({ servers: servers.natsUrl });
  const manager = await nats.jetstreamManager();
  await manager.streams.add({ name: 'DLQ', subjects: [dead], allow_direct: true, duplicate_window: 3_600_000_000_000 });
  await manager.streams.add({ name: stream, subjects: ['bench.>'], allow_direct: true });
  await publishAll(
    nats,
    repeat(messages, (i) => ({ subject: 'bench.a', body: Buffer.from(bodyOf(i)) })),
  );
  const connection = await Connection.connect({ address: servers.temporalAddress });
  const client = new Client({ connection });
  const worker = spawn(process.execPath, ['--import', 'tsx', 'client/main.ts', 'worker'], {
    env: {
      ...process.env,
      ...secrets,
      NATS_URL: servers.natsUrl,
      TEMPORAL_ADDRESS: servers.temporalAddress,
      REPLAY_DATA_ROOT: dataRoot,
      REPLAY_REPORT_ROOT: join(folder, 'reports'),
      REPLAY_METRICS_ADDRESS: 'off',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    worker.stderr.on('data', (chunk: Buffer) => chunk.toString().includes('worker polls') && resolve());
    worker.once('exit', () => reject(new Error('the worker ended')));
  });
  worker.stderr.resume();
  let runs = 0;
  const run: World['run'] = async (type, input) => {
    const began = performance.now();
    const options = { taskQueue: 'durable-replay', workflowId: `bench-${++runs}`, args: [input] };
    const report = (await (await client.workflow.start(type, options)).result()) as Report;
    const { pulled, acked, rejected } = report.counts;
    if (pulled !== messages || acked !== messages || rejected > 0) throw new Error(JSON.stringify(report.counts));
    return { perSecond: (messages / (performance.now() - began)) * 1_000, report };
  };
  return {
    stream,
    messages,
    nats,
    dataRoot,
    run,
    async replayInto(sink, plan = {}) {
      const replay = {
        stream,
        subject_filter: 'bench.>',
        durable_consumer: `bench-${runs}`,
        start_sequence: 1,
        end_sequence: messages,
        max_messages: messages,
        dry_run: false,
        ...plan,
      };
      const input = { plan: { replay }, target: { sink, dead_letter: { subject: dead } } };
      return (await run('replayPlan', input)).perSecond;
    },
    async stop() {
      const ended = once(worker, 'exit');
      worker.kill('SIGTERM');
      await ended;
      await connection.close();
      await nats.close();
      await servers.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export function perSecond(rate: number): string {
  return `${Math.round(rate).toLocaleString('en')}/s`;
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

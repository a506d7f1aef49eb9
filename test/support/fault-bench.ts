import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { JetStreamManager, NatsConnection } from 'nats';
import { pino } from 'pino';
import type { Deps } from '../../activities/deps.ts';
import type { Progress } from '../../core/progress.ts';
import type { Report } from '../../core/report.ts';
import type { ReplayRequest } from '../../core/steps.ts';
import type { TemporalSettings } from '../../platform/temporal.ts';
import { runWorker, workerOptions } from '../../worker/main.ts';
import { atFileEnd, tempDir } from './file-end.ts';
import { connectTestNats, temporalAddress, natsUrl, uniqueName } from './servers.ts';

/** What fault tests share: a client, prepared workflows, and workers in this process on queues of their own. */
export interface Bench {
  readonly nats: NatsConnection;
  readonly manager: JetStreamManager;
  readonly client: Client;
  /** File of the bundled workflows: bundling takes seconds, and each worker needs it. */
  readonly workflowBundle: string;
}

export async function openBench(): Promise<Bench> {
  const nats = await connectTestNats();
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  const quiet = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };
  const { code } = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../../workflows/index.ts', import.meta.url)),
    logger: quiet,
  });
  const workflowBundle = join(await tempDir(), 'workflows.js');
  await writeFile(workflowBundle, code);
  return { nats, manager: await nats.jetstreamManager(), client: new Client({ connection }), workflowBundle };
}

/** Roots and queue of one test: nothing is shared with another one. */
export interface Place {
  readonly taskQueue: string;
  readonly dataRoot: string;
  readonly reportRoot: string;
}

export async function newPlace(): Promise<Place> {
  const folder = await tempDir();
  return { taskQueue: uniqueName('queue'), dataRoot: join(folder, 'data'), reportRoot: join(folder, 'reports') };
}

export function placeEnvironment(place: Place): Record<string, string> {
  return {
    NATS_URL: natsUrl(),
    TEMPORAL_ADDRESS: temporalAddress(),
    REPLAY_DATA_ROOT: place.dataRoot,
    REPLAY_REPORT_ROOT: place.reportRoot,
    REPLAY_METRICS_ADDRESS: 'off',
  };
}

export interface LocalWorker {
  /** Lines of its log so far. */
  readonly log: readonly Record<string, unknown>[];
  stop(): Promise<void>;
}

/** A real worker, in this process. */
export async function startLocalWorker(
  bench: Pick<Bench, 'workflowBundle'>,
  place: Place,
  options: { readonly env?: NodeJS.ProcessEnv; readonly wrapDeps?: (deps: Deps) => Deps; readonly temporal?: string } = {},
): Promise<LocalWorker> {
  const stop = new AbortController();
  const found = workerOptions({ ...process.env, ...placeEnvironment(place), ...options.env }, stop.signal);
  if (!found.ok) throw new Error(JSON.stringify(found.problems));
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  const { wrapDeps } = options;
  let running: Promise<void> | undefined;
  await new Promise<void>((resolve, reject) => {
    running = runWorker({
      ...found.value,
      temporal: withAddress(found.value.temporal, options.temporal ?? temporalAddress()),
      log,
      onReady: resolve,
      seams: {
        taskQueue: place.taskQueue,
        workflowBundle: bench.workflowBundle,
        ...(wrapDeps === undefined ? {} : { wrapDeps }),
      },
    });
    running.catch(reject);
  });
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  atFileEnd(end);
  return { log: lines, stop: end };
}

/** Settings of Temporal come from this process's environment, which tests do not touch. */
function withAddress(temporal: TemporalSettings, address: string): TemporalSettings {
  return { ...temporal, address, connection: { ...temporal.connection, address } };
}

export async function startRun(client: Client, place: Place, request: ReplayRequest, workflowId = uniqueName('run')) {
  return await client.workflow.start<(request: ReplayRequest) => Promise<Report>>('replayPlan', {
    taskQueue: place.taskQueue,
    workflowId,
    workflowTaskTimeout: '5s',
    args: [request],
  });
}

const finalStates: readonly string[] = ['completed', 'canceled', 'refused'];

/** Polls the query `progress`. */
export async function until(
  client: Client,
  workflowId: string,
  wanted: (progress: Progress) => boolean,
  limitMs = 30_000,
): Promise<Progress> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const progress = await client.workflow.getHandle(workflowId).query<Progress>('progress');
    if (wanted(progress)) return progress;
    if (finalStates.includes(progress.state) || Date.now() > deadline) {
      throw new Error(`not reached; last: ${JSON.stringify(progress)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

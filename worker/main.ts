import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import { NativeConnection, Runtime, Worker, type WorkerOptions as TemporalWorkerOptions } from '@temporalio/worker';
import type { Deps } from '../activities/deps.ts';
import { createActivities } from '../activities/index.ts';
import { createSegmentReaders } from '../cold/reader.ts';
import { decodeSegment, encodeSegment, parseSegmentName, segmentName } from '../cold/segment.ts';
import { createColdStores } from '../cold/stores.ts';
import { ReplayFault } from '../core/errors.ts';
import { stepSecondsBounds } from '../core/metrics.ts';
import type { Parsed } from '../core/problems.ts';
import { closeNats, connectNats, readNatsSettings, type NatsSettings } from '../jetstream/connection.ts';
import { openLink } from '../jetstream/link.ts';
import { createSource } from '../jetstream/source.ts';
import { createStreamWriter } from '../jetstream/stream-writer.ts';
import { createTopicReader } from '../jetstream/topics/replay-log.ts';
import { createTopicSource } from '../jetstream/topics/sweep-source.ts';
import { createLogger, type Logger } from '../platform/logger.ts';
import { readSettings, type Settings } from '../platform/settings.ts';
import { readTemporalSettings, type TemporalSettings } from '../platform/temporal.ts';
import { taskQueue } from '../workflows/messages.ts';
import { createDataRoot, createReportFolder } from './folders.ts';
import { startGauges } from './gauges.ts';
import { createRuns } from './runs.ts';
import { createSecrets } from './secrets.ts';
import { createSinkPool } from './sink-pool.ts';
import { createSpools } from './spools.ts';
import { createTargets } from './targets.ts';

/** How long a stopping worker lets its steps finish before it aborts them. */
const shutdownGrace = '10s';

export interface WorkerOptions {
  readonly settings: Settings;
  readonly temporal: TemporalSettings;
  readonly nats: NatsSettings;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
  /** Its abort drains the worker: steps in flight finish within the grace or are handed back. */
  readonly stop: AbortSignal;
  /** Called once the worker polls. */
  readonly onReady?: () => void;
  /** Seams for those who run a worker within a program of their own. */
  readonly seams?: WorkerSeams;
}

export interface WorkerSeams {
  readonly taskQueue?: string;
  /** File of workflows that were bundled before. */
  readonly workflowBundle?: string;
  /** Stands between the durable steps and what they act on. */
  readonly wrapDeps?: (deps: Deps) => Deps;
}

/** All settings from the environment, or all that is wrong with them. */
export function workerOptions(env: NodeJS.ProcessEnv, stop: AbortSignal): Parsed<WorkerOptions> {
  const [settings, nats] = [readSettings(env), readNatsSettings(env)];
  if (!settings.ok || !nats.ok) {
    return { ok: false, problems: [...(settings.ok ? [] : settings.problems), ...(nats.ok ? [] : nats.problems)] };
  }
  const log = createLogger(settings.value.logLevel);
  return { ok: true, value: { settings: settings.value, temporal: readTemporalSettings(), nats: nats.value, env, log, stop } };
}

/**
 * The composition root: settings -> connections -> dependencies -> Worker.run -> drain. Resolves when the worker has drained
 * after `stop`; rejects when it cannot start or dies. Writes nothing at start.
 */
export async function runWorker(options: WorkerOptions): Promise<void> {
  const { settings, temporal, log, seams = {} } = options;
  const wrapDeps = seams.wrapDeps ?? ((deps) => deps);
  await installRuntime(settings, log);
  const nats = await connectNats(options.nats).catch((error: unknown) => {
    const denied = error instanceof ReplayFault && error.code === 'nats_denied';
    throw new Error(
      denied
        ? 'NATS refused the login of this worker; see the settings of NATS in docs/reference/settings.md.'
        : 'NATS does not answer. Is it up, and is NATS_URL right? The worker ends; start it again.',
      { cause: error },
    );
  });
  try {
    const connection = await connectWorker(temporal);
    try {
      const client = new Client({ connection, namespace: temporal.namespace });
      const pool = createSinkPool(
        {
          dataRoot: settings.dataRoot,
          secret: createSecrets(options.env),
          log,
          streams: createStreamWriter(nats, options.nats),
        },
        settings.allowedHosts,
      );
      const stores = createColdStores({ ...options.env, REPLAY_COLD_ROOT: settings.coldRoot });
      const worker = await Worker.create({
        connection,
        namespace: temporal.namespace,
        taskQueue: seams.taskQueue ?? taskQueue,
        ...workflowSource(seams.workflowBundle),
        activities: createActivities(
          wrapDeps({
            source: createSource(nats, options.nats),
            sinks: pool,
            spools: createSpools({ dataRoot: settings.dataRoot, secret: createSecrets(options.env), log }),
            targets: createTargets(settings.targetsFolder, pool, settings.allowedHosts),
            runs: createRuns(client),
            reports: createReportFolder(settings.reportRoot),
            dataRoot: createDataRoot(settings.dataRoot),
            topics: createTopicReader(openLink(nats, options.nats), createSegmentReaders(stores)),
            sweeps: {
              topics: createTopicSource(openLink(nats, options.nats)),
              cold: stores,
              segments: { name: segmentName, parse: parseSegmentName, encode: encodeSegment, decode: decodeSegment },
            },
            log,
          }),
          Runtime.instance().metricMeter,
        ),
        ...versioningOf(settings),
        ...limits,
      });
      if (settings.metricsAddress !== 'off') startGauges(client, gaugesOf(options));
      await drainOnStop(worker, options);
      await pool.close();
    } finally {
      await connection.close();
    }
  } finally {
    await closeNats(nats);
  }
}

function gaugesOf({ stop, seams }: WorkerOptions): Parameters<typeof startGauges>[1] {
  return { meter: Runtime.instance().metricMeter, queue: seams?.taskQueue ?? taskQueue, signal: stop };
}

/** Name of the deployment that versioned workers belong to. */
const deploymentName = 'durable-replay';

function versioningOf({ versioning }: Settings): Pick<TemporalWorkerOptions, 'workerDeploymentOptions'> {
  if (versioning === null) return {};
  const { buildId, behavior } = versioning;
  return {
    workerDeploymentOptions: {
      useWorkerVersioning: true,
      version: { deploymentName, buildId },
      defaultVersioningBehavior: behavior === 'pinned' ? 'PINNED' : 'AUTO_UPGRADE',
    },
  };
}

const limits: Partial<TemporalWorkerOptions> = {
  shutdownGraceTime: shutdownGrace,
  // The default throttle of 30 s would hide a cancellation from a step for that long.
  maxHeartbeatThrottleInterval: '1s',
  defaultHeartbeatThrottleInterval: '1s',
  // After a lost worker the next workflow task waits this long for it before another worker takes over.
  stickyQueueScheduleToStartTimeout: '5s',
};

async function drainOnStop(worker: Worker, { stop, log, onReady, seams }: WorkerOptions): Promise<void> {
  const shutDown = (): void => {
    if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const running = worker.run();
  stop.addEventListener('abort', shutDown, { once: true });
  if (stop.aborted) shutDown();
  log.info({ queue: seams?.taskQueue ?? taskQueue }, 'worker polls');
  onReady?.();
  try {
    await running;
    log.info({}, 'worker drained');
  } finally {
    stop.removeEventListener('abort', shutDown);
  }
}

async function connectWorker(temporal: TemporalSettings): Promise<NativeConnection> {
  try {
    return await NativeConnection.connect(temporal.connection);
  } catch (error) {
    throw new Error(`Temporal does not answer at ${temporal.address}. Is it up, and is TEMPORAL_ADDRESS right?`, {
      cause: error,
    });
  }
}

/** The built package brings its workflows bundled; from source they are bundled at start. */
function workflowSource(prepared: string | undefined): Pick<TemporalWorkerOptions, 'workflowBundle' | 'workflowsPath'> {
  if (prepared !== undefined) return { workflowBundle: { codePath: prepared } };
  const bundle = fileURLToPath(new URL('../workflow-bundle.js', import.meta.url));
  if (existsSync(bundle)) return { workflowBundle: { codePath: bundle } };
  return { workflowsPath: fileURLToPath(new URL('../workflows/index.ts', import.meta.url)) };
}

const histogramBucketOverrides = { replay_step_seconds: [...stepSecondsBounds] };

let runtimeInstalled = false;

/** Once per process: the SDK's core has one runtime. */
async function installRuntime({ metricsAddress, metricsRequired }: Settings, log: Logger): Promise<void> {
  if (runtimeInstalled) return;
  runtimeInstalled = true;
  const metrics = metricsAddress !== 'off' && (await canListen(metricsAddress));
  if (metricsAddress !== 'off' && !metrics) {
    const message = `The metrics address ${metricsAddress} is in use. Set REPLAY_METRICS_ADDRESS to another one, or to off.`;
    if (metricsRequired) throw new Error(message);
    log.warn({}, message);
  }
  Runtime.install({
    shutdownSignals: [],
    logger: temporalLogger(log),
    telemetryOptions: metrics ? { metrics: { prometheus: { bindAddress: metricsAddress, histogramBucketOverrides } } } : {},
  });
}

async function canListen(address: string): Promise<boolean> {
  const colon = address.lastIndexOf(':');
  const server = createServer();
  return await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(Number(address.slice(colon + 1)), address.slice(0, colon), () => server.close(() => resolve(true)));
  });
}

/** The SDK's own lines: warnings and errors only, since normal operation is silent. Its metadata may hold inputs: left out. */
function temporalLogger(log: Logger): NonNullable<Parameters<typeof Runtime.install>[0]['logger']> {
  const nothing = (): void => undefined;
  // Our own line says which step of which run failed, and why.
  const twice = ['Activity failed', 'Workflow failed'];
  const warn = (message: string): void => {
    if (!twice.includes(message)) log.warn({ from: 'temporal' }, message);
  };
  const error = (message: string): void => log.error({ from: 'temporal' }, message);
  return {
    log: (level, message) => (level === 'ERROR' ? error(message) : level === 'WARN' ? warn(message) : undefined),
    trace: nothing,
    debug: nothing,
    info: nothing,
    warn,
    error,
  };
}

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Connection, type ConnectionOptions } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { Guarded } from './guarded.ts';
import { locateTemporal } from './locate.ts';
import { assertFreePort, findFreePorts, loopback } from './ports.ts';
import { launch, makeFolder, startAndWait } from './ready.ts';
import { missingSearchAttributes, registerSearchAttributes, searchAttributes } from './search-attributes.ts';
import { type Say, ServerSetupError } from './setup-error.ts';

const readyMs = 60_000;
const connectMs = 2_000;
const verifyMs = 5_000;
/** A CLI that prints no banner is taken as ready when it has survived this long and a server answers at its port. */
const bannerMs = 5_000;
const workflowService = 'temporal.api.workflowservice.v1.WorkflowService';
const serving = 1;

export interface TemporalOptions {
  /** Absent: free ones. The UI has a port of its own. */
  readonly port?: number;
  readonly uiPort?: number;
  /** Kept when the server stops. Absent: in a temporary folder, removed then. */
  readonly dbFile?: string;
  /** Further `--dynamic-config-value`s, `key=json`. */
  readonly dynamicConfig?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly say?: Say;
}

export interface TemporalServer {
  /** host:port */
  readonly address: string;
  readonly uiUrl: string;
  readonly dbFile: string;
  readonly logFile: string;
  pid(): number | undefined;
  /** SIGKILL; the database stays. */
  kill(): Promise<void>;
  /** Stops it with a signal that it obeys (SIGTERM); the database stays. */
  halt(): Promise<void>;
  /** After kill or halt: the same ports and database. When it still runs it is halted first. */
  restart(): Promise<void>;
  /** SIGSTOP, SIGCONT: a server that is there but does not answer. */
  signal(signal: NodeJS.Signals): void;
  /** For good; temporary folders are removed. */
  stop(): Promise<void>;
}

/** A Temporal development server with its UI, our search attributes registered. Throws ServerSetupError. */
export async function startTemporal(options: TemporalOptions = {}): Promise<TemporalServer> {
  if (options.port !== undefined) await assertFreePort(options.port, 'the Temporal server');
  if (options.uiPort !== undefined) await assertFreePort(options.uiPort, "Temporal's UI");
  const program = await locateTemporal(options.env ?? process.env, options.say ?? ignore);
  if (options.dbFile !== undefined) await makeFolder(dirname(options.dbFile));
  const movable = options.port === undefined || options.uiPort === undefined;
  const { server, facts } = await launch('temporal', movable, async (folder, open) => {
    const free = await findFreePorts(2);
    const port = options.port ?? free[0]!;
    const uiPort = options.uiPort ?? free[1]!;
    const dbFile = options.dbFile ?? join(folder, 'temporal.db');
    const logFile = join(folder, 'temporal.log');
    const args = startArguments({ port, uiPort, dbFile, dynamicConfig: options.dynamicConfig ?? [] });
    const opened = open(logFile);
    const start = () => {
      const ours = watchBanner(logFile);
      return startAndWait(
        opened,
        { command: program, args },
        {
          name: 'The Temporal server',
          limitMs: readyMs,
          answers: async () => (await ours()) && (await answers(port)) && (await uiAnswers(uiPort)),
        },
      );
    };
    await start();
    return { server: opened, facts: { port, uiPort, dbFile, logFile, start } };
  });
  return handleOf(server, facts);
}

function startArguments(facts: { port: number; uiPort: number; dbFile: string; dynamicConfig: readonly string[] }): string[] {
  const args = ['server', 'start-dev', '--ip', loopback, '--port', String(facts.port), '--ui-port', String(facts.uiPort)];
  args.push('--db-filename', facts.dbFile, '--log-level', 'error');
  // SQLite's defaults wait for the disk several times a step. A write-ahead log survives a killed server just as well.
  args.push('--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=normal');
  for (const [name, type] of Object.entries(searchAttributes)) args.push('--search-attribute', `${name}=${type}`);
  // The server's default spaces the steps of a workflow 50 ms apart.
  const dynamicConfig = ['history.transferProcessorMaxPollRPS=2000', ...facts.dynamicConfig];
  for (const value of dynamicConfig) args.push('--dynamic-config-value', value);
  return args;
}

function handleOf(
  server: Guarded,
  facts: { port: number; uiPort: number; dbFile: string; logFile: string; start: () => Promise<void> },
): TemporalServer {
  return {
    address: `${loopback}:${facts.port}`,
    uiUrl: `http://${loopback}:${facts.uiPort}`,
    dbFile: facts.dbFile,
    logFile: facts.logFile,
    pid: () => server.pid(),
    kill: () => server.kill('SIGKILL'),
    halt: () => server.kill('SIGTERM'),
    async restart() {
      await server.kill('SIGTERM');
      await facts.start();
    },
    signal: (signal) => server.signal(signal),
    stop: () => server.end(),
  };
}

/**
 * The CLI prints its addresses once all ports are bound. An answer at the port alone proves nothing: it may come from
 * another server that was given the same port a moment earlier.
 */
function watchBanner(logFile: string): () => Promise<boolean> {
  const started = Date.now();
  const bannersBefore = countBanners(logFile);
  return async () => (await countBanners(logFile)) > (await bannersBefore) || Date.now() - started > bannerMs;
}

async function countBanners(logFile: string): Promise<number> {
  const log = await readFile(logFile, 'utf8').catch(() => '');
  return log.match(/^(?:Temporal )?Server:/gm)?.length ?? 0;
}

async function answers(port: number): Promise<boolean> {
  try {
    return await withConnection({ address: `${loopback}:${port}`, connectTimeout: connectMs }, async (connection) => {
      if (!(await isServing(connection))) return false;
      const missing = await missingSearchAttributes(connection, 'default');
      if (missing.length > 0) await registerSearchAttributes(connection, 'default');
      return missing.length === 0;
    });
  } catch {
    return false;
  }
}

async function isServing(connection: Connection): Promise<boolean> {
  const health = await connection.withDeadline(Date.now() + connectMs, () =>
    connection.healthService.check({ service: workflowService }),
  );
  return health.status === serving;
}

async function uiAnswers(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://${loopback}:${port}/`, { signal: AbortSignal.timeout(connectMs) });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

/**
 * For TEMPORAL_ADDRESS: that a server is there and takes our login; our search attributes are registered if it lets us.
 * Answers the names of those that it does not know. Throws ServerSetupError.
 */
export async function verifyTemporal(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const config = loadClientConnectConfig({ overrideEnvVars: definedOnly(env) });
  const namespace = config.namespace ?? 'default';
  try {
    return await withConnection({ ...config.connectionOptions, connectTimeout: verifyMs }, async (connection) => {
      await connection.withDeadline(Date.now() + verifyMs, () => connection.workflowService.getSystemInfo({}));
      try {
        await registerSearchAttributes(connection, namespace);
        return await missingSearchAttributes(connection, namespace);
      } catch {
        // Many users may not ask; a plan runs without them.
        return Object.keys(searchAttributes);
      }
    });
  } catch (error) {
    throw new ServerSetupError(
      `No Temporal server answers at TEMPORAL_ADDRESS (${error instanceof Error ? error.message : 'unknown fault'}): start it, ` +
        'mend the address or the login, or unset TEMPORAL_ADDRESS to have one started here.',
      { cause: error },
    );
  }
}

async function withConnection<T>(options: ConnectionOptions, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await Connection.connect(options);
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined));
}

function ignore(): void {}

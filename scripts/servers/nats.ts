import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'nats';
import type { Guarded } from './guarded.ts';
import { locateNats, natsMinimum } from './locate.ts';
import { natsAddresses, readNatsInfo } from './nats-info.ts';
import { assertFreePort, findFreePorts, loopback } from './ports.ts';
import { launch, makeFolder, startAndWait } from './ready.ts';
import { type Say, ServerSetupError } from './setup-error.ts';
import { formatVersion, isAtLeast, parseVersion, type Version } from './versions.ts';

const readyMs = 30_000;
const answerMs = 2_000;

export interface NatsOptions {
  /** Absent: a free one. */
  readonly port?: number;
  /** Kept when the server stops. Absent: a temporary folder, removed then. */
  readonly storeDir?: string;
  /** Text of a configuration file: users and permissions, accounts, limits. Port, address and store stay ours. */
  readonly config?: string;
  /** A user of that configuration who may ask for JetStream's account info; without, readiness is judged without a login. */
  readonly login?: { readonly user: string; readonly pass: string };
  /** Default 2.10; topics need 2.14.2. */
  readonly minimum?: Version;
  readonly env?: NodeJS.ProcessEnv;
  readonly say?: Say;
}

export interface NatsServer {
  readonly url: string;
  readonly port: number;
  readonly storeDir: string;
  readonly logFile: string;
  pid(): number | undefined;
  /** SIGKILL; the store stays. */
  kill(): Promise<void>;
  /** Stops it with a signal that it obeys (SIGTERM); the store stays. */
  halt(): Promise<void>;
  /** After kill or halt: the same port and store. When it still runs it is halted first. */
  restart(): Promise<void>;
  /** SIGSTOP, SIGCONT: a server that is there but does not answer. SIGHUP: reads its configuration again. */
  signal(signal: NodeJS.Signals): void;
  /** For good; temporary folders are removed. */
  stop(): Promise<void>;
}

/** A nats-server with JetStream of our own on the loopback address. Throws ServerSetupError. */
export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const env = options.env ?? process.env;
  if (options.port !== undefined) await assertFreePort(options.port, 'the NATS server');
  const program = await locateNats(options.minimum ?? natsMinimum, env, options.say ?? ignore);
  if (options.storeDir !== undefined) await makeFolder(options.storeDir);
  const { server, facts } = await launch('nats-server', options.port === undefined, async (folder, open) => {
    const port = options.port ?? (await findFreePorts(1))[0]!;
    const storeDir = options.storeDir ?? join(folder, 'store');
    const logFile = join(folder, 'nats-server.log');
    const serverName = `durable-replay-${randomUUID()}`;
    const args = ['-a', loopback, '-p', String(port), '-js', '-sd', storeDir, '--server_name', serverName];
    if (options.config !== undefined) {
      const file = join(folder, 'nats-server.conf');
      await writeFile(file, options.config, { mode: 0o600 });
      args.push('-c', file);
    }
    const start = () =>
      startAndWait(
        opened,
        { command: program, args },
        {
          name: 'nats-server',
          limitMs: readyMs,
          answers: () => answers(port, serverName, options.login),
        },
      );
    const opened = open(logFile);
    await start();
    return { server: opened, facts: { port, storeDir, logFile, start } };
  });
  return handleOf(server, facts);
}

function handleOf(
  server: Guarded,
  facts: { port: number; storeDir: string; logFile: string; start: () => Promise<void> },
): NatsServer {
  return {
    url: `nats://${loopback}:${facts.port}`,
    port: facts.port,
    storeDir: facts.storeDir,
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

/** The name in the INFO line proves that it is ours and not another server that was given the same port. */
async function answers(port: number, serverName: string, login: NatsOptions['login']): Promise<boolean> {
  const info = await readNatsInfo(loopback, port, answerMs);
  if (info?.server_name !== serverName || info.jetstream !== true) return false;
  if (login === undefined && (info.auth_required === true || info.tls_required === true)) return true;
  try {
    const connection = await connect({ servers: `${loopback}:${port}`, timeout: answerMs, reconnect: false, ...login });
    try {
      await connection.jetstreamManager({ timeout: answerMs });
      return true;
    } finally {
      await connection.close();
    }
  } catch {
    return false;
  }
}

/** For NATS_URL: that a server with JetStream, new enough, is there. It needs no login. Throws ServerSetupError. */
export async function verifyNats(url: string, minimum: Version = natsMinimum): Promise<void> {
  const addresses = parseAddresses(url);
  const infos = await Promise.all(addresses.map(({ host, port }) => readNatsInfo(host, port, answerMs)));
  const info = infos.find((found) => found !== null);
  if (!info) {
    throw new ServerSetupError(
      'No NATS server answers at the address in NATS_URL: start it, mend the address, or unset NATS_URL to have one started here.',
    );
  }
  const version = parseVersion(info.version ?? '');
  if (version !== null && !isAtLeast(version, minimum)) {
    throw new ServerSetupError(
      `The NATS server at NATS_URL is ${formatVersion(version)}; ${formatVersion(minimum)} or newer is needed: ` +
        'upgrade it, or unset NATS_URL to have one started here.',
    );
  }
  if (info.jetstream !== true) {
    throw new ServerSetupError(
      'The NATS server at NATS_URL runs without JetStream: start it with -js, or unset NATS_URL to have one started here.',
    );
  }
}

/** The address may hold a password, so no message repeats it. */
function parseAddresses(url: string): { host: string; port: number }[] {
  try {
    return natsAddresses(url);
  } catch {
    throw new ServerSetupError('NATS_URL is not an address: write it like nats://host:4222, several separated by commas.');
  }
}

function ignore(): void {}

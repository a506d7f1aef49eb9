import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { formatProblems } from '../../core/problems.ts';
import { assertFreePort } from '../../scripts/servers/ports.ts';
import { startServers, type Servers } from '../../scripts/servers/servers.ts';
import { runWorker, workerOptions } from '../../worker/main.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import { stopOnSignals } from '../stop.ts';
import { outJson, type Terminal } from '../terminal.ts';

export interface DevOptions {
  /** null: the servers keep nothing. */
  readonly dataFolder: string | null;
  /** undefined: the usual one, or a free one when that is taken. */
  readonly temporalPort: number | undefined;
  readonly uiPort: number | undefined;
  readonly natsPort: number | undefined;
  readonly json: boolean;
}

const usual = { temporal: 7233, ui: 8233, nats: 4222 } as const;

/** Servers and a worker for this machine, until Ctrl-C. */
export async function dev(options: DevOptions, terminal: Terminal): Promise<ExitStatus> {
  const stop = stopOnSignals(process);
  const folder = options.dataFolder === null ? null : resolve(options.dataFolder);
  const release = folder === null ? async () => undefined : await holdFolder(folder);
  try {
    const servers = await start(options, folder, terminal);
    try {
      await work(servers, { stop, onReady: () => tell(servers, { folder, options, terminal }) });
    } finally {
      await servers.stop();
    }
  } finally {
    await release();
  }
  return exitStatus('done');
}

async function start(options: DevOptions, folder: string | null, terminal: Terminal): Promise<Servers> {
  return await startServers({
    nats: {
      ...portOf(options.natsPort ?? (await ifFree(usual.nats))),
      ...(folder === null ? {} : { storeDir: join(folder, 'jetstream') }),
    },
    temporal: {
      ...portOf(options.temporalPort ?? (await ifFree(usual.temporal))),
      ...uiPortOf(options.uiPort ?? (await ifFree(usual.ui))),
      ...(folder === null ? {} : { dbFile: join(folder, 'temporal.db') }),
    },
    say: (line) => terminal.err(line),
  });
}

interface Work {
  readonly stop: AbortSignal;
  readonly onReady: () => void;
}

async function work(servers: Servers, { stop, onReady }: Work): Promise<void> {
  // Both clients read them from the environment of the process.
  process.env['NATS_URL'] = servers.natsUrl;
  process.env['TEMPORAL_ADDRESS'] = servers.temporalAddress;
  const options = workerOptions(process.env, stop);
  if (!options.ok) throw new CommandFailure(`Settings of the worker:\n${formatProblems(options.problems)}`, 'refused');
  if (!stop.aborted) await runWorker({ ...options.value, onReady });
}

interface Telling {
  readonly folder: string | null;
  readonly options: DevOptions;
  readonly terminal: Terminal;
}

function tell(servers: Servers, { folder, options, terminal }: Telling): void {
  const { natsUrl, temporalAddress, uiUrl, warnings } = servers;
  for (const warning of warnings) terminal.err(warning);
  if (options.json) outJson(terminal, { nats_url: natsUrl, temporal_address: temporalAddress, ui_url: uiUrl, data: folder });
  else terminal.out(readyText(servers, folder));
}

function readyText({ natsUrl, temporalAddress, uiUrl }: Servers, folder: string | null): string {
  const exports = exportLines({ natsUrl, temporalAddress });
  return [
    `Temporal  ${temporalAddress}`,
    `UI        ${uiUrl ?? 'that of your Temporal server'}`,
    `NATS      ${natsUrl}`,
    `data      ${folder ?? 'temporary, gone when this ends'}`,
    '',
    'In another terminal:',
    ...exports.map((line) => `  ${line}`),
    '  replay-stream PLAN TARGET --dry-run    what would be replayed',
    '  replay-stream PLAN TARGET --execute    replay it',
    '  replay-stream list                     what runs',
    'Ctrl-C here stops everything.',
  ].join('\n');
}

/** Only what differs from where every client looks by itself. */
function exportLines({ natsUrl, temporalAddress }: Pick<Servers, 'natsUrl' | 'temporalAddress'>): string[] {
  const lines: string[] = [];
  if (!isLocal(temporalAddress, usual.temporal)) lines.push(`export TEMPORAL_ADDRESS=${temporalAddress}`);
  if (!isLocal(natsUrl.replace('nats://', ''), usual.nats)) lines.push(`export NATS_URL=${natsUrl}`);
  return lines;
}

function isLocal(address: string, port: number): boolean {
  return [`127.0.0.1:${port}`, `localhost:${port}`].includes(address);
}

async function ifFree(port: number): Promise<number | undefined> {
  try {
    await assertFreePort(port, 'a server of this machine');
    return port;
  } catch {
    return undefined;
  }
}

function portOf(port: number | undefined): { readonly port?: number } {
  return port === undefined ? {} : { port };
}

function uiPortOf(uiPort: number | undefined): { readonly uiPort?: number } {
  return uiPort === undefined ? {} : { uiPort };
}

/** Two pairs of servers on one folder would destroy each other's data. Returns what gives the folder back. */
async function holdFolder(folder: string): Promise<() => Promise<void>> {
  const lockFile = join(folder, 'dev.pid');
  await mkdir(folder, { recursive: true });
  const holder = Number(await readFile(lockFile, 'utf8').catch(() => '0'));
  if (holder > 0 && holder !== process.pid && isAlive(holder)) {
    throw new CommandFailure(
      `${folder} is in use by another replay-stream dev (process ${holder}). Use that one, or choose another folder with --data.`,
      'refused',
    );
  }
  await rm(lockFile, { force: true });
  const lock = await open(lockFile, 'wx');
  await lock.writeFile(String(process.pid));
  await lock.close();
  return () => rm(lockFile, { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

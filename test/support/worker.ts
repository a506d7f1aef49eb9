import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atFileEnd, tempDir } from './file-end.ts';
import { natsUrl, temporalAddress } from './servers.ts';

const projectFolder = fileURLToPath(new URL('../..', import.meta.url));
const readyMsMax = 150_000;

export interface TestWorker {
  readonly pid: number;
  readonly dataRoot: string;
  readonly reportRoot: string;
  /** Its log so far: JSON lines. */
  log(): string;
  /** SIGKILL: no clean-up of any kind. */
  kill(): Promise<void>;
  /** SIGTERM: drains. Resolves to the exit status. */
  stop(): Promise<number | null>;
}

/** A real worker process, polling when this resolves. Ended with the test file. */
export async function startWorker(env: NodeJS.ProcessEnv = {}): Promise<TestWorker> {
  const folder = await tempDir();
  const roots = {
    REPLAY_DATA_ROOT: env['REPLAY_DATA_ROOT'] ?? join(folder, 'data'),
    REPLAY_REPORT_ROOT: env['REPLAY_REPORT_ROOT'] ?? join(folder, 'reports'),
  };
  const child = spawn(process.execPath, ['--import', 'tsx', 'client/main.ts', 'worker'], {
    cwd: projectFolder,
    env: { ...replayEnvironment(), REPLAY_TARGETS: join(folder, 'targets'), REPLAY_METRICS_ADDRESS: 'off', ...env, ...roots },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the worker was not ready in time:\n${log}`)), readyMsMax);
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString();
      if (!log.includes('worker polls')) return;
      clearTimeout(timer);
      resolve();
    });
    void ended.then((code) => {
      clearTimeout(timer);
      reject(new Error(`the worker ended with ${code}:\n${log}`));
    });
  });
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    return await ended;
  };
  atFileEnd(() => end('SIGKILL'));
  return {
    pid: child.pid!,
    dataRoot: roots.REPLAY_DATA_ROOT,
    reportRoot: roots.REPLAY_REPORT_ROOT,
    log: () => log,
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
  };
}

/** Where the shared servers are, for child processes. */
export function replayEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, NATS_URL: natsUrl(), TEMPORAL_ADDRESS: temporalAddress() };
}

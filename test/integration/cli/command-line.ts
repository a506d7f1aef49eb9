import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { atFileEnd } from '../../support/file-end.ts';
import { replayEnvironment } from '../../support/worker.ts';

const projectFolder = fileURLToPath(new URL('../../..', import.meta.url));
const pollMs = 50;

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly ended: Promise<Ended>;
  readonly child: ChildProcess;
  /** Until standard error holds the text; fails when the command ends first. */
  says(text: string): Promise<void>;
}

/** The command as a user starts it, without a terminal. */
export function startCommand(words: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
  return startProgram(process.execPath, ['--import', 'tsx', 'client/main.ts', ...words], env);
}

export async function command(words: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return await startCommand(words, env).ended;
}

export function startProgram(program: string, words: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
  const child = spawn(program, words, {
    cwd: projectFolder,
    env: { ...replayEnvironment(), REPLAY_METRICS_ADDRESS: 'off', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr, over] = ['', '', false];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (status) => {
      over = true;
      resolve({ status, stdout, stderr });
    });
  });
  atFileEnd(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    child,
    ended,
    async says(text) {
      while (!stderr.includes(text)) {
        if (over) throw new Error(`the command ended without saying ${JSON.stringify(text)}:\n${stdout}\n${stderr}`);
        await new Promise((resolve) => setTimeout(resolve, pollMs));
      }
    },
  };
}

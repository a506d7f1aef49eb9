import { mkdir, readdir, readFile, readlink, rename, stat, symlink, unlink, writeFile } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';
import { runProgram } from './run-program.ts';
import type { Say } from './setup-error.ts';
import { cacheFolder, withBuildFolder, type Fetched } from './wheels.ts';

/** A server that Debian packages, unpacked beside the system: its programs run with the C library that came with them. */
export interface Unpacked {
  /** The first gives it its name in messages. */
  readonly packageNames: readonly [string, ...string[]];
  /** Release that holds them: `sid`. */
  readonly release: string;
  /** Name of its folder in the cache. */
  readonly folder: string;
  /** Program within, to see that it runs: `usr/sbin/mysqld`. */
  readonly program: string;
}

const updateMs = 180_000;
const downloadMs = 600_000;
const unpackMs = 120_000;
const probeMs = 30_000;

/** Where the loader and the libraries stand, by processor. */
const layouts: Readonly<Partial<Record<string, { readonly loader: string; readonly libraries: string }>>> = {
  x64: { loader: 'usr/lib64/ld-linux-x86-64.so.2', libraries: 'usr/lib/x86_64-linux-gnu' },
  arm64: { loader: 'usr/lib/ld-linux-aarch64.so.1', libraries: 'usr/lib/aarch64-linux-gnu' },
};

/** Command line that runs a program of an unpacked root. */
export function unpackedCommand(root: string, program: string): { readonly command: string; readonly args: readonly string[] } {
  const { loader, libraries } = layouts[process.arch]!;
  return { command: join(root, loader), args: ['--library-path', join(root, libraries), join(root, program)] };
}

/** Path of the unpacked root, from the cache, which is filled when it is not there. Never half-filled: one rename. */
export async function fetchUnpacked(wanted: Unpacked, env: NodeJS.ProcessEnv, say: Say): Promise<Fetched> {
  const cache = cacheFolder(env);
  const path = join(cache, wanted.folder);
  if (process.platform !== 'linux' || layouts[process.arch] === undefined) {
    return { ok: false, reason: `Debian packages do not run on this machine (${process.platform} ${process.arch})` };
  }
  if (await exists(join(path, wanted.program))) return { ok: true, path };
  const mirror = await findMirror();
  if (mirror === null) return { ok: false, reason: 'this machine has no Debian package source to fetch it from' };
  return withBuildFolder(cache, async (folder) => {
    say(`Fetching ${wanted.packageNames[0]} (Debian package) into ${cache} ...`);
    const problem = await unpackInto(folder, wanted, mirror);
    if (problem !== null) return { ok: false, reason: problem };
    const root = join(folder, 'root');
    await relink(root);
    const { command, args } = unpackedCommand(root, wanted.program);
    const answer = await runProgram(command, [...args, '--version'], probeMs);
    if (answer.status !== 0) return { ok: false, reason: `${wanted.packageNames[0]} does not run on this machine` };
    // Of two processes that fill the cache at once the later finds it filled.
    await rename(root, path).catch(async (error: unknown) => {
      if (!(await exists(join(path, wanted.program)))) throw error;
    });
    return { ok: true, path };
  });
}

/** With lists, state and cache of its own: nothing of the system's package manager is touched. */
async function unpackInto(folder: string, wanted: Unpacked, mirror: Mirror): Promise<string | null> {
  const [lists, archives, root] = [join(folder, 'lists'), join(folder, 'cache/archives'), join(folder, 'root')];
  for (const path of [join(lists, 'partial'), join(archives, 'partial'), root]) await mkdir(path, { recursive: true });
  const signed = mirror.signedBy === null ? '' : `[signed-by=${mirror.signedBy}] `;
  await writeFile(join(folder, 'sources.list'), `deb ${signed}${mirror.uri} ${wanted.release} main\n`);
  await writeFile(join(folder, 'status'), '');
  const options = {
    'Dir::Etc::sourcelist': join(folder, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State::lists': lists,
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
    'APT::Sandbox::User': 'root',
    'APT::Install-Recommends': 'false',
  };
  const settings = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const updated = await runProgram('apt-get', [...settings, 'update'], updateMs);
  if (updated.status !== 0) return `the package lists could not be read: ${lastLine(updated.stderr)}`;
  const install = ['-y', '--download-only', 'install', ...wanted.packageNames];
  const downloaded = await runProgram('apt-get', [...settings, ...install], downloadMs);
  if (downloaded.status !== 0) return `${wanted.packageNames[0]} could not be fetched: ${lastLine(downloaded.stderr)}`;
  for (const name of (await readdir(archives)).filter((file) => file.endsWith('.deb'))) {
    const unpacked = await runProgram('dpkg', ['-x', join(archives, name), root], unpackMs);
    if (unpacked.status !== 0) return `${name} could not be unpacked: ${lastLine(unpacked.stderr)}`;
  }
  return null;
}

/** Links to places of the system, such as /etc/java, lead to those within the root. */
async function relink(root: string): Promise<void> {
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    const target = await readlink(path);
    if (!isAbsolute(target)) continue;
    await unlink(path);
    await symlink(relative(entry.parentPath, join(root, target)), path);
  }
}

interface Mirror {
  readonly uri: string;
  readonly signedBy: string | null;
}

const sourceFolder = '/etc/apt/sources.list.d';

/** The package source that this machine uses already. null: none, or it is not Debian. */
async function findMirror(): Promise<Mirror | null> {
  const system = await readFile('/etc/os-release', 'utf8').catch(() => '');
  if (!/^ID=debian$/m.test(system)) return null;
  const names = await readdir(sourceFolder).catch(() => []);
  for (const file of ['/etc/apt/sources.list', ...names.map((name) => join(sourceFolder, name))]) {
    const text = await readFile(file, 'utf8').catch(() => '');
    const uris = [...text.matchAll(/^(?:URIs:\s*|deb\s+(?:\[[^\]]*\]\s+)?)(\S+)/gm)].map(([, uri]) => uri!);
    const uri = uris.find((candidate) => /debian\/?$/.test(candidate));
    if (uri !== undefined) return { uri, signedBy: /^Signed-By:\s*(\/\S+)/m.exec(text)?.[1] ?? null };
  }
  return null;
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

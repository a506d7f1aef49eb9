import { constants } from 'node:fs';
import type * as fs from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { ReplayFault } from '../../core/errors.ts';
import type { SinkLog } from '../sink.ts';
import { errnoOf } from './faults.ts';
import { INDEX_FOLDER, parseName } from './names.ts';

/** What the sink does with the file system. Tests stop it at any of these calls. */
export type Files = Pick<typeof fs, 'open' | 'mkdir' | 'readdir' | 'stat' | 'lstat' | 'rename' | 'unlink' | 'realpath'>;

const DIRECTORY_MODE = 0o750;
export const FILE_MODE = 0o640;

/** Opens for reading, without following a link out of the directory. */
export const READ = constants.O_RDONLY | constants.O_NOFOLLOW;
/** Makes a file that only grows; fails when the name is taken, be it by a link. */
export const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND;

/** A directory of the file sink, all links resolved. */
export interface Directory {
  readonly files: Files;
  readonly log: SinkLog;
  readonly path: string;
  readonly indexPath: string;
  /** Tells whether `indexPath` is still the folder that was opened. */
  readonly identity: Identity;
}

export interface Identity {
  readonly dev: number;
  readonly ino: number;
}

/**
 * Makes what is missing below the root; never the root itself, and nothing where the run has written before (`sink_missing`).
 * Throws ReplayFault('sink_denied') when a link leads out of the root.
 */
export async function openDirectory(
  place: { readonly root: string; readonly directory: string; readonly begun: boolean },
  { files, log }: Pick<Directory, 'files' | 'log'>,
): Promise<Directory> {
  const root = await files.realpath(place.root);
  let path = root;
  const { begun } = place;
  for (const name of place.directory.split('/')) path = await enterFolder(files, { root, parent: path, name, begun });
  const indexPath = await enterFolder(files, { root, parent: path, name: INDEX_FOLDER, begun });
  if (indexPath !== join(path, INDEX_FOLDER)) throw new ReplayFault('sink_denied', 'the index folder is a link');
  const { dev, ino } = await files.stat(indexPath);
  return { files, log, path, indexPath, identity: { dev, ino } };
}

interface Step {
  readonly root: string;
  readonly parent: string;
  readonly name: string;
  readonly begun: boolean;
}

async function enterFolder(files: Files, { root, parent, name, begun }: Step): Promise<string> {
  const path = join(parent, name);
  if (begun && !(await isThere(files, path))) throw new ReplayFault('sink_missing', 'what this replay wrote is gone');
  if (await makeFolder(files, path)) await syncFolder(files, parent);
  const real = await files.realpath(path);
  if (!isWithin(root, real)) throw new ReplayFault('sink_denied', 'the directory leads out of the data root');
  if (!(await files.stat(real)).isDirectory()) throw new ReplayFault('sink_missing', 'ENOTDIR');
  return real;
}

/** False when something of that name is there. */
async function makeFolder(files: Files, path: string): Promise<boolean> {
  try {
    await files.mkdir(path, { mode: DIRECTORY_MODE });
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST' || (await isThere(files, path))) return false;
    throw error;
  }
}

export function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '..' && !way.startsWith(`..${sep}`);
}

export async function isThere(files: Pick<Files, 'lstat'>, path: string): Promise<boolean> {
  return (await unlessMissing(files.lstat(path))) !== null;
}

/** null instead of ENOENT. */
export async function unlessMissing<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Makes names in the folder durable: those made, renamed and removed. */
export async function syncFolder(files: Files, path: string): Promise<void> {
  await withHandle(await files.open(path, constants.O_RDONLY | constants.O_DIRECTORY), (folder) => folder.sync());
}

export async function withHandle<T>(handle: FileHandle, use: (handle: FileHandle) => Promise<T>): Promise<T> {
  try {
    return await use(handle);
  } finally {
    await handle.close();
  }
}

export async function append(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    written += (await handle.write(bytes, written, bytes.length - written)).bytesWritten;
  }
}

export interface Listing {
  /** Epochs, rising. */
  readonly claims: readonly number[];
  readonly journals: readonly number[];
  readonly temporaries: readonly { readonly name: string; readonly epoch: number }[];
}

/** What lies in the index folder. */
export async function listIndex({ files, indexPath }: Pick<Directory, 'files' | 'indexPath'>): Promise<Listing> {
  const ours = (await files.readdir(indexPath)).map((name) => ({ name, ...parseName(name) }));
  const epochs = (kind: string) => ours.flatMap((entry) => (entry.kind === kind ? [entry.epoch!] : [])).sort((a, b) => a - b);
  return {
    claims: epochs('claim'),
    journals: epochs('journal'),
    temporaries: ours.flatMap(({ name, kind, epoch }) => (kind === 'temporary' ? [{ name, epoch: epoch! }] : [])),
  };
}

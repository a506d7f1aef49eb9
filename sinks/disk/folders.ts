import { constants } from 'node:fs';
import type * as fs from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { ReplayFault } from '../../core/errors.ts';
import { errnoOf } from './faults.ts';

/** What a sink does with the file system. Tests stop it at any of these calls. */
export type Files = Pick<typeof fs, 'open' | 'mkdir' | 'readdir' | 'stat' | 'lstat' | 'rename' | 'unlink' | 'realpath'>;

const DIRECTORY_MODE = 0o750;
export const FILE_MODE = 0o640;

/** Opens for reading, without following a link out of the directory. */
export const READ = constants.O_RDONLY | constants.O_NOFOLLOW;
/** Makes a file that only grows; fails when the name is taken, be it by a link. */
export const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND;

export interface Step {
  readonly root: string;
  readonly parent: string;
  readonly name: string;
  readonly begun: boolean;
}

/** Makes one folder where it is missing; a link must not lead out of the root. Returns its real path. */
export async function enterFolder(files: Files, { root, parent, name, begun }: Step): Promise<string> {
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

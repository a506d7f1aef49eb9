import { constants } from 'node:fs';
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import type { Finding } from '../sink.ts';
import { errnoOf } from './faults.ts';
import { isWithin, unlessMissing } from './folders.ts';

/** Below this a probe warns. */
const FREE_BYTES_LOW = 1_073_741_824;

/** Looks, and makes nothing. `content` looks at what is in the directory, by its real path. */
export async function probeDirectory(
  place: { readonly root: string; readonly directory: string },
  content: (path: string) => Promise<readonly Finding[]>,
): Promise<Finding[]> {
  const root = await unlessMissing(files.realpath(place.root));
  if (root === null) {
    const next = 'Create it, or set REPLAY_DATA_ROOT of the worker to a directory that is there.';
    return [{ severity: 'error', message: 'The data root of the worker is missing.', next }];
  }
  const { path, isThere } = await nearestFolder(root, place.directory);
  if (!isWithin(root, path)) {
    const next = 'Remove the symbolic link, or name another directory.';
    return [{ severity: 'error', message: 'The directory leads out of the data root through a symbolic link.', next }];
  }
  if (!(await files.stat(path)).isDirectory()) {
    const next = 'Move the file away, or name another directory.';
    return [{ severity: 'error', message: 'A part of the directory is a file.', next }];
  }
  const findings = [...(await probeAccess(path)), ...(await probeSpace(path))];
  if (isThere) return [...findings, ...(await content(path))];
  return [...findings, { severity: 'info', message: 'The directory is missing and will be made.' }];
}

/** The directory with its links resolved, or the deepest folder of its path that is there. */
async function nearestFolder(root: string, directory: string): Promise<{ path: string; isThere: boolean }> {
  let path = root;
  for (const name of directory.split('/')) {
    try {
      path = await files.realpath(join(path, name));
    } catch (error) {
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return { path, isThere: false };
      throw error;
    }
    if (!isWithin(root, path)) return { path, isThere: true };
  }
  return { path, isThere: true };
}

async function probeAccess(path: string): Promise<Finding[]> {
  try {
    await files.access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return [];
  } catch (error) {
    const next = 'Give the user of the worker the permission to read and write there, or mount the file system writable.';
    return [{ severity: 'error', message: `The directory is not writable (${errnoOf(error) ?? 'unknown'}).`, next }];
  }
}

async function probeSpace(path: string): Promise<Finding[]> {
  const { bavail, bsize } = await files.statfs(path);
  const free = bavail * bsize;
  if (free >= FREE_BYTES_LOW) return [];
  const message = `The file system has only ${Math.floor(free / 1_048_576)} MiB left.`;
  return [{ severity: 'warning', message, next: 'Make room before a large replay; without room the plan turns blocked.' }];
}

import { randomUUID } from 'node:crypto';
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../disk/faults.ts';
import { append, CREATE, enterFolder, FILE_MODE, READ, syncFolder, unlessMissing, withHandle } from '../disk/folders.ts';

/**
 * What lies in the directory of a spool:
 *
 *   packs/000000000012.pack     records, numbered as they were committed; one without entries only holds the number
 *   claims/000000000003.claim   whose drain it is: the highest counts
 *   aside/                      what was damaged or foreign
 *   making/                     files before they are linked or renamed into place
 *   checkpoint                  what the heads of the packs say, so that opening reads few of them
 */
export interface Folders {
  readonly path: string;
  readonly packs: string;
  readonly claims: string;
  readonly aside: string;
  readonly making: string;
}

const NUMBER_DIGITS = 12;
/** What a crash left in `making` is removed once it is so old, milliseconds. */
const LEFTOVER_MS = 3_600_000;

interface Place {
  readonly root: string;
  readonly directory: string;
  readonly begun: boolean;
}

/** Makes what is missing below the root; never the root itself, and nothing where the run has written before. */
export async function makeFolders(place: Place): Promise<Folders> {
  const root = await files.realpath(place.root);
  let path = root;
  const enter = (parent: string, name: string) => enterFolder(files, { root, parent, name, begun: place.begun });
  for (const name of place.directory.split('/')) path = await enter(path, name);
  for (const name of ['packs', 'claims', 'aside', 'making']) await enter(path, name);
  return foldersAt(path);
}

/** null when there is no spool. Makes nothing. */
export async function findFolders({ root, directory }: Pick<Place, 'root' | 'directory'>): Promise<Folders | null> {
  const folders = foldersAt(join(root, directory));
  return (await unlessMissing(files.stat(folders.packs))) === null ? null : folders;
}

function foldersAt(path: string): Folders {
  const at = (name: string) => join(path, name);
  return { path, packs: at('packs'), claims: at('claims'), aside: at('aside'), making: at('making') };
}

export function numberedName(number: number, kind: 'pack' | 'claim'): string {
  return `${String(number).padStart(NUMBER_DIGITS, '0')}.${kind}`;
}

/** null for what is not ours. */
export function numberOf(name: string, kind: 'pack' | 'claim'): number | null {
  const digits = new RegExp(`^(\\d{${NUMBER_DIGITS}})\\.${kind}$`).exec(name)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** Writes and syncs a file that nobody sees yet. It is gone again when there was no room for it. */
export async function makeFile(folders: Folders, bytes: Uint8Array): Promise<string> {
  const path = join(folders.making, randomUUID());
  try {
    await withHandle(await files.open(path, CREATE, FILE_MODE), async (handle) => {
      await append(handle, bytes);
      await handle.datasync();
    });
    return path;
  } catch (error) {
    await files.unlink(path).catch(() => undefined);
    throw error;
  }
}

/** Gives the file its name, whole or not at all; false when the name is taken. Durable once its folder is synced. */
export async function linkOnce(made: string, path: string): Promise<boolean> {
  try {
    await files.link(made, path);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
}

export async function replaceFile(folders: Folders, name: string, bytes: Uint8Array): Promise<void> {
  const made = await makeFile(folders, bytes);
  await files.rename(made, join(folders.path, name));
  await syncFolder(files, folders.path);
}

export async function sweepLeftovers(folders: Folders): Promise<void> {
  for (const name of await files.readdir(folders.making)) {
    const path = join(folders.making, name);
    const found = await unlessMissing(files.lstat(path));
    if (found !== null && (found.nlink > 1 || Date.now() - found.mtimeMs > LEFTOVER_MS))
      await unlessMissing(files.unlink(path));
  }
}

export async function readWhole(path: string): Promise<Buffer | null> {
  const handle = await unlessMissing(files.open(path, READ));
  return handle === null ? null : await withHandle(handle, (file) => file.readFile());
}

import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ReplayFault, type FaultCode } from '../core/errors.ts';
import { checkObjectName, type ColdStore } from './store.ts';

/** Unfinished objects begin with a dot, which no object's name does. */
const temporaryPrefix = '.put-';

/** Cold segments as files below a folder, which is made when the first one is written. */
export function createFileStore(root: string): ColdStore {
  const pathOf = (name: string) => join(root, checkObjectName(name));
  return {
    put: (name, bytes, signal) => asked(signal, () => putFile(pathOf(name), bytes)),
    get: (name, signal) => asked(signal, () => unlessMissing(readFile(pathOf(name)))),
    list: (prefix, signal) => asked(signal, () => listFiles(root, prefix)),
    remove: (name, signal) =>
      asked(signal, async () => {
        if ((await unlessMissing(unlink(pathOf(name)).then(() => true))) !== null) await syncFolder(dirname(pathOf(name)));
      }),
    prove: (signal) => asked(signal, () => prove(root)),
  };
}

/** The name is given to a file that is complete and synced; `link` refuses a name that is taken. */
async function putFile(path: string, bytes: Uint8Array): Promise<'stored' | 'exists'> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  const temporary = join(folder, `${temporaryPrefix}${randomBytes(8).toString('hex')}`);
  try {
    const file = await open(temporary, 'wx', 0o640);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    const isNew = await link(temporary, path).then(
      () => true,
      (error: unknown) => {
        if (codeOf(error) === 'EEXIST') return false;
        throw error;
      },
    );
    // Also when it exists: the attempt that made it may have been lost before this.
    await syncFolder(folder);
    return isNew ? 'stored' : 'exists';
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

async function listFiles(root: string, prefix: string): Promise<string[]> {
  const folder = checkObjectName(prefix.replace(/\/$/, ''));
  const entries = await unlessMissing(readdir(join(root, folder), { recursive: true, withFileTypes: true }));
  const names = (entries ?? [])
    .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
    .map((entry) => join(entry.parentPath, entry.name).slice(join(root, '/').length));
  return names.sort();
}

async function prove(root: string): Promise<void> {
  const path = join(root, `probe-${randomBytes(8).toString('hex')}`);
  try {
    const answers = [await putFile(path, Buffer.from('1')), await putFile(path, Buffer.from('2'))];
    if (answers.join() === 'stored,exists' && (await readFile(path, 'utf8')) === '1') return;
    throw new ReplayFault('cold_unfit');
  } finally {
    await unlink(path).catch(() => undefined);
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const codes: Readonly<Record<string, FaultCode>> = {
  ENOSPC: 'cold_full',
  EDQUOT: 'cold_full',
  EROFS: 'cold_denied',
  EACCES: 'cold_denied',
  EPERM: 'cold_denied',
  ENOTDIR: 'cold_denied',
};

/** Messages of the operating system hold paths: they stay behind. */
async function asked<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  try {
    return await act();
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    throw new ReplayFault(codes[code] ?? 'cold_unavailable', code, { cause: error });
  }
}

async function unlessMissing<T>(act: Promise<T>): Promise<T | null> {
  try {
    return await act;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('syscall' in error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, realpath, rename, unlink } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import type { DataRoot, ReportFolder } from '../activities/deps.ts';
import { ReplayFault } from '../core/errors.ts';

const rootIdFile = '.replay-root';

/** Report files below the report root: temporary name, synced, renamed, folder synced. */
export function createReportFolder(root: string): ReportFolder {
  return {
    async write(file, content) {
      try {
        const path = join(root, file);
        await mkdir(dirname(path), { recursive: true });
        await assertInside(root, dirname(path));
        await replaceFile(path, content);
      } catch (error) {
        if (error instanceof ReplayFault) throw error;
        throw new ReplayFault('report_unwritable', errorCode(error), { cause: error });
      }
    },
  };
}

/** A link below the root must not lead out of it. */
async function assertInside(root: string, folder: string): Promise<void> {
  const [realRoot, realFolder] = [await realpath(root), await realpath(folder)];
  if (realFolder !== realRoot && !realFolder.startsWith(realRoot + sep)) {
    throw new ReplayFault('report_unwritable', 'the path leads out of the report root');
  }
}

async function replaceFile(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await writeSynced(temporary, content);
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(path));
}

async function writeSynced(path: string, content: string): Promise<void> {
  const file = await open(path, 'wx', 0o640);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
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

/** The id of the data root lies in a file at its top, so that every worker that shares the root answers the same. */
export function createDataRoot(root: string): DataRoot {
  const path = join(root, rootIdFile);
  const read = async (): Promise<string | null> => {
    try {
      return (await readFile(path, 'utf8')).trim();
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null;
      throw rootFault(error);
    }
  };
  return {
    read,
    async readOrCreate() {
      try {
        return (await read()) ?? (await create());
      } catch (error) {
        throw rootFault(error);
      }
    },
  };

  async function create(): Promise<string> {
    await mkdir(root, { recursive: true });
    const temporary = `${path}.${randomUUID()}.tmp`;
    await writeSynced(temporary, `${randomUUID()}\n`);
    // link fails where the file exists by now: of two workers that begin at once, both read the winner's id.
    await link(temporary, path).catch((error: unknown) => {
      if (errorCode(error) !== 'EEXIST') throw error;
    });
    await unlink(temporary);
    await syncFolder(root);
    const id = await read();
    if (id === null) throw new ReplayFault('sink_missing', 'the data root vanished');
    return id;
  }
}

function rootFault(error: unknown): ReplayFault {
  if (error instanceof ReplayFault) return error;
  const code = errorCode(error);
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new ReplayFault('sink_full', code, { cause: error });
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new ReplayFault('sink_denied', code, { cause: error });
    case 'ENOENT':
    case 'ENOTDIR':
      return new ReplayFault('sink_missing', code, { cause: error });
    default:
      return new ReplayFault('unexpected', code, { cause: error });
  }
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { ReplayFault } from '../../core/errors.ts';
import { errnoOf } from '../disk/faults.ts';
import { CREATE, FILE_MODE, isThere, unlessMissing } from '../disk/folders.ts';
import { listIndex } from './directory.ts';
import type { Directory } from './directory.ts';
import { claimName, EPOCH_MAX } from './names.ts';

/** The right to write as one epoch, until somebody claims a higher one. */
export interface Claim {
  readonly epoch: number;
  readonly handle: FileHandle;
}

/** A higher epoch was claimed: what was not yet answered is unknown, and must be looked up under a new claim. */
export class Fenced extends Error {
  constructor() {
    super('another writer claimed a higher epoch');
  }
}

/** Claims that are kept below the newest, so that whoever lists them while others come and go sees a newer one than its own. */
export const CLAIMS_KEPT = 64;
const CLAIM_ATTEMPTS_MAX = 1_000;

/**
 * Claims the next epoch. Epochs are claimed without a hole: the first above `n` is always `n + 1`, because a name already taken
 * leads to the next one. So `isHeld` needs to look for one name only.
 */
export async function claimEpoch(directory: Directory): Promise<Claim> {
  let epoch = highest(await listIndex(directory)) + 1;
  for (let attempt = 0; attempt < CLAIM_ATTEMPTS_MAX; attempt++, epoch++) {
    if (epoch > EPOCH_MAX) throw new ReplayFault('sink_full', 'no epoch is left in this directory');
    const handle = await createClaim(directory, epoch);
    if (handle === null) continue;
    const newest = highest(await closeOnFailure(handle, () => listIndex(directory)));
    if (newest === epoch) return { epoch, handle };
    // The name was free again because its claim was long superseded and swept.
    await handle.close();
    epoch = Math.max(epoch, newest);
  }
  throw new Fenced();
}

async function closeOnFailure<T>(handle: FileHandle, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function createClaim({ files, indexPath }: Directory, epoch: number): Promise<FileHandle | null> {
  try {
    return await files.open(join(indexPath, claimName(epoch)), CREATE, FILE_MODE);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return null;
    throw error;
  }
}

function highest({ claims, journals }: { claims: readonly number[]; journals: readonly number[] }): number {
  return Math.max(claims.at(-1) ?? 0, journals.at(-1) ?? 0);
}

/**
 * Whether no higher epoch is claimed. Claims are swept from the lowest up, so where the next one is gone, ours went before it.
 * Throws ReplayFault('sink_missing') when the directory is no longer the one that was opened.
 */
export async function isHeld(directory: Directory, claim: Claim): Promise<boolean> {
  const { files, indexPath } = directory;
  if (await isThere(files, join(indexPath, claimName(claim.epoch + 1)))) return false;
  const isOurs = await isLinked(claim.handle);
  await assertSameDirectory(directory);
  return isOurs;
}

export async function assertHeld(directory: Directory, claim: Claim): Promise<void> {
  if (!(await isHeld(directory, claim))) throw new Fenced();
}

export async function assertSameDirectory({ files, indexPath, identity }: Directory): Promise<void> {
  const now = await unlessMissing(files.stat(indexPath));
  if (now?.dev === identity.dev && now.ino === identity.ino) return;
  throw new ReplayFault('sink_missing', 'the directory was removed or moved while it was in use');
}

/** False when the file has been deleted or replaced: what is written to it now is lost. */
export async function isLinked(handle: FileHandle): Promise<boolean> {
  try {
    return (await handle.stat()).nlink > 0;
  } catch (error) {
    if (errnoOf(error) === 'ESTALE') return false;
    throw error;
  }
}

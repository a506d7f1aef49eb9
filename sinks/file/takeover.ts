import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { append, CREATE, FILE_MODE, isThere, READ, syncFolder, unlessMissing, withHandle } from '../disk/folders.ts';
import { assertHeld, CLAIMS_KEPT, Fenced } from './claim.ts';
import type { Claim } from './claim.ts';
import { listIndex } from './directory.ts';
import type { Directory } from './directory.ts';
import { applyEntry, encodeCheckpoint, JournalCorrupt, parseJournal } from './journal.ts';
import type { Batch, Cut, Journal } from './journal.ts';
import { claimName, journalName, parseName, temporaryName } from './names.ts';
import { SequenceIndex } from '../../core/sequence-set.ts';

/** A file does not hold what the index says. The fault that leaves the sink names the reason only; the log names the file too. */
export class Corrupt extends Error {
  readonly file: string;

  constructor(file: string, reason: string) {
    super(reason);
    this.file = file;
  }
}

/** What a new epoch goes on with. */
export interface Inheritance {
  readonly segments: Map<string, number>;
  readonly index: SequenceIndex;
  readonly cuts: readonly Cut[];
}

/**
 * Goes on where the highest epoch below ours ended. The order is what makes it safe whoever crashes or stalls:
 *
 * 1. We have claimed our epoch. From here on no lower epoch answers `written`: it looks at the claims after its sync.
 * 2. Read the journal and copy the committed part of the segment that a crash left open. Nothing visible changes.
 * 3. Rename our journal into place, then look at the claims. Who claimed before we looked may have read an older journal,
 *    so we are fenced; who claims later finds ours.
 * 4. Only now replace the open segment by its copy (the old writer may still hold it; what it appends is no longer seen),
 *    and sweep what older epochs left. Late repetitions of this step do the same again: it is decided by our journal.
 */
export async function takeOver(directory: Directory, claim: Claim, signal: AbortSignal): Promise<Opened> {
  const inheritance = await inherit(directory, claim, signal);
  const journal = await installJournal(directory, claim, inheritance);
  try {
    await assertHeld(directory, claim);
    await finishCuts(directory, inheritance);
    await sweep(directory, claim, inheritance.segments);
  } catch (error) {
    await journal.handle.close();
    throw error;
  }
  return { ...inheritance, journal };
}

export interface Opened extends Inheritance {
  readonly journal: { readonly handle: FileHandle; readonly bytes: number };
}

async function inherit(directory: Directory, claim: Claim, signal: AbortSignal): Promise<Inheritance> {
  const { claims, journals } = await listIndex(directory);
  if (Math.max(claims.at(-1) ?? 0, journals.at(-1) ?? 0) > claim.epoch) throw new Fenced();
  const epoch = journals.at(-1);
  if (epoch === undefined) return await inheritNothing(directory);
  const journal = await readJournal(directory, epoch);
  const cuts = await prepareCuts(directory, claim, journal, signal);
  await checkSizes(directory, journal.segments, new Set(cuts.map(({ segment }) => segment)));
  return { segments: journal.segments, index: journal.index, cuts };
}

async function inheritNothing({ files, path }: Directory): Promise<Inheritance> {
  const segment = (await files.readdir(path)).find((name) => parseName(name)?.kind === 'segment');
  if (segment !== undefined) throw new Corrupt(segment, 'there are segments, and no journal that knows them');
  return { segments: new Map(), index: new SequenceIndex(), cuts: [] };
}

export async function readJournal(
  { files, indexPath }: Pick<Directory, 'files' | 'indexPath'>,
  epoch: number,
): Promise<Journal> {
  const name = journalName(epoch);
  const handle = await unlessMissing(files.open(join(indexPath, name), READ));
  if (handle === null) throw new Corrupt(name, 'the newest journal is gone');
  const bytes = await withHandle(handle, (file) => file.readFile());
  try {
    return parseJournal(bytes);
  } catch (error) {
    if (error instanceof JournalCorrupt) throw new Corrupt(name, error.message);
    throw error;
  }
}

/** Decides about the unproven batch, too: its bytes are judged as they are copied. */
async function prepareCuts(directory: Directory, claim: Claim, journal: Journal, signal: AbortSignal): Promise<Cut[]> {
  if (journal.closed) return [];
  const cuts: Cut[] = [];
  for (const cut of journal.cuts) if (await isThere(directory.files, join(directory.indexPath, cut.copy))) cuts.push(cut);
  // The others were renamed into place, perhaps by a writer that died before it made that durable.
  if (cuts.length < journal.cuts.length) await syncFolder(directory.files, directory.path);
  const cut = await cutOpenSegment(directory, claim, journal, signal);
  if (cut === null) return cuts;
  // The copy must not be lost where the journal that names it is not.
  await syncFolder(directory.files, directory.indexPath);
  return [...cuts, cut];
}

async function cutOpenSegment(directory: Directory, claim: Claim, journal: Journal, signal: AbortSignal): Promise<Cut | null> {
  const { unproven } = journal;
  const segment = unproven?.segment ?? journal.batches[0]?.segment;
  if (segment === undefined) return null;
  const proven = journal.batches.filter((batch) => batch.segment === segment);
  const source = await unlessMissing(directory.files.open(join(directory.path, segment), READ));
  if (source === null && proven.length > 0) throw new Corrupt(segment, 'a segment is missing');
  if (source === null) return null;
  const copy = temporaryName(claim.epoch);
  return await withHandle(source, async () =>
    withHandle(await directory.files.open(join(directory.indexPath, copy), CREATE, FILE_MODE), async (target) => {
      for (const batch of proven) {
        signal.throwIfAborted();
        const bytes = await readBatch(source, batch);
        if (bytes === null) throw new Corrupt(segment, 'a committed batch does not have its checksum');
        await append(target, bytes);
      }
      const last = unproven && (await readBatch(source, unproven));
      if (unproven && last) {
        await append(target, last);
        applyEntry(journal, unproven);
      }
      await target.datasync();
      const { size } = await source.stat();
      const kept = journal.segments.get(segment) ?? 0;
      if (size > kept) directory.log.info({ file: segment, kept, cut: size - kept }, 'cut what a crash left uncommitted');
      return kept === 0 ? null : { segment, copy };
    }),
  );
}

/** null when the bytes are not there, or are others. */
async function readBatch(source: FileHandle, { start, end, crc }: Batch): Promise<Buffer | null> {
  const bytes = Buffer.allocUnsafe(end - start);
  for (let filled = 0; filled < bytes.length;) {
    const { bytesRead } = await source.read(bytes, filled, bytes.length - filled, start + filled);
    if (bytesRead === 0) return null;
    filled += bytesRead;
  }
  return crc32(bytes) === crc ? bytes : null;
}

const SIZES_AT_ONCE = 32;

async function checkSizes(
  { files, path }: Directory,
  segments: ReadonlyMap<string, number>,
  beingCut: ReadonlySet<string>,
): Promise<void> {
  const settled = [...segments].filter(([name]) => !beingCut.has(name));
  for (let i = 0; i < settled.length; i += SIZES_AT_ONCE) {
    await Promise.all(
      settled.slice(i, i + SIZES_AT_ONCE).map(async ([name, bytes]) => {
        const found = await unlessMissing(files.lstat(join(path, name)));
        if (found === null) throw new Corrupt(name, 'a segment is missing');
        if (!found.isFile() || found.size !== bytes) throw new Corrupt(name, 'a segment does not have its committed size');
      }),
    );
  }
}

/** The handle stays open: entries are appended to it. */
async function installJournal(
  { files, indexPath }: Directory,
  { epoch }: Claim,
  { segments, index, cuts }: Inheritance,
): Promise<Opened['journal']> {
  const bytes = encodeCheckpoint({ epoch, segments, index, cuts });
  const temporary = join(indexPath, temporaryName(epoch));
  const handle = await files.open(temporary, CREATE, FILE_MODE);
  try {
    await append(handle, bytes);
    await handle.datasync();
    await files.rename(temporary, join(indexPath, journalName(epoch)));
    await syncFolder(files, indexPath);
    return { handle, bytes: bytes.length };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function finishCuts({ files, path, indexPath }: Directory, { cuts, segments }: Inheritance): Promise<void> {
  for (const { segment, copy } of cuts) {
    const target = join(path, segment);
    const moved = await unlessMissing(files.rename(join(indexPath, copy), target).then(() => true));
    // Gone: whoever prepared it has finished it meanwhile.
    if (moved === null && (await unlessMissing(files.lstat(target)))?.size !== segments.get(segment)) {
      throw new Corrupt(segment, 'a segment does not have its committed size');
    }
  }
  if (cuts.length === 0) return;
  await syncFolder(files, path);
  await syncFolder(files, indexPath);
}

async function sweep(directory: Directory, { epoch }: Claim, segments: ReadonlyMap<string, number>): Promise<void> {
  const { files, path, indexPath } = directory;
  const remove = (folder: string, name: string) => unlessMissing(files.unlink(join(folder, name)));
  for (const name of await files.readdir(path)) {
    const ours = parseName(name);
    if (ours?.kind === 'segment' && ours.epoch < epoch && !segments.has(name)) await remove(path, name);
  }
  const { claims, journals, temporaries } = await listIndex(directory);
  for (const old of journals) if (old < epoch) await remove(indexPath, journalName(old));
  // Ours are renamed by now; one of our number is of a claim that a loss of power undid.
  for (const old of temporaries) if (old.epoch <= epoch) await remove(indexPath, old.name);
  // One after the other from the lowest up: isHeld relies on it.
  for (const old of claims) if (old < epoch - CLAIMS_KEPT) await remove(indexPath, claimName(old));
}

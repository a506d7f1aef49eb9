import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { ReplayFault } from '../../core/errors.ts';
import { errnoOf, isNoRoom } from '../disk/faults.ts';
import { append, CREATE, FILE_MODE, syncFolder } from '../disk/folders.ts';
import { assertHeld, assertSameDirectory, claimEpoch, Fenced, isHeld, isLinked } from './claim.ts';
import type { Claim } from './claim.ts';
import type { Directory } from './directory.ts';
import { addRuns, encodeClosed, encodeEntry } from './journal.ts';
import type { SequenceRuns } from './journal.ts';
import { SEGMENT_NUMBER_MAX, segmentName } from './names.ts';
import type { SequenceIndex } from '../../core/sequence-set.ts';
import { Corrupt, takeOver } from './takeover.ts';
import type { Opened } from './takeover.ts';

export interface SegmentRules {
  readonly maxSegmentBytes: number;
  readonly compression: 'none' | 'gzip';
}

/** Claims the next epoch of the directory and takes over what is there. Throws Fenced when another writer came later still. */
export async function openEpoch(directory: Directory, rules: SegmentRules, signal: AbortSignal): Promise<Epoch> {
  const claim = await claimEpoch(directory);
  try {
    return new Epoch(directory, claim, rules, await takeOver(directory, claim, signal));
  } catch (error) {
    const cause = await explain(directory, claim, error);
    await claim.handle.close();
    throw cause;
  }
}

/** A later writer moves files while we look at them: what seems corrupt or missing means nothing unless we still hold the claim. */
async function explain(directory: Directory, claim: Claim, error: unknown): Promise<unknown> {
  if (error instanceof Fenced || error instanceof ReplayFault) return error;
  try {
    if (!(await isHeld(directory, claim))) return new Fenced();
  } catch (gone) {
    return gone instanceof ReplayFault ? gone : error;
  }
  if (!(error instanceof Corrupt)) return error;
  directory.log.warn({ file: error.file }, `the directory of the file sink is corrupt: ${error.message}`);
  return new ReplayFault('sink_corrupt', error.message);
}

/** Above this an epoch ends after its batch, so that opening the directory again stays quick. */
const JOURNAL_BYTES_MAX = 16_777_216;

interface Segment {
  readonly name: string;
  readonly handle: FileHandle;
  readonly isNew: boolean;
  /** Committed bytes. */
  readonly bytes: number;
}

/** One writer's turn on a directory, from its claim until it closes, fails or is fenced. */
export class Epoch {
  readonly index: SequenceIndex;
  readonly #directory: Directory;
  readonly #claim: Claim;
  readonly #rules: SegmentRules;
  readonly #journal: FileHandle;
  #journalBytes: number;
  #segment: Segment | null = null;
  #segmentNumber = 0;
  /** False while what is on disk may be more than what was committed. */
  #clean = true;

  constructor(directory: Directory, claim: Claim, rules: SegmentRules, opened: Opened) {
    this.#directory = directory;
    this.#claim = claim;
    this.#rules = rules;
    this.index = opened.index;
    this.#journal = opened.journal.handle;
    this.#journalBytes = opened.journal.bytes;
  }

  /** False after a failed commit: nothing more can be written in this epoch, and a takeover must look at what it left. */
  get isClean(): boolean {
    return this.#clean;
  }

  /** Time to begin a new epoch, whose journal is one checkpoint again. */
  get isLong(): boolean {
    return this.#journalBytes > JOURNAL_BYTES_MAX || this.#segmentNumber === SEGMENT_NUMBER_MAX;
  }

  assertSameDirectory(): Promise<void> {
    return assertSameDirectory(this.#directory);
  }

  /**
   * Resolves when the batch is durable and no other writer had come in before. After any throw its outcome is unknown, and the
   * epoch is over.
   */
  async commit(bytes: Buffer, sequences: readonly SequenceRuns[]): Promise<void> {
    this.#clean = false;
    try {
      const segment = await this.#segmentFor(bytes.length);
      await this.#store(segment, bytes, sequences);
      addRuns(this.index, sequences);
      this.#clean = true;
    } catch (error) {
      if (isNoRoom(error)) await this.#rollBack();
      throw await explain(this.#directory, this.#claim, error);
    }
  }

  async #store(segment: Segment, bytes: Buffer, sequences: readonly SequenceRuns[]): Promise<void> {
    const { name, bytes: start } = segment;
    const end = start + bytes.length;
    const entry = encodeEntry({ segment: name, start, end, crc: crc32(bytes), sequences });
    await allDone([
      append(segment.handle, bytes).then(() => segment.handle.datasync()),
      append(this.#journal, entry).then(() => this.#journal.datasync()),
      segment.isNew ? syncFolder(this.#directory.files, this.#directory.path) : Promise.resolve(),
    ]);
    const linked = (await isLinked(segment.handle)) && (await isLinked(this.#journal));
    await assertHeld(this.#directory, this.#claim);
    if (!linked) throw new Corrupt(name, 'a file was removed while it was in use');
    this.#segment = { ...segment, isNew: false, bytes: end };
    this.#journalBytes += entry.length;
  }

  async #segmentFor(bytes: number): Promise<Segment> {
    const segment = this.#segment;
    if (segment !== null && segment.bytes + bytes <= this.#rules.maxSegmentBytes) return segment;
    const next = await this.#createSegment();
    this.#segment = next;
    await segment?.handle.close();
    return next;
  }

  /**
   * A successor lists the segments after its claim. So the empty file is made first, then the claims are looked at, and only
   * then is it written: either the successor sees the file, or nothing is ever in it.
   */
  async #createSegment(): Promise<Segment> {
    const { files, path } = this.#directory;
    const name = segmentName(this.#claim.epoch, ++this.#segmentNumber, this.#rules.compression);
    const handle = await files.open(join(path, name), CREATE, FILE_MODE).catch((error: unknown) => {
      throw errnoOf(error) === 'EEXIST' ? new Corrupt(name, 'a segment of a new epoch is already there') : error;
    });
    try {
      await assertHeld(this.#directory, this.#claim);
      return { name, handle, isNew: true, bytes: 0 };
    } catch (error) {
      await handle.close();
      if (error instanceof Fenced) await files.unlink(join(path, name));
      throw error;
    }
  }

  /**
   * Without room a takeover could not copy the open segment, so the epoch is ended here. To cut our own open files is safe: a
   * successor decides by the bytes that it copies.
   */
  async #rollBack(): Promise<void> {
    try {
      await this.#segment?.handle.truncate(this.#segment.bytes);
      await this.#segment?.handle.datasync();
      await this.#journal.truncate(this.#journalBytes);
      await append(this.#journal, encodeClosed());
      await this.#journal.datasync();
    } catch (error) {
      this.#directory.log.warn(
        { errno: errnoOf(error) },
        'a full file system keeps the file sink from tidying up; the next writer will',
      );
    }
  }

  /** Says in the journal that nothing is left to cut, so that the next writer copies nothing. Never throws. */
  async close(): Promise<void> {
    if (this.#clean) {
      this.#clean = false;
      try {
        await append(this.#journal, encodeClosed());
        await this.#journal.datasync();
      } catch (error) {
        this.#directory.log.warn(
          { errno: errnoOf(error) },
          'the file sink could not mark its end; the next writer will look at it',
        );
      }
    }
    await this.release();
  }

  /** Closes the files and leaves everything else as it is. Waits for what is still on its way to them. Never throws. */
  async release(): Promise<void> {
    this.#clean = false;
    await Promise.allSettled([this.#segment?.handle.close(), this.#journal.close(), this.#claim.handle.close()]);
  }
}

/** Promise.all, but no promise is left running when it throws. */
async function allDone(promises: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

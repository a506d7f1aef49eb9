import { crc32 } from 'node:zlib';
import { parseName } from './names.ts';
import { SequenceIndex } from '../../core/sequence-set.ts';
import type { EncodedBlock } from '../../core/sequence-set.ts';

/**
 * A journal is lines of `crc32 JSON`: a checkpoint (all that earlier epochs committed), then one entry a committed batch, then
 * `closed` after a clean end. The checkpoint is renamed into place whole; of the entries only the last can be torn, or can
 * stand for bytes that never reached the disk, because each batch is synced before the next begins.
 */
export interface Journal {
  readonly epoch: number;
  /** Committed bytes of each segment, in write order. */
  readonly segments: Map<string, number>;
  /** Cuts that this epoch had begun when it was opened. */
  readonly cuts: readonly Cut[];
  readonly index: SequenceIndex;
  /** Batches of this epoch's last segment, in write order, `unproven` not among them. */
  batches: Batch[];
  /** The last entry of a journal without a clean end. It counts only when its bytes have the checksum. */
  unproven: Entry | null;
  closed: boolean;
}

/** A segment that a crashed writer left is replaced by a copy of its committed part, which lies in the index folder until then. */
export interface Cut {
  readonly segment: string;
  readonly copy: string;
}

export interface Batch {
  readonly segment: string;
  readonly start: number;
  readonly end: number;
  readonly crc: number;
}

export interface Entry extends Batch {
  readonly sequences: readonly SequenceRuns[];
}

/** Runs as in core/receipt.ts. */
export type SequenceRuns = readonly [stream: string, incarnation: string, runs: readonly number[]];

/** What a journal says does not hold together. */
export class JournalCorrupt extends Error {}

const JOURNAL_VERSION = 1;
const SEGMENTS_PER_LINE = 1_000;
const BLOCKS_PER_LINE = 256;

type Line =
  | { readonly journal: number; readonly epoch: number; readonly cuts: readonly Cut[] }
  | { readonly segments: readonly (readonly [name: string, bytes: number])[] }
  | { readonly stream: string; readonly incarnation: string; readonly blocks: readonly EncodedBlock[] }
  | { readonly opened: true }
  | Entry
  | { readonly closed: true };

export function encodeCheckpoint(checkpoint: Pick<Journal, 'epoch' | 'segments' | 'cuts' | 'index'>): Buffer {
  const { epoch, segments, cuts, index } = checkpoint;
  const lines: string[] = [encodeLine({ journal: JOURNAL_VERSION, epoch, cuts })];
  for (const part of chunks([...segments], SEGMENTS_PER_LINE)) lines.push(encodeLine({ segments: part }));
  for (const [stream, incarnation, set] of index.sets()) {
    for (const blocks of chunks([...set.encode()], BLOCKS_PER_LINE)) lines.push(encodeLine({ stream, incarnation, blocks }));
  }
  lines.push(encodeLine({ opened: true }));
  return Buffer.from(lines.join(''));
}

export function encodeEntry(entry: Entry): Buffer {
  const { segment, start, end, crc, sequences } = entry;
  return Buffer.from(encodeLine({ segment, start, end, crc, sequences }));
}

export function encodeClosed(): Buffer {
  return Buffer.from(encodeLine({ closed: true }));
}

function encodeLine(line: Line): string {
  const json = JSON.stringify(line);
  return `${crc32(json).toString(16).padStart(CHECKSUM_DIGITS, '0')} ${json}\n`;
}

const CHECKSUM_DIGITS = 8;
const LINE_FEED = 0x0a;

/** Throws JournalCorrupt. */
export function parseJournal(bytes: Buffer): Journal {
  try {
    return readJournal(bytes);
  } catch (error) {
    if (error instanceof JournalCorrupt) throw error;
    throw new JournalCorrupt('a line does not hold what it should', { cause: error });
  }
}

function readJournal(bytes: Buffer): Journal {
  const lines = readLines(bytes);
  const opened = lines.findIndex((line) => line !== null && 'opened' in line);
  const [head, ...checkpoint] = lines.slice(0, Math.max(opened, 0));
  if (head === undefined || head === null || !('journal' in head)) throw new JournalCorrupt('the checkpoint is not whole');
  if (head.journal !== JOURNAL_VERSION) throw new JournalCorrupt('another version of the journal format');
  const journal: Journal = {
    epoch: head.epoch,
    segments: new Map(),
    cuts: head.cuts,
    index: new SequenceIndex(),
    batches: [],
    unproven: null,
    closed: false,
  };
  for (const line of checkpoint) applyCheckpointLine(journal, line);
  applyEntries(journal, lines.slice(opened + 1));
  return journal;
}

/** null for the last line when it is torn. */
function readLines(bytes: Buffer): (Line | null)[] {
  const lines: (Line | null)[] = [];
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(LINE_FEED, start);
    const line = end < 0 ? null : decodeLine(bytes.toString('utf8', start, end));
    const isLast = end < 0 || end === bytes.length - 1;
    if (line === null && !isLast) throw new JournalCorrupt('a line does not have its checksum');
    lines.push(line);
    start = isLast ? bytes.length : end + 1;
  }
  return lines;
}

function decodeLine(text: string): Line | null {
  const json = text.slice(CHECKSUM_DIGITS + 1);
  const checksum = crc32(json).toString(16).padStart(CHECKSUM_DIGITS, '0');
  return text.startsWith(`${checksum} `) ? (JSON.parse(json) as Line) : null;
}

function applyCheckpointLine(journal: Journal, line: Line | null): void {
  if (line !== null && 'segments' in line) {
    for (const [name, bytes] of line.segments) journal.segments.set(name, bytes);
  } else if (line !== null && 'blocks' in line) {
    const set = journal.index.of(line.stream, line.incarnation);
    for (const block of line.blocks) set.addEncoded(block);
  } else throw new JournalCorrupt('a line of the checkpoint is of an unknown kind');
}

function applyEntries(journal: Journal, lines: readonly (Line | null)[]): void {
  const whole = lines.filter((line) => line !== null);
  whole.forEach((line, i) => {
    const isLast = i === whole.length - 1;
    if ('closed' in line && isLast && lines.length === whole.length) journal.closed = true;
    else if (!('crc' in line)) throw new JournalCorrupt('a line among the entries is of an unknown kind');
    else if (isLast) journal.unproven = line;
    else applyEntry(journal, line);
  });
}

/** Takes a batch in. Throws JournalCorrupt when it does not continue the segment. */
export function applyEntry(journal: Journal, entry: Entry): void {
  const { segment, start, end, sequences } = entry;
  const committed = journal.segments.get(segment) ?? 0;
  const name = parseName(segment);
  if (start !== committed || end <= start) throw new JournalCorrupt('a batch does not continue its segment');
  if (name?.kind !== 'segment' || name.epoch !== journal.epoch)
    throw new JournalCorrupt('a batch is in a segment of another epoch');
  journal.segments.set(segment, end);
  if (journal.batches[0]?.segment !== segment) journal.batches = [];
  journal.batches.push(entry);
  addRuns(journal.index, sequences);
}

export function addRuns(index: SequenceIndex, sequences: readonly SequenceRuns[]): void {
  for (const [stream, incarnation, runs] of sequences) {
    const set = index.of(stream, incarnation);
    let next = 0;
    for (let i = 0; i < runs.length; i += 2) {
      next += runs[i]!;
      set.addRun(next, runs[i + 1]!);
      next += runs[i + 1]!;
    }
  }
}

function* chunks<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}

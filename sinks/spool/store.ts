import { randomUUID } from 'node:crypto';
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { ReplayFault } from '../../core/errors.ts';
import { SequenceIndex } from '../../core/sequence-set.ts';
import { errnoOf } from '../disk/faults.ts';
import { READ, syncFolder, unlessMissing, withHandle } from '../disk/folders.ts';
import type { SinkLog } from '../sink.ts';
import { linkOnce, makeFile, numberedName, numberOf, readWhole, replaceFile } from './folders.ts';
import type { Folders } from './folders.ts';
import { countOf, decodeHead, encodeMark, entryBytesOf, headBytes, PREAMBLE_BYTES } from './pack.ts';
import type { EncodedPack, Identity, PackHead, SequenceRuns } from './pack.ts';

const CHECKPOINT = 'checkpoint';
/** Packs that may be newer than the checkpoint: so many heads are read at most when a spool is opened after a crash. */
const CHECKPOINT_PACKS = 1_024;
/** Closing writes a checkpoint when there are more new packs than this. */
const CHECKPOINT_PACKS_CLOSE = 64;
const HEADS_AT_ONCE = 32;
/** Read at first: enough for the head of most packs. */
const HEAD_GUESS_BYTES = 16_384;

/** What is known of a pack without its entries. */
export interface PackFacts {
  readonly number: number;
  readonly priority: number;
  readonly count: number;
  /** Of its entries. */
  readonly bytes: number;
  readonly sequences: readonly SequenceRuns[];
}

export interface SetAside {
  readonly name: string;
  readonly reason: string;
}

/**
 * The packs of a spool. Numbers rise by one with each commit, and a name can be given once: so whoever commits number n has
 * seen all below it, and two writers can never both store one record. The highest number is never removed, or an empty pack
 * takes its place, so that no number is given twice.
 */
export class SpoolStore {
  readonly folders: Folders;
  /** Damaged or foreign files that were found by this instance. */
  readonly setAside: SetAside[] = [];
  readonly #log: SinkLog;
  readonly #mayMove: boolean;
  readonly #packs = new Map<number, PackFacts>();
  #index = new SequenceIndex();
  #records = 0;
  #bytes = 0;
  #high = 0;
  #sinceCheckpoint = 0;

  private constructor(folders: Folders, log: SinkLog, mayMove: boolean) {
    this.folders = folders;
    this.#log = log;
    this.#mayMove = mayMove;
  }

  /** `mayMove` false: damaged and foreign files are noted, and stay where they are. */
  static async open(folders: Folders, log: SinkLog, { mayMove = true } = {}): Promise<SpoolStore> {
    const store = new SpoolStore(folders, log, mayMove);
    const remembered = await readCheckpoint(folders);
    for (const facts of remembered) store.#packs.set(facts.number, facts);
    await store.refresh();
    store.#sinceCheckpoint = Math.max(0, store.#packs.size - remembered.length);
    return store;
  }

  get records(): number {
    return this.#records;
  }

  get bytes(): number {
    return this.#bytes;
  }

  has({ stream, incarnation, sequence }: Identity): boolean {
    return this.#index.of(stream, incarnation).has(sequence);
  }

  /** Those that hold records: the most urgent first, of those the oldest; or the oldest first. */
  inOrder(order: 'fifo' | 'priority'): PackFacts[] {
    const packs = [...this.#packs.values()].filter(({ count }) => count > 0);
    return packs.sort((a, b) => (order === 'priority' ? a.priority - b.priority : 0) || a.number - b.number);
  }

  /** Looks at what others committed and removed since. */
  async refresh(): Promise<void> {
    this.#take(await this.#list());
    await this.#readNew();
    this.#count();
  }

  #fresh: number[] = [];

  /** Numbers that are there. What is not ours goes aside. */
  async #list(): Promise<number[]> {
    const numbers: number[] = [];
    for (const name of await files.readdir(this.folders.packs)) {
      const number = numberOf(name, 'pack');
      if (number === null) await this.#putAside(name, 'foreign');
      else numbers.push(number);
    }
    return numbers;
  }

  #take(numbers: readonly number[]): void {
    const there = new Set(numbers);
    for (const number of this.#packs.keys()) if (!there.has(number)) this.#packs.delete(number);
    this.#high = numbers.reduce((high, number) => Math.max(high, number), 0);
    this.#fresh = numbers.filter((number) => !this.#packs.has(number));
  }

  async #readNew(): Promise<void> {
    for (let start = 0; start < this.#fresh.length; start += HEADS_AT_ONCE) {
      await Promise.all(this.#fresh.slice(start, start + HEADS_AT_ONCE).map((number) => this.#readHead(number)));
    }
    this.#fresh = [];
  }

  async #readHead(number: number): Promise<void> {
    const name = numberedName(number, 'pack');
    const head = await readHead(join(this.folders.packs, name));
    if (head === 'damaged') await this.#putAside(name, 'damaged');
    else if (head !== null) this.#packs.set(number, factsOf(number, head));
  }

  #count(): void {
    this.#index = new SequenceIndex();
    this.#records = 0;
    this.#bytes = 0;
    for (const facts of this.#packs.values()) this.#add(facts);
  }

  #add({ count, bytes, sequences }: PackFacts): void {
    this.#records += count;
    this.#bytes += bytes;
    for (const [stream, incarnation, runs] of sequences) {
      const set = this.#index.of(stream, incarnation);
      for (let i = 0, next = 0; i < runs.length; i += 2) {
        next += runs[i]!;
        set.addRun(next, runs[i + 1]!);
        next += runs[i + 1]!;
      }
    }
  }

  /** Moves a file out of the way, where a person can look at it. */
  async #putAside(name: string, reason: string): Promise<void> {
    if (this.#mayMove) {
      const path = join(this.folders.aside, `${name}.${randomUUID()}`);
      const moved = await unlessMissing(files.rename(join(this.folders.packs, name), path).then(() => true));
      if (moved === null) return;
    }
    this.setAside.push({ name, reason });
    if (this.#mayMove) this.#log.warn({ file: name, reason }, 'a file of the spool was set aside');
  }

  /** `behind`: others committed since the last refresh; nothing was stored. Durable once `sync` was called. */
  async commit(pack: EncodedPack): Promise<'committed' | 'behind'> {
    const number = this.#high + 1;
    const committed = await this.#commitAs(number, pack.bytes);
    if (!committed) return 'behind';
    const facts = factsOf(number, pack.head);
    this.#packs.set(number, facts);
    this.#high = number;
    this.#add(facts);
    this.#sinceCheckpoint++;
    return 'committed';
  }

  async #commitAs(number: number, bytes: Uint8Array): Promise<boolean> {
    const made = await makeFile(this.folders, bytes);
    const path = join(this.folders.packs, numberedName(number, 'pack'));
    try {
      if (!(await linkOnce(made, path))) return false;
      // The name was free, and perhaps only because others had committed it and drained it since.
      const numbers = await this.#list();
      if (numbers.every((other) => other <= number)) return true;
      await unlessMissing(files.unlink(path));
      return false;
    } finally {
      await unlessMissing(files.unlink(made));
    }
  }

  /** Makes durable what was committed. */
  async sync(): Promise<void> {
    await syncFolder(files, this.folders.packs);
    if (this.#sinceCheckpoint >= CHECKPOINT_PACKS) await this.#writeCheckpoint();
  }

  /** What is in these packs is settled elsewhere. */
  async remove(numbers: readonly number[]): Promise<void> {
    await this.refresh();
    const marks = [...this.#packs.values()].filter(({ count, number }) => count === 0 && number < this.#high);
    const gone = new Set([...numbers, ...marks.map(({ number }) => number)]);
    if (gone.has(this.#high)) {
      if (await this.#commitAs(this.#high + 1, encodeMark())) await syncFolder(files, this.folders.packs);
      await this.refresh();
    }
    for (const number of gone) await unlessMissing(files.unlink(join(this.folders.packs, numberedName(number, 'pack'))));
    await syncFolder(files, this.folders.packs);
    await this.refresh();
  }

  /** Never throws: without a checkpoint the next one reads more heads. */
  async close(): Promise<void> {
    if (this.#sinceCheckpoint >= CHECKPOINT_PACKS_CLOSE) await this.#writeCheckpoint();
  }

  async #writeCheckpoint(): Promise<void> {
    this.#sinceCheckpoint = 0;
    try {
      await replaceFile(this.folders, CHECKPOINT, encodeCheckpoint([...this.#packs.values()]));
    } catch (error) {
      this.#log.warn({ errno: errnoOf(error) }, 'the spool could not write its checkpoint; opening it will take longer');
    }
  }
}

function factsOf(number: number, head: PackHead): PackFacts {
  return { number, priority: head.priority, count: countOf(head), bytes: entryBytesOf(head), sequences: head.sequences };
}

async function readHead(path: string): Promise<PackHead | 'damaged' | null> {
  const handle = await openPack(path);
  if (handle === null) return null;
  return await withHandle(handle, async (file) => {
    const first = Buffer.alloc(HEAD_GUESS_BYTES);
    const { bytesRead } = await file.read(first, 0, first.length, 0);
    const preamble = first.subarray(0, Math.min(bytesRead, PREAMBLE_BYTES));
    const length = headBytes(preamble);
    if (length === null) return 'damaged';
    let text = first.subarray(PREAMBLE_BYTES, Math.min(bytesRead, PREAMBLE_BYTES + length));
    if (text.length < length) {
      text = Buffer.alloc(length);
      const rest = await file.read(text, 0, length, PREAMBLE_BYTES);
      text = text.subarray(0, rest.bytesRead);
    }
    const head = text.length < length ? null : decodeHead(preamble, text);
    if (head === null) return 'damaged';
    const { size } = await file.stat();
    return size === PREAMBLE_BYTES + length + entryBytesOf(head) ? head : 'damaged';
  });
}

async function openPack(path: string) {
  try {
    return await unlessMissing(files.open(path, READ));
  } catch (error) {
    // A link, which only somebody else can have made.
    if (errnoOf(error) === 'ELOOP') throw new ReplayFault('sink_corrupt', 'a pack of the spool is a link');
    throw error;
  }
}

/** A CRC-32 in hexadecimal, then JSON: streams once, then one list a pack. */
function encodeCheckpoint(packs: readonly PackFacts[]): Buffer {
  const groups: [string, string][] = [];
  const places = new Map<string, number>();
  const placeOf = (stream: string, incarnation: string): number => {
    const name = JSON.stringify([stream, incarnation]);
    const place = places.get(name) ?? groups.push([stream, incarnation]) - 1;
    places.set(name, place);
    return place;
  };
  const rows = packs.map(({ number, priority, count, bytes, sequences }) => [
    number,
    priority,
    count,
    bytes,
    sequences.map(([stream, incarnation, runs]) => [placeOf(stream, incarnation), runs]),
  ]);
  const text = JSON.stringify({ groups, packs: rows });
  return Buffer.from(`${crc32(text).toString(16).padStart(8, '0')}${text}`);
}

interface Checkpoint {
  readonly groups: readonly (readonly [stream: string, incarnation: string])[];
  readonly packs: readonly (readonly [
    number: number,
    priority: number,
    count: number,
    bytes: number,
    sequences: readonly (readonly [group: number, runs: readonly number[]])[],
  ])[];
}

async function readCheckpoint(folders: Folders): Promise<PackFacts[]> {
  const bytes = await readWhole(join(folders.path, CHECKPOINT));
  const text = bytes?.toString() ?? '';
  if (crc32(text.slice(8)).toString(16).padStart(8, '0') !== text.slice(0, 8)) return [];
  const { groups, packs } = JSON.parse(text.slice(8)) as Checkpoint;
  return packs.map(([number, priority, count, size, sequences]) => ({
    number,
    priority,
    count,
    bytes: size,
    sequences: sequences.map(([group, runs]) => [...groups[group]!, runs] as const),
  }));
}

import { cp, readdir, readFile, rename, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeBatch } from '../../contract/records.ts';
import { never } from '../../contract/sink-contract.ts';
import { bedAt, faultOf, kinds, makeBed } from './bench.ts';
import type { Bed } from './bench.ts';
import { safeDisk, SimulatedFiles } from './simulated-files.ts';
import type { Gate } from './simulated-files.ts';

/** Two batches are in, and a third of one record; the writer has died without closing. */
async function crashedBed() {
  const bed = await makeBed();
  const sink = bed.sink();
  await sink.open(never());
  await sink.write(makeBatch(1, 3), never());
  await sink.write(makeBatch(4, 3), never());
  const before = await sizes(bed);
  await sink.write(makeBatch(7, 1), never());
  const after = await sizes(bed);
  let copies = 0;
  const copy = async () => {
    const root = join(bed.root, `copy-${++copies}`);
    await cp(bed.directory, join(root, 'orders'), { recursive: true });
    return bedAt(root);
  };
  const state = { copy, before, after };
  return { ...state, close: () => sink.close() };
}

async function sizes(bed: Bed): Promise<{ data: number; journal: number }> {
  return { data: (await stat(dataOf(bed))).size, journal: (await stat(journalOf(bed))).size };
}

const dataOf = (bed: Bed) => join(bed.directory, '00000001-000001.jsonl');
const journalOf = (bed: Bed) => join(bed.index, '00000001.journal');

async function tear(path: string, kept: number, whole: number): Promise<void> {
  await truncate(path, kept);
  await truncate(path, whole);
}

/** Opens, writes the third batch again, and says what was answered for it. */
async function writeAgain(bed: Bed): Promise<string> {
  const sink = bed.sink();
  await sink.open(never());
  const outcomes = kinds(await sink.write(makeBatch(4, 5), never()));
  await sink.close();
  expect(await bed.sequences()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  return outcomes;
}

describe('a torn tail', () => {
  test('without a tear the last batch is in', async () => {
    const crashed = await crashedBed();
    expect(await writeAgain(await crashed.copy())).toBe('ddddw');
    await crashed.close();
  });

  test.each(['cut', 'zeros'] as const)(
    'of the data, at every byte (%s): the batch is not in',
    { timeout: 60_000 },
    async (kind) => {
      const crashed = await crashedBed();
      for (let kept = crashed.before.data; kept < crashed.after.data; kept++) {
        const bed = await crashed.copy();
        await truncate(dataOf(bed), kept);
        if (kind === 'zeros') await truncate(dataOf(bed), crashed.after.data);
        expect(await writeAgain(bed), `${kept} bytes kept`).toBe('dddww');
      }
      await crashed.close();
    },
  );

  test.each(['cut', 'zeros'] as const)(
    'of the journal, at every byte (%s): the batch is not in',
    { timeout: 60_000 },
    async (kind) => {
      const crashed = await crashedBed();
      for (let kept = crashed.before.journal; kept < crashed.after.journal; kept++) {
        const bed = await crashed.copy();
        await truncate(journalOf(bed), kept);
        if (kind === 'zeros') await tear(journalOf(bed), kept, crashed.after.journal);
        expect(await writeAgain(bed), `${kept} bytes kept`).toBe('dddww');
      }
      await crashed.close();
    },
  );

  test('of both', async () => {
    const crashed = await crashedBed();
    for (let i = 0; i < 20; i++) {
      const bed = await crashed.copy();
      await truncate(dataOf(bed), crashed.before.data + i * 7);
      await truncate(journalOf(bed), crashed.before.journal + i * 5);
      expect(await writeAgain(bed)).toBe('dddww');
    }
    await crashed.close();
  });

  test('with bytes that no entry knows', async () => {
    const crashed = await crashedBed();
    const bed = await crashed.copy();
    await writeFile(dataOf(bed), 'half a li', { flag: 'a' });
    expect(await writeAgain(bed)).toBe('ddddw');
    expect(bed.logged.map(({ message }) => message)).toEqual(['cut what a crash left uncommitted']);
    await crashed.close();
  });
});

describe('what is corrupt stops', () => {
  async function expectCorrupt(bed: Bed, file: string): Promise<void> {
    const fault = await faultOf(bed.sink().open(never()));
    expect(fault.code).toBe('sink_corrupt');
    expect(`${fault.message} ${fault.detail}`).not.toContain('0000');
    expect(bed.logged.at(-1)?.fields).toEqual({ file });
    const findings = await bed.sink().probe(never());
    if (file.includes('journal')) expect(findings.some(({ severity }) => severity === 'error')).toBe(true);
  }

  test('a bit in a committed batch of the open segment', async () => {
    const crashed = await crashedBed();
    const bed = await crashed.copy();
    const bytes = await readFile(dataOf(bed));
    bytes[100]! ^= 1;
    await writeFile(dataOf(bed), bytes);
    await expectCorrupt(bed, '00000001-000001.jsonl');
    await crashed.close();
  });

  test('a committed batch that is cut', async () => {
    const crashed = await crashedBed();
    const bed = await crashed.copy();
    await truncate(dataOf(bed), crashed.before.data - 1);
    await expectCorrupt(bed, '00000001-000001.jsonl');
    await crashed.close();
  });

  test('a bit in the middle of a journal', async () => {
    const crashed = await crashedBed();
    const bed = await crashed.copy();
    const bytes = await readFile(journalOf(bed));
    bytes[60]! ^= 1;
    await writeFile(journalOf(bed), bytes);
    await expectCorrupt(bed, '00000001.journal');
    await crashed.close();
  });

  test.each([
    ['longer', (path: string) => writeFile(path, 'x', { flag: 'a' })],
    ['shorter', (path: string) => truncate(path, 10)],
    ['gone', (path: string) => rename(path, `${path}.moved`)],
  ])('a segment of a clean end that is %s', async (_, harm) => {
    const bed = await makeBed();
    const sink = bed.sink();
    await sink.write(makeBatch(1, 3), never());
    await sink.close();
    await harm(dataOf(bed));
    await expectCorrupt(bed, '00000001-000001.jsonl');
  });

  test('segments without an index', async () => {
    const bed = await makeBed();
    const sink = bed.sink();
    await sink.write(makeBatch(1, 3), never());
    await sink.close();
    await rename(bed.index, join(bed.root, 'moved'));
    await expectCorrupt(bed, '00000001-000001.jsonl');
    expect(await bed.sequences()).toEqual([1, 2, 3]);
  });
});

/** Lets a number of calls through; then the process is dead. */
class DyingGate implements Gate {
  calls = 0;
  readonly dead: Promise<void>;
  #die!: () => void;
  readonly #callsLeft: number;

  constructor(callsLeft: number) {
    this.#callsLeft = callsLeft;
    this.dead = new Promise((resolve) => (this.#die = resolve));
  }

  async enter(): Promise<void> {
    if (++this.calls <= this.#callsLeft) return;
    this.#die();
    await new Promise(() => undefined);
  }

  leave(): void {}
}

describe('death in a takeover', () => {
  test('at any call, and again at any later call, loses and doubles nothing', { timeout: 120_000 }, async () => {
    const crashed = await crashedBed();
    const torn = async () => {
      const bed = await crashed.copy();
      await truncate(dataOf(bed), crashed.after.data - 5);
      return bed;
    };
    let survived = false;
    for (let first = 0; !survived; first++) {
      for (const second of [0, 5, 9, 14, 19, 24, 30, 36]) {
        const bed = await torn();
        survived = await dieAfter(bed, first);
        await dieAfter(bed, second);
        expect(await writeAgain(bed), `died at calls ${first} and ${second}`).toMatch(/^ddd[dw][dw]$/);
      }
    }
    await crashed.close();
  });

  /** True when it got to its end. */
  async function dieAfter(bed: Bed, calls: number): Promise<boolean> {
    const files = new SimulatedFiles(safeDisk);
    const gate = new DyingGate(calls);
    const sink = bed.sink({ files: files.of(gate) });
    const work = sink.open(never()).then(() => sink.write(makeBatch(4, 5), never()));
    const end = await Promise.race([work.then(() => true), gate.dead.then(() => false)]);
    await files.closeAll();
    return end;
  }
});

/** Lets everything through but one kind of call, which hangs until it is released. */
class HangingGate implements Gate {
  readonly hangs: Promise<void>;
  release!: () => void;
  #hung!: () => void;
  readonly #call: string;
  readonly #released: Promise<void>;
  isArmed = false;

  constructor(call: string) {
    this.#call = call;
    this.hangs = new Promise((resolve) => (this.#hung = resolve));
    this.#released = new Promise((resolve) => (this.release = resolve));
  }

  async enter(call: string): Promise<void> {
    if (!this.isArmed || call !== this.#call) return;
    this.#hung();
    await this.#released;
  }

  leave(): void {}
}

describe('a file system that hangs', () => {
  test.each(['write', 'datasync', 'fstat', 'lstat'])('in %s does not hold up an abort, nor another writer', async (call) => {
    const bed = await makeBed();
    const files = new SimulatedFiles(safeDisk);
    const gate = new HangingGate(call);
    const stuck = bed.sink({ files: files.of(gate) });
    await stuck.write(makeBatch(1, 3), never());
    gate.isArmed = true;
    const controller = new AbortController();
    const reason = new Error('cancelled');
    const writing = stuck.write(makeBatch(4, 3), controller.signal);
    await gate.hangs;
    controller.abort(reason);
    await expect(writing).rejects.toBe(reason);
    const next = bed.sink();
    expect(kinds(await next.write(makeBatch(1, 7), never()))).toMatch(/^ddd[dw]{3}w$/);
    gate.release();
    await stuck.close();
    expect(kinds(await next.write(makeBatch(1, 8), never()))).toBe('dddddddw');
    await next.close();
    expect(await bed.sequences()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await files.closeAll();
  });
});

test('what old epochs left is swept, what is not ours is left alone', async () => {
  const bed = await makeBed();
  const first = bed.sink();
  await first.write(makeBatch(1, 3), never());
  await first.close();
  const strangers = ['notes.txt', 'orders.jsonl', '00000001-000001.jsonl.bak', '1-1.jsonl'];
  for (const name of strangers) await writeFile(join(bed.directory, name), 'mine\n');
  await writeFile(join(bed.index, 'README'), 'mine');
  await writeFile(join(bed.index, '00000001-abc.tmp'), 'stale');
  await writeFile(join(bed.directory, '00000001-000002.jsonl'), '');
  const next = bed.sink();
  await next.open(never());
  await next.close();
  expect((await readdir(bed.directory)).sort()).toEqual(['.index', '00000001-000001.jsonl', ...strangers].sort());
  expect((await readdir(bed.index)).sort()).toEqual(['00000001.claim', '00000002.claim', '00000002.journal', 'README']);
});

test('claims are kept few', { timeout: 60_000 }, async () => {
  const bed = await makeBed();
  for (let i = 0; i < 100; i++) {
    const sink = bed.sink();
    await sink.open(never());
    await sink.close();
  }
  const names = await readdir(bed.index);
  expect(names.filter((name) => name.endsWith('.claim'))).toHaveLength(65);
  expect(names.filter((name) => name.endsWith('.journal'))).toEqual(['00000100.journal']);
});

test('a journal that has grown long begins again as one checkpoint', { timeout: 60_000 }, async () => {
  const bed = await makeBed();
  const sink = bed.sink();
  const stream = 'S'.repeat(1_000_000);
  for (let i = 1; i <= 40; i++) await sink.write(makeBatch(i, 1, { stream }), never());
  await sink.close();
  const names = await readdir(bed.index);
  expect(names.filter((name) => name.endsWith('.journal'))).toEqual(['00000003.journal']);
  expect((await stat(join(bed.index, '00000003.journal'))).size).toBeLessThan(17_000_000);
  expect(await bed.sequences()).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
});

test('a clean end copies nothing', async () => {
  const bed = await makeBed();
  const sink = bed.sink();
  await sink.write(makeBatch(1, 3), never());
  await sink.close();
  const { ino } = await stat(dataOf(bed));
  const next = bed.sink();
  expect(kinds(await next.write(makeBatch(1, 4), never()))).toBe('dddw');
  await next.close();
  expect((await stat(dataOf(bed))).ino).toBe(ino);
  expect(await bed.segments()).toEqual(['00000001-000001.jsonl', '00000002-000001.jsonl']);
});

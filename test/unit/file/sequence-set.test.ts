import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SequenceIndex, SequenceSet } from '../../../core/sequence-set.ts';
import { randomFrom } from './simulated-files.ts';

const MEBIBYTE = 1_048_576;

function copyOf(set: SequenceSet): SequenceSet {
  const copy = new SequenceSet();
  for (const block of set.encode()) copy.addEncoded(JSON.parse(JSON.stringify(block)) as typeof block);
  return copy;
}

test('holds what was added, before and after it was written down', () => {
  const near = fc.integer({ min: 0, max: 300_000 });
  const far = fc.integer({ min: 2 ** 53 - 200_000, max: 2 ** 53 - 100_000 });
  const run = fc.tuple(fc.oneof(near, far), fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 99_000 })));
  fc.assert(
    fc.property(fc.array(run, { maxLength: 12 }), (runs) => {
      const set = new SequenceSet();
      const model = new Set<number>();
      for (const [first, length] of runs) {
        set.addRun(first, length);
        for (let i = 0; i < length; i++) model.add(first + i);
      }
      for (const candidate of [set, copyOf(set)]) {
        expect(candidate.size).toBe(model.size);
        for (const [first, length] of runs) {
          for (const probe of [first - 1, first, first + length - 1, first + length]) {
            if (probe >= 0) expect(candidate.has(probe)).toBe(model.has(probe));
          }
        }
      }
    }),
    { numRuns: 25 },
  );
});

test('one by one, in any order, through all forms of a block', () => {
  const set = new SequenceSet();
  const order = Array.from({ length: 65_536 }, (_, i) => (i * 40_503) % 65_536);
  order.forEach((offset, i) => {
    expect(set.has(65_536 + offset)).toBe(false);
    set.addRun(65_536 + offset, 1);
    if (i % 8_191 === 0) expect(copyOf(set).size).toBe(i + 1);
  });
  expect(set.size).toBe(65_536);
  expect([...set.encode()]).toEqual([[1, 'full']]);
  expect([set.has(65_535), set.has(65_536), set.has(131_071), set.has(131_072)]).toEqual([false, true, true, false]);
});

test('what is not a block is refused', () => {
  for (const block of [
    [0, 'sparse:'],
    [0, 'bitmap:AAAA'],
    [0, 'sparse:AQAA'],
    [0, 'sparse:AgABAA=='],
    [-1, 'full'],
    [0.5, 'full'],
    [0, 'x'],
  ] as const) {
    expect(() => new SequenceSet().addEncoded(block)).toThrow(RangeError);
  }
});

test.each([
  ['every tenth', (i: number) => i * 10],
  ['at random among 100 million', (_: number, random: () => number) => Math.floor(random() * 100_000_000)],
  ['at random among a billion', (_: number, random: () => number) => Math.floor(random() * 1_000_000_000)],
])('a million sequences, %s, take less than 10 MB', (_, sequenceAt) => {
  const random = randomFrom(1);
  const collect = garbageCollector();
  const index = new SequenceIndex();
  collect();
  const before = memory();
  const set = index.of('ORDERS', 'i');
  for (let i = 0; i < 1_000_000; i++) set.addRun(sequenceAt(i, random), 1);
  collect();
  expect((memory() - before) / MEBIBYTE).toBeLessThan(10);
  expect(index.size).toBeGreaterThan(990_000);
  expect(JSON.stringify([...set.encode()]).length / MEBIBYTE).toBeLessThan(10);
});

test('a billion sequences in a row take next to nothing', () => {
  const set = new SequenceSet();
  set.addRun(1, 1_000_000_000);
  expect(set.size).toBe(1_000_000_000);
  expect(JSON.stringify([...set.encode()]).length / MEBIBYTE).toBeLessThan(1);
});

function memory(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

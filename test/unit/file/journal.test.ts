import { describe, expect, test } from 'vitest';
import { encodeCheckpoint, encodeClosed, encodeEntry, JournalCorrupt, parseJournal } from '../../../sinks/file/journal.ts';
import type { Entry } from '../../../sinks/file/journal.ts';
import { SequenceIndex } from '../../../core/sequence-set.ts';

const index = new SequenceIndex();
index.of('ORDERS', 'i').addRun(1, 100);
const checkpoint = encodeCheckpoint({ epoch: 7, segments: new Map([['00000003-000001.jsonl', 900]]), cuts: [], index });

function entry(number: number, given: Partial<Entry> = {}): Entry {
  const start = number * 10;
  const segment = '00000007-000001.jsonl';
  return { segment, start, end: start + 10, crc: number, sequences: [['ORDERS', 'i', [200 + number, 1]]], ...given };
}

describe('a journal', () => {
  test('of a clean end holds all', () => {
    const journal = parseJournal(Buffer.concat([checkpoint, ...[0, 1].map((i) => encodeEntry(entry(i))), encodeClosed()]));
    expect(journal).toMatchObject({ epoch: 7, closed: true, unproven: null });
    expect([...journal.segments]).toEqual([
      ['00000003-000001.jsonl', 900],
      ['00000007-000001.jsonl', 20],
    ]);
    expect(journal.index.size).toBe(102);
  });

  test('without a clean end leaves its last entry to be proven', () => {
    const journal = parseJournal(Buffer.concat([checkpoint, encodeEntry(entry(0)), encodeEntry(entry(1))]));
    expect(journal.closed).toBe(false);
    expect(journal.unproven).toEqual(entry(1));
    expect(journal.segments.get('00000007-000001.jsonl')).toBe(10);
    expect(journal.index.size).toBe(101);
  });

  test('may be torn at any byte of its last line, and nowhere else', () => {
    const [first, last] = [encodeEntry(entry(0)), encodeEntry(entry(1))];
    const whole = Buffer.concat([checkpoint, first, last]);
    for (let length = checkpoint.length + first.length; length < whole.length; length++) {
      expect(parseJournal(whole.subarray(0, length)).unproven).toEqual(entry(0));
      const zeros = Buffer.concat([whole.subarray(0, length), Buffer.alloc(whole.length - length)]);
      expect(parseJournal(zeros).unproven).toEqual(entry(0));
    }
    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      changed[at]! ^= 1;
      if (at < checkpoint.length + first.length - 1) expect(() => parseJournal(changed)).toThrow(JournalCorrupt);
    }
  });

  test('whose checkpoint is not whole is corrupt', () => {
    for (let length = 0; length < checkpoint.length; length++) {
      expect(() => parseJournal(checkpoint.subarray(0, length))).toThrow(JournalCorrupt);
    }
  });

  test.each([
    ['a batch that leaves a hole', [entry(0), entry(2), entry(3)]],
    ['a batch of another epoch', [entry(0, { segment: '00000006-000001.jsonl' }), entry(1)]],
    ['a batch in something else', [entry(0, { segment: '../x' }), entry(1)]],
    ['a batch of no bytes', [entry(0, { end: 0 }), entry(1)]],
  ])('with %s is corrupt', (_, entries) => {
    expect(() => parseJournal(Buffer.concat([checkpoint, ...entries.map(encodeEntry)]))).toThrow(JournalCorrupt);
  });

  test('that goes on after its end is corrupt', () => {
    expect(() => parseJournal(Buffer.concat([checkpoint, encodeClosed(), encodeEntry(entry(0))]))).toThrow(JournalCorrupt);
    expect(() => parseJournal(Buffer.concat([checkpoint, encodeClosed(), encodeClosed()]))).toThrow(JournalCorrupt);
  });

  test('of another format version is refused', () => {
    const other = encodeCheckpoint({ epoch: 7, segments: new Map(), cuts: [], index: new SequenceIndex() }).toString();
    expect(other).toContain('"journal":1');
    expect(() => parseJournal(Buffer.from(other.replace('"journal":1', '"journal":2')))).toThrow(JournalCorrupt);
  });
});

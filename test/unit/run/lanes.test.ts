import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  laneNotReached,
  lanesEnd,
  mayWait,
  nextTurn,
  placesOf,
  readableIn,
  startLane,
  type Lane,
} from '../../../core/lanes.ts';

const lane = (change: Partial<Lane> = {}): Lane => ({
  cursor: 1,
  idleSinceMs: null,
  streamLast: 10,
  rangeEnded: false,
  askedMs: null,
  ...change,
});
const clock = { nowMs: 10_000, idleMs: 1_000 };

describe('whose turn it is', () => {
  test('one after the other, those at their end left out', () => {
    const lanes = [lane(), lane({ rangeEnded: true }), lane()];
    expect(nextTurn(lanes, 0, clock)).toBe(2);
    expect(nextTurn(lanes, 2, clock)).toBe(0);
  });

  test('an idle lane waits for the others, but not longer than idle takes', () => {
    const idle = (askedMs: number) => lane({ idleSinceMs: 5_000, askedMs });
    expect(nextTurn([lane(), idle(9_500)], 0, clock)).toBe(0);
    expect(nextTurn([lane(), idle(8_000)], 0, clock)).toBe(1);
  });

  test('when all are idle, the one that was not asked for the longest time', () => {
    const lanes = [9_900, 9_700, 9_800].map((askedMs) => lane({ idleSinceMs: 9_500, askedMs }));
    expect(nextTurn(lanes, 0, clock)).toBe(1);
    expect(mayWait(lanes)).toBe(true);
    expect(mayWait([...lanes, lane()])).toBe(false);
  });
});

/** A log of some partitions is played to its end: nothing is passed over, nobody starves, and it ends. */
test('any lanes come to their end by turns', () => {
  const given = fc.array(fc.record({ records: fc.nat(40), bounded: fc.boolean() }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(given, fc.integer({ min: 1, max: 7 }), (partitions, batch) => {
      const idleMs = 1_000;
      const lanes = partitions.map(({ records, bounded }, partition) =>
        startLane({
          partition,
          stream: `S-${partition}`,
          incarnation: '',
          first: 1,
          last: bounded ? records : null,
          streamLast: records,
          cursor: 1,
          predecessor: null,
        }),
      );
      let [nowMs, current, turns] = [0, lanes.length - 1, 0];
      while (lanesEnd(lanes, idleMs) === null) {
        if (++turns > 2_000) throw new Error('it does not end');
        const waits = mayWait(lanes);
        current = nextTurn(lanes, current, { nowMs, idleMs });
        const [it, { records, bounded }] = [lanes[current]!, partitions[current]!];
        expect(it.rangeEnded).toBe(false);
        const taken = Math.min(batch, records + 1 - it.cursor);
        nowMs += taken === 0 && waits && it.idleSinceMs !== null ? Math.max(10, idleMs - (nowMs - it.idleSinceMs)) : 10;
        it.cursor += taken;
        it.rangeEnded = bounded && it.cursor > records;
        it.idleSinceMs = it.cursor > records ? (taken > 0 ? nowMs : (it.idleSinceMs ?? nowMs)) : null;
        it.askedMs = nowMs;
      }
      expect(lanes.map(({ cursor }) => cursor - 1)).toEqual(partitions.map(({ records }) => records));
    }),
  );
});

test('places of all lanes together: from one to the number of their records', () => {
  const range = { stream: 'S', incarnation: '', predecessor: null, partition: 0 };
  const ranges = [
    { ...range, first: 5, last: 14, streamLast: 20, cursor: 5 },
    { ...range, first: 1, last: null, streamLast: 7, cursor: 1 },
  ];
  expect(placesOf(ranges, ranges.map(startLane))).toEqual({ cursor: 1, end: 17 });
  const half = [lane({ cursor: 15, streamLast: 20 }), lane({ cursor: 4, streamLast: 9 })];
  expect(placesOf(ranges, half)).toEqual({ cursor: 14, end: 19 });
  expect(laneNotReached(ranges[0]!, half[0]!)).toBe(0);
  expect(laneNotReached(ranges[1]!, half[1]!)).toBe(4);
});

test('what can be read of a span is counted offset by offset', () => {
  const lengths = fc.array(fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 8 })), { maxLength: 6 });
  fc.assert(
    fc.property(lengths, fc.nat(6), fc.nat(6), fc.nat(40), fc.nat(40), (parts, overlap, length, a, b) => {
      const cold: { first: number; next: number }[] = [];
      let end = 0;
      for (const [gap, size] of parts) {
        cold.push({ first: end + gap, next: end + gap + size });
        end += gap + size;
      }
      const hot = Math.max(0, end - overlap);
      const content = { cold, hot, next: Math.max(end, hot) + length };
      const span = { first: Math.min(a, b), next: Math.max(a, b) };
      const isThere = (offset: number) =>
        (offset >= hot && offset < content.next) || cold.some(({ first, next }) => offset >= first && offset < next);
      let expected = 0;
      for (let offset = span.first; offset < span.next; offset++) if (isThere(offset)) expected++;
      expect(readableIn(content, span)).toBe(expected);
    }),
  );
});

import { describe, expect, test } from 'vitest';
import { addTallies } from '../../../core/children.ts';
import { joinRanges, rangesOf } from '../../../core/ranges.ts';

describe('ranges', () => {
  test('consecutive sequences are one', () =>
    expect(rangesOf([1, 2, 3, 7, 9, 10])).toEqual([
      [1, 3],
      [7, 7],
      [9, 10],
    ]));

  test('joined, what touches or overlaps is one', () => {
    expect(
      joinRanges(
        [
          [1, 3],
          [10, 20],
        ],
        [
          [4, 5],
          [15, 25],
          [30, 30],
        ],
      ),
    ).toEqual([
      [1, 5],
      [10, 25],
      [30, 30],
    ]);
    expect(joinRanges([[5, 9]], [[1, 2]])).toEqual([
      [1, 2],
      [5, 9],
    ]);
  });

  test('too many: the smallest gaps are closed, and nothing is lost', () => {
    const ranges = [
      [1, 1],
      [3, 3],
      [100, 100],
      [110, 110],
    ] as const;
    expect(joinRanges(ranges, [], 2)).toEqual([
      [1, 3],
      [100, 110],
    ]);
    expect(joinRanges(ranges, [], 1)).toEqual([[1, 110]]);
    const many = Array.from({ length: 5_000 }, (_, i) => [3 * i, 3 * i] as const);
    const kept = joinRanges(many, []);
    expect(kept).toHaveLength(1_000);
    expect(many.every(([n]) => kept.some(([first, last]) => first <= n && n <= last))).toBe(true);
  });
});

test('tallies of children add up by name', () => {
  const tally = { name: 'a', required: false, written: 1, duplicate: 2, rejected: 3, failed: 4, missing: [[1, 4]] as const };
  expect(
    addTallies(
      [tally],
      [
        { ...tally, missing: [[5, 6]] },
        { ...tally, name: 'b' },
      ],
    ),
  ).toEqual([
    { name: 'a', required: false, written: 2, duplicate: 4, rejected: 6, failed: 8, missing: [[1, 6]] },
    { ...tally, name: 'b' },
  ]);
});

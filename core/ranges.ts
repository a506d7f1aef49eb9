/** Rising ranges of sequences that do not touch, both ends inclusive. */
export type Ranges = readonly (readonly [first: number, last: number])[];

/** Ranges kept for one child of a fan-out. */
const rangesMax = 1_000;

/** Of rising sequences. Consecutive ones become one range. */
export function rangesOf(sequences: readonly number[]): Ranges {
  const ranges: [number, number][] = [];
  for (const sequence of sequences) {
    const last = ranges.at(-1);
    if (last !== undefined && sequence <= last[1] + 1) last[1] = Math.max(last[1], sequence);
    else ranges.push([sequence, sequence]);
  }
  return ranges;
}

/** Both together. More than `max` are brought down to it by closing the smallest gaps: what lies in those is then in, too. */
export function joinRanges(some: Ranges, more: Ranges, max: number = rangesMax): Ranges {
  const joined: [number, number][] = [];
  for (const [first, last] of [...some, ...more].sort((a, b) => a[0] - b[0])) {
    const before = joined.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return closeGaps(joined, joined.length - max);
}

function closeGaps(ranges: Ranges, count: number): Ranges {
  if (count <= 0) return ranges;
  const gaps = ranges.slice(1).map(([first], i) => ({ before: i, size: first - ranges[i]![1] }));
  const closed = new Set(
    gaps
      .sort((a, b) => a.size - b.size)
      .slice(0, count)
      .map(({ before }) => before),
  );
  const kept: [number, number][] = [];
  ranges.forEach(([first, last], i) => {
    if (closed.has(i - 1)) kept.at(-1)![1] = last;
    else kept.push([first, last]);
  });
  return kept;
}

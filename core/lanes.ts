import type { Owner } from './consumer.ts';
import type { Span } from './group.ts';

/**
 * The lanes of a replay from a topic: one per partition, each with a cursor and a durable consumer of its own. They take turns, a
 * batch at a time. Positions are stream sequences, as everywhere in a run: offset and 1.
 */

/** What describing pinned of one partition. */
export interface LaneRange {
  readonly partition: number;
  readonly stream: string;
  readonly incarnation: string;
  readonly first: number;
  /** Inclusive; null: until the partition is drained. */
  readonly last: number | null;
  /** Its last record when it was described. */
  readonly streamLast: number;
  /** Where the run starts: `first`, or where an unfinished run of the same plan stopped. */
  readonly cursor: number;
  /** Closed owner of the durable that this run takes over from. */
  readonly predecessor: Owner | null;
}

/** Where a run stands in one sequence of records: a stream, or one partition. */
export interface Place {
  /** Next unsettled sequence. */
  cursor: number;
  /** Since when it gave nothing; null while it gives. Milliseconds since the epoch. */
  idleSinceMs: number | null;
  streamLast: number;
  rangeEnded: boolean;
}

export interface Lane extends Place {
  /** When it was last asked; null: never. Milliseconds since the epoch. */
  askedMs: number | null;
}

/** The lane as reports and progress show it. Offsets. */
export interface LaneProgress {
  readonly partition: number;
  readonly first: number;
  /** Next unsettled offset. */
  readonly cursor: number;
  /** Exclusive; null: until the partition is drained. */
  readonly end: number | null;
  /** End of the log as last seen. */
  readonly next: number;
}

export function startLane({ cursor, last, streamLast }: LaneRange): Lane {
  return { cursor, idleSinceMs: null, streamLast, rangeEnded: last !== null && cursor > last, askedMs: null };
}

/**
 * Whose turn it is: the next one after `current` that has something, or that was not asked for as long as the plan takes for idle.
 * When none has, the one that was not asked for the longest time.
 */
export function nextTurn(
  lanes: readonly Lane[],
  current: number,
  { nowMs, idleMs }: { nowMs: number; idleMs: number },
): number {
  const order = lanes.map((_, i) => (current + 1 + i) % lanes.length).filter((i) => !lanes[i]!.rangeEnded);
  const due = order.find((i) => {
    const { idleSinceMs, askedMs } = lanes[i]!;
    return idleSinceMs === null || (askedMs !== null && nowMs - askedMs >= idleMs);
  });
  if (due !== undefined) return due;
  const longAgo = (i: number) => lanes[i]!.askedMs ?? 0;
  return order.reduce((best, i) => (longAgo(i) < longAgo(best) ? i : best), order[0] ?? current);
}

/** Every lane is at its end, or gave nothing for so long, asked before and after. */
export function lanesEnd(lanes: readonly Lane[], idleMs: number): 'end_of_range' | 'drained' | null {
  if (lanes.every(({ rangeEnded }) => rangeEnded)) return 'end_of_range';
  const isDrained = ({ rangeEnded, idleSinceMs, askedMs }: Lane) =>
    rangeEnded || (idleSinceMs !== null && askedMs !== null && askedMs - idleSinceMs >= idleMs);
  return lanes.every(isDrained) ? 'drained' : null;
}

/** How long the lane whose turn it is may be waited for: not while another one has something. */
export function mayWait(lanes: readonly Lane[]): boolean {
  return lanes.every(({ rangeEnded, idleSinceMs }) => rangeEnded || idleSinceMs !== null);
}

/** All lanes as one line of places, 1 the first: what percent, range and cursor of the whole run are told in. */
export function placesOf(ranges: readonly LaneRange[], lanes: readonly Place[]): { cursor: number; end: number } {
  let cursor = 1;
  let end = 0;
  ranges.forEach(({ first, last }, i) => {
    const lane = lanes[i]!;
    cursor += lane.cursor - first;
    end += Math.max(0, Math.min(last ?? Infinity, lane.streamLast) + 1 - first);
  });
  return { cursor, end };
}

export function laneProgress(ranges: readonly LaneRange[], lanes: readonly Place[]): LaneProgress[] {
  return ranges.map(({ partition, first, last }, i) => {
    const { cursor, streamLast } = lanes[i]!;
    return { partition, first: first - 1, cursor: cursor - 1, end: last, next: streamLast };
  });
}

/** What describing counted in one lane and the run did not come to. */
export function laneNotReached({ last, streamLast }: LaneRange, { cursor }: Place): number {
  return Math.max(0, Math.min(last ?? Infinity, streamLast) + 1 - cursor);
}

/** Of a partition's log: what can be read of it. */
export interface LogContent {
  /** Offsets; ascending, none overlaps. */
  readonly cold: readonly Span[];
  /** First offset in the hot window. */
  readonly hot: number;
  readonly next: number;
}

/** Records from `first` to `next` (offsets) that the log says it holds. */
export function readableIn({ cold, hot, next }: LogContent, span: Span): number {
  const overlap = (a: Span) => Math.max(0, Math.min(a.next, span.next) - Math.max(a.first, span.first));
  // A flush that was not finished leaves records both cold and hot.
  const below = cold.reduce((sum, segment) => sum + overlap({ ...segment, next: Math.min(segment.next, hot) }), 0);
  return below + overlap({ first: hot, next });
}

/** Text of a gap that a run came upon: `offsets 100 to 199 of partition 3`. */
export function goneText(partition: number, { first, next }: Span): string {
  const which = next === first + 1 ? `offset ${first}` : `offsets ${first} to ${next - 1}`;
  return `Partition ${partition}: ${which} ${next === first + 1 ? 'is' : 'are'} gone from the log, hot and cold; not replayed.`;
}

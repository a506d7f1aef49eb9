import { joinRanges, type Ranges } from './ranges.ts';

/** What became of records in one child of a fan-out. */
export interface ChildTally {
  readonly name: string;
  readonly required: boolean;
  readonly written: number;
  readonly duplicate: number;
  /** Refused by the child for good. */
  readonly rejected: number;
  /** Of an optional child: neither written nor there, because it failed, was too slow, or was left out meanwhile. */
  readonly failed: number;
  /** Where records of an optional child are that it did not take: `replay-stream retry-optional` brings them. */
  readonly missing: Ranges;
}

/** Counts of a batch added to those so far. Children keep their order. */
export function addTallies(some: readonly ChildTally[], more: readonly ChildTally[]): ChildTally[] {
  const byName = new Map(some.map((tally) => [tally.name, tally]));
  for (const tally of more) {
    const before = byName.get(tally.name);
    byName.set(tally.name, before === undefined ? tally : added(before, tally));
  }
  return [...byName.values()];
}

function added(a: ChildTally, b: ChildTally): ChildTally {
  return {
    name: a.name,
    required: a.required,
    written: a.written + b.written,
    duplicate: a.duplicate + b.duplicate,
    rejected: a.rejected + b.rejected,
    failed: a.failed + b.failed,
    missing: joinRanges(a.missing, b.missing),
  };
}

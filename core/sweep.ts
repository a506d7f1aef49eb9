import { ReplayFault } from './errors.ts';
import {
  claim,
  claimMerge,
  coldThrough,
  dueToLeave,
  isFull,
  type Intent,
  type Manifest,
  type Merge,
  type NameOf,
} from './manifest.ts';

/** What the steps of a sweep tell each other. */

export interface SweepPlace {
  /** Name. */
  readonly topic: string;
  readonly partition: number;
}

export interface SweepFlush extends SweepPlace {
  readonly intent: Intent;
}

export interface SweepMerge extends SweepPlace {
  readonly merge: Merge;
}

/** An object of the cold store. */
export interface StoredSegment {
  readonly bytes: number;
  /** Of its last record; RFC 3339, nine decimals, `Z`. */
  readonly lastTime: string;
}

export type SweepStep =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'flush'; readonly intent: Intent }
  /** These records may go: they are cold, or the topic keeps none that are not hot. */
  | { readonly kind: 'purge'; readonly before: number }
  /** Objects that no reader finds any more, and whose time has come. */
  | { readonly kind: 'remove'; readonly names: readonly string[] }
  | { readonly kind: 'merge'; readonly merge: Merge };

/** How long an object outlives its entry: readers may have read the manifest just before. Milliseconds. */
export const removeGraceMs = 60 * 60_000;

/** What a sweep did in one partition. */
export interface Swept {
  readonly partition: number;
  /** Segments that were stored. */
  readonly segments: number;
  /** Records that left the hot window. */
  readonly records: number;
  /** Segments that were made of small neighbours. */
  readonly merges: number;
  /** Objects that were removed after their grace. */
  readonly removed: number;
}

/** Objects that one step removes. */
const removedAtOnce = 100;

export interface SweepFacts {
  readonly hot: number;
  readonly next: number;
  /** Records before it have left the bounds of the hot window. */
  readonly before: number;
  /** Of a segment. */
  readonly recordsMax: number;
  readonly mergeRecordsMax: number;
  readonly mergeBytesMax: number;
  readonly nowMs: number;
  readonly nameOf: NameOf;
}

/** What a partition with a cold store needs now; null: the manifest stays as it is. Throws `cold_full`. */
export function decideSweep(manifest: Manifest, facts: SweepFacts): { manifest: Manifest | null; answer: SweepStep } {
  const same = (answer: SweepStep) => ({ manifest: null, answer });
  const cold = Math.min(coldThrough(manifest, facts.hot), facts.next);
  // A purge that a crash prevented comes before the next flush.
  if (manifest.intent === null && cold > facts.hot) return same({ kind: 'purge', before: cold });
  const leaving = dueToLeave(manifest, facts.nowMs);
  if (leaving.length > 0) return same({ kind: 'remove', names: leaving.slice(0, removedAtOnce) });
  if (!isFull(manifest)) {
    const claimed = claim(manifest, facts);
    if (claimed.kind === 'claimed') return { manifest: claimed.manifest, answer: { kind: 'flush', intent: claimed.intent } };
    if (claimed.kind === 'resumed') return same({ kind: 'flush', intent: claimed.intent });
  }
  const { mergeRecordsMax: recordsMax, mergeBytesMax: bytesMax, nowMs, nameOf } = facts;
  const merged = claimMerge(manifest, { recordsMax, bytesMax, nowMs, nameOf });
  if (merged !== null) return { manifest: merged.manifest, answer: { kind: 'merge', merge: merged.merge } };
  if (isFull(manifest)) throw new ReplayFault('cold_full', 'the manifest of a partition is full');
  return same({ kind: 'nothing' });
}

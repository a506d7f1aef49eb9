import type { Span } from './group.ts';
import { withSegment, type Manifest, type SegmentRef } from './manifest.ts';

/**
 * What is wrong between the manifest of a partition and the objects of its cold store, and what may be done about it. The objects
 * were listed before the manifest was read, and every object is named in the manifest before it is stored: so an object that the
 * manifest does not name belongs to no flush that is still going on. Nothing is removed that holds a record which nothing else holds.
 */

/** Claims of this age belong to steps that are gone: longer than a step may take. Milliseconds. */
export const staleClaimMs = 15 * 60_000;

export const repairKinds = [
  'sweep_started',
  'stale_claim',
  'orphan_adopted',
  'orphan_removed',
  'entry_without_object',
  'overlap',
  'cursor_beyond_end',
] as const;
export type RepairKind = (typeof repairKinds)[number];
export type Repairs = { readonly [K in RepairKind]?: number };

export interface ColdObject extends Span {
  readonly name: string;
  readonly epoch: number;
}

export interface Findings {
  /** Claims nobody works on any more. */
  readonly staleIntent: boolean;
  readonly staleMerge: boolean;
  /** Entries whose objects are not there. */
  readonly lost: readonly SegmentRef[];
  /** Entries whose records stand in another one. */
  readonly contained: readonly SegmentRef[];
  /** Objects that fill a hole: theirs are the only copies. The larger ones first. */
  readonly adoptable: readonly ColdObject[];
  /** Objects that hold nothing which is not hot, in a segment, or expired. */
  readonly redundant: readonly ColdObject[];
}

export interface Surveyed {
  readonly manifest: Manifest;
  readonly objects: readonly ColdObject[];
  /** First hot offset. */
  readonly hot: number;
  readonly nowMs: number;
}

export function findFaults({ manifest, objects, hot, nowMs }: Surveyed): Findings {
  const named = new Set(objects.map(({ name }) => name));
  const lost = manifest.segments.filter(({ name }) => !named.has(name));
  const there = manifest.segments.filter(({ name }) => named.has(name));
  const contained = there.filter((one, i) =>
    there.some((other, j) => i !== j && holds(other, one) && (!holds(one, other) || j < i)),
  );
  const visible = there.filter((one) => !contained.includes(one));
  const strangers = strangersOf(manifest, objects).toSorted((a, b) => sizeOf(b) - sizeOf(a) || b.epoch - a.epoch);
  const adoptable: ColdObject[] = [];
  const redundant: ColdObject[] = [];
  for (const stranger of strangers) {
    if (missingOf(stranger, { manifest, hot }, [...visible, ...adoptable]).length === 0) redundant.push(stranger);
    else if (mayAdopt(manifest, [...visible, ...adoptable], stranger)) adoptable.push(stranger);
  }
  const isStale = (claim: { readonly claimedAtMs: number } | null) =>
    claim !== null && claim.claimedAtMs + staleClaimMs <= nowMs;
  return { staleIntent: isStale(manifest.intent), staleMerge: isStale(manifest.merge), lost, contained, adoptable, redundant };
}

/** Objects that the manifest does not name. */
function strangersOf(manifest: Manifest, objects: readonly ColdObject[]): ColdObject[] {
  const named = new Set([
    ...manifest.segments.map(({ name }) => name),
    ...manifest.leaving.map(({ name }) => name),
    manifest.intent?.name,
    manifest.merge?.name,
  ]);
  return objects.filter(({ name }) => !named.has(name));
}

function mayAdopt({ floor, intent }: Manifest, segments: readonly Span[], object: ColdObject): boolean {
  if (object.first < floor || (intent !== null && overlap(intent, object))) return false;
  return !segments.some((segment) => overlap(segment, object));
}

/** Parts of the span that are neither expired, nor in a segment, nor hot. */
function missingOf(span: Span, { manifest, hot }: { manifest: Manifest; hot: number }, segments: readonly Span[]): Span[] {
  const covers = [{ first: 0, next: manifest.floor }, ...segments, { first: hot, next: Number.MAX_SAFE_INTEGER }];
  return holesOf(covers, span);
}

/** Parts of the span that none of the others covers. */
function holesOf(covers: readonly Span[], { first, next }: Span): Span[] {
  const holes: Span[] = [];
  let at = first;
  for (const cover of [...covers].sort((a, b) => a.first - b.first)) {
    if (cover.first > at) holes.push({ first: at, next: Math.min(cover.first, next) });
    at = Math.max(at, cover.next);
    if (at >= next) break;
  }
  if (at < next) holes.push({ first: at, next });
  return holes.filter((hole) => hole.first < hole.next);
}

/** Records of the log that nothing holds: not expired, not cold, not hot. */
export function holes(manifest: Manifest, hot: number): Span[] {
  return holesOf([{ first: 0, next: manifest.floor }, ...manifest.segments], { first: 0, next: hot });
}

/** Entries without objects are dropped: their offsets are a hole then, which readers are told; what is still hot is flushed again. */
export function dropEntries(manifest: Manifest, names: readonly string[]): Manifest {
  return { ...manifest, segments: manifest.segments.filter(({ name }) => !names.includes(name)) };
}

/** null: its place is taken by now. */
export function adopt(
  manifest: Manifest,
  object: ColdObject,
  stored: { readonly bytes: number; readonly lastTime: string },
): Manifest | null {
  if (!mayAdopt(manifest, manifest.segments, object)) return null;
  const { first, next, name, epoch } = object;
  return {
    ...manifest,
    segments: withSegment(manifest, { first, next, name, ...stored }),
    epoch: Math.max(manifest.epoch, epoch),
  };
}

function holds(outer: Span, inner: Span): boolean {
  return outer.first <= inner.first && inner.next <= outer.next;
}

function overlap(one: Span, other: Span): boolean {
  return one.first < other.next && other.first < one.next;
}

function sizeOf({ first, next }: Span): number {
  return next - first;
}

/** What a person should look at: nothing here can be repaired without losing something. */
export type Unrepaired = { readonly topic: string; readonly partition: number | null } & (
  | ({ readonly kind: 'hole' } & Span)
  | { readonly kind: 'foreign_object' | 'unreadable_object' | 'overlapping_object'; readonly object: string }
  | { readonly kind: 'failed'; readonly code: string }
);

export interface TopicReconciled {
  readonly repairs: Repairs;
  readonly unrepaired: readonly Unrepaired[];
}

export interface Reconciled extends TopicReconciled {
  readonly topics: number;
  /** Those beyond `unrepairedMax`. */
  readonly unrepairedMore: number;
}

/** Kept in one report. */
export const unrepairedMax = 100;

export function addRepairs(one: Repairs, other: Repairs): Repairs {
  const sum: { [K in RepairKind]?: number } = { ...one };
  for (const kind of repairKinds) {
    const count = (one[kind] ?? 0) + (other[kind] ?? 0);
    if (count > 0) sum[kind] = count;
  }
  return sum;
}

export function repairCount(repairs: Repairs): number {
  return Object.values(repairs).reduce((sum, count) => sum + count, 0);
}

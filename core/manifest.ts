import type { Span } from './group.ts';
import type { HotBounds } from './topic.ts';

/**
 * What of a partition is cold. Every change is one compare-and-set on one key. A flush first claims its exact range, so that an
 * attempt after a crash stores the same records under the same name, whatever became due meanwhile; only what stands here as a
 * segment may leave the hot window.
 */
export interface Manifest {
  /** Ascending; none overlaps. */
  readonly segments: readonly SegmentRef[];
  /** The flush that is under way. */
  readonly intent: Intent | null;
  /** The merge that is under way. */
  readonly merge: Merge | null;
  /** Raised by every claim. */
  readonly epoch: number;
  /** Expired: nothing before this offset is to be seen again. */
  readonly floor: number;
  /** Objects that no reader finds any more, until they are removed. */
  readonly leaving: readonly LeavingObject[];
}

export interface SegmentRef extends Span {
  /** Of the object. */
  readonly name: string;
  readonly bytes: number;
  /** Of its last record; RFC 3339, nine decimals, `Z`. */
  readonly lastTime: string;
}

export interface Intent extends Span {
  readonly name: string;
  readonly epoch: number;
  /** Milliseconds since the epoch. */
  readonly claimedAtMs: number;
}

/** Neighbours that are to become one segment. */
export interface Merge extends Intent {
  /** Names, in order. */
  readonly sources: readonly string[];
}

export interface LeavingObject {
  readonly name: string;
  /** Milliseconds since the epoch: readers that still hold the entry had their time then. */
  readonly removeAtMs: number;
}

export const newManifest: Manifest = {
  segments: [],
  intent: null,
  merge: null,
  epoch: 0,
  floor: 0,
  leaving: [],
};

/** A manifest is one value of at most a megabyte. */
const segmentsMax = 4_000;
/** Objects that wait for their removal count with the segments. */
export function isFull({ segments, leaving }: Manifest): boolean {
  return segments.length + leaving.length >= segmentsMax;
}

/** First offset from this one on that is neither in a segment nor expired: what is hot before it may go. */
export function coldThrough({ segments, floor }: Manifest, from: number): number {
  let at = Math.max(from, floor);
  for (const { first, next } of segments) if (first <= at && next > at) at = next;
  return at;
}

export type Claimed =
  | { readonly kind: 'claimed'; readonly manifest: Manifest; readonly intent: Intent }
  /** An earlier flush is not finished: its range, under its name. */
  | { readonly kind: 'resumed'; readonly intent: Intent }
  /** Nothing is due that is not cold already. */
  | { readonly kind: 'nothing' };

export type NameOf = (span: Span, epoch: number) => string;

/** Claims what stands before `before` and is hot only, at most `recordsMax` records. */
export function claim(
  manifest: Manifest,
  request: { hot: number; before: number; recordsMax: number; nowMs: number; nameOf: NameOf },
): Claimed {
  if (manifest.intent !== null) return { kind: 'resumed', intent: manifest.intent };
  const first = coldThrough(manifest, request.hot);
  const taken = manifest.segments.find((segment) => segment.first > first)?.first ?? Number.MAX_SAFE_INTEGER;
  const next = Math.min(request.before, first + request.recordsMax, taken);
  if (first >= next) return { kind: 'nothing' };
  const epoch = manifest.epoch + 1;
  const span = { first, next };
  const intent: Intent = { ...span, epoch, name: request.nameOf(span, epoch), claimedAtMs: request.nowMs };
  return { kind: 'claimed', manifest: { ...manifest, epoch, intent }, intent };
}

/** The object of an intent is stored: it becomes a segment. null: another execution was first, or the claim is not ours. */
export function record(
  manifest: Manifest,
  intent: Intent,
  stored: { readonly bytes: number; readonly lastTime: string },
): Manifest | null {
  if (manifest.intent?.name !== intent.name) return null;
  const { first, next, name } = intent;
  return { ...manifest, intent: null, segments: withSegment(manifest, { first, next, name, ...stored }) };
}

/** In order. */
export function withSegment({ segments }: Manifest, segment: SegmentRef): SegmentRef[] {
  return [...segments, segment].sort((a, b) => a.first - b.first);
}

export function isRecorded({ segments }: Manifest, intent: Intent): boolean {
  return segments.some(({ name }) => name === intent.name);
}

/** The segment that holds the offset; else the first offset after it that one holds, null when none does. */
export function findSegment({ segments }: Manifest, offset: number): SegmentRef | { readonly nextReadable: number | null } {
  const at = segments.findIndex(({ next }) => next > offset);
  const found = segments[at];
  if (found === undefined) return { nextReadable: null };
  return found.first <= offset ? found : { nextReadable: found.first };
}

/** Segments that end before this offset are seen no more; one that reaches beyond it stays. Their objects go later. */
export function expireBefore(
  manifest: Manifest,
  offset: number,
  removeAtMs: number,
): { readonly manifest: Manifest; readonly expired: readonly SegmentRef[] } {
  const expired = manifest.segments.filter(({ next }) => next <= offset);
  if (expired.length === 0) return { manifest, expired };
  return {
    manifest: {
      ...manifest,
      segments: manifest.segments.slice(expired.length),
      // A merge of what is gone would bring it back.
      merge: manifest.merge !== null && manifest.merge.first < expired.at(-1)!.next ? null : manifest.merge,
      floor: Math.max(manifest.floor, expired.at(-1)!.next),
      leaving: [...manifest.leaving, ...leave(expired, removeAtMs)],
    },
    expired,
  };
}

/** Offset after the last segment whose records are all older than the time (RFC 3339, nine decimals, `Z`). */
export function offsetBefore({ segments }: Manifest, time: string): number {
  const stays = segments.findIndex(({ lastTime }) => lastTime >= time);
  return (stays < 0 ? segments : segments.slice(0, stays)).at(-1)?.next ?? 0;
}

function leave(segments: readonly SegmentRef[], removeAtMs: number): LeavingObject[] {
  return segments.map(({ name }) => ({ name, removeAtMs }));
}

export function dueToLeave({ leaving }: Manifest, nowMs: number): readonly string[] {
  return leaving.filter(({ removeAtMs }) => removeAtMs <= nowMs).map(({ name }) => name);
}

/** Their objects are removed. null: they were forgotten already. */
export function forgetLeft(manifest: Manifest, names: readonly string[]): Manifest | null {
  const leaving = manifest.leaving.filter(({ name }) => !names.includes(name));
  return leaving.length === manifest.leaving.length ? null : { ...manifest, leaving };
}

/** Neighbours are merged from so many on. */
const mergeNeighboursMin = 8;
const mergeNeighboursMax = 64;
/** Bytes of a small segment. By steps: else a growing one would be written again with every few small ones. */
const smallSteps = [16_384, 131_072, 1_048_576];

export interface MergeRequest {
  readonly recordsMax: number;
  readonly bytesMax: number;
  readonly nowMs: number;
  readonly nameOf: NameOf;
}

/** Claims a merge of small neighbours, or goes on with the one that is under way. null: there is nothing to merge. */
export function claimMerge(manifest: Manifest, request: MergeRequest): { manifest: Manifest; merge: Merge } | null {
  if (manifest.merge !== null) return { manifest, merge: manifest.merge };
  for (const smallBytes of smallSteps) {
    const run = findRun(manifest.segments, smallBytes, request);
    if (run === null) continue;
    const epoch = manifest.epoch + 1;
    const span = { first: run[0]!.first, next: run.at(-1)!.next };
    const merge: Merge = {
      ...span,
      epoch,
      name: request.nameOf(span, epoch),
      claimedAtMs: request.nowMs,
      sources: run.map(({ name }) => name),
    };
    return { manifest: { ...manifest, epoch, merge }, merge };
  }
  return null;
}

function findRun(
  segments: readonly SegmentRef[],
  smallBytes: number,
  { recordsMax, bytesMax }: MergeRequest,
): readonly SegmentRef[] | null {
  let run: SegmentRef[] = [];
  let bytes = 0;
  for (const segment of segments) {
    const isSmall = segment.bytes <= smallBytes;
    const joins =
      isSmall &&
      run.length < mergeNeighboursMax &&
      bytes + segment.bytes <= bytesMax &&
      segment.next - (run[0]?.first ?? segment.first) <= recordsMax &&
      (run.length === 0 || run.at(-1)!.next === segment.first);
    if (!joins && run.length >= mergeNeighboursMin) return run;
    run = joins ? [...run, segment] : isSmall ? [segment] : [];
    bytes = joins ? bytes + segment.bytes : isSmall ? segment.bytes : 0;
  }
  return run.length >= mergeNeighboursMin ? run : null;
}

/** The merged object is stored: it takes the place of its sources. null: another execution was first, or they changed. */
export function recordMerge(
  manifest: Manifest,
  merge: Merge,
  stored: { readonly bytes: number; readonly lastTime: string },
  removeAtMs: number,
): Manifest | null {
  if (manifest.merge?.name !== merge.name) return null;
  const at = manifest.segments.findIndex(({ name }) => name === merge.sources[0]);
  const sources = manifest.segments.slice(at, at + merge.sources.length);
  if (at < 0 || sources.some(({ name }, i) => name !== merge.sources[i])) return { ...manifest, merge: null };
  const { first, next, name } = merge;
  return {
    ...manifest,
    merge: null,
    segments: [
      ...manifest.segments.slice(0, at),
      { first, next, name, ...stored },
      ...manifest.segments.slice(at + sources.length),
    ],
    leaving: [...manifest.leaving, ...leave(sources, removeAtMs)],
  };
}

/**
 * First offset that stays hot by number and payload: the newest `maxRecords`, of these the newest whose payload is at most
 * `maxBytes` together. `sizes`: payload bytes of the records from `hot` on, or null where nothing can be over.
 */
export function keepFrom(log: { hot: number; next: number }, bounds: HotBounds, sizes: readonly number[] | null): number {
  const byRecords = Math.max(log.hot, log.next - bounds.maxRecords);
  if (sizes === null) return byRecords;
  let keep = log.next;
  for (let bytes = 0; keep > byRecords; keep--) {
    bytes += sizes[keep - 1 - log.hot] ?? 0;
    if (bytes > bounds.maxBytes) break;
  }
  return keep;
}

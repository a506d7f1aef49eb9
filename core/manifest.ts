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
  /** Raised by every claim. */
  readonly epoch: number;
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
}

export const newManifest: Manifest = { segments: [], intent: null, epoch: 0 };

/** A manifest is one value of at most a megabyte. */
export const segmentsMax = 4_000;

/** Offset after the last cold record; null: none is cold. */
export function coldEnd({ segments }: Manifest): number | null {
  return segments.at(-1)?.next ?? null;
}

export type Claimed =
  | { readonly kind: 'claimed'; readonly manifest: Manifest; readonly intent: Intent }
  /** An earlier flush is not finished: its range, under its name. */
  | { readonly kind: 'resumed'; readonly intent: Intent }
  /** Nothing is due that is not cold already. */
  | { readonly kind: 'nothing' };

/** Claims what stands before `before` and is hot only, at most `recordsMax` records. */
export function claim(
  manifest: Manifest,
  request: { hot: number; before: number; recordsMax: number; nameOf: (span: Span, epoch: number) => string },
): Claimed {
  if (manifest.intent !== null) return { kind: 'resumed', intent: manifest.intent };
  const first = Math.max(request.hot, coldEnd(manifest) ?? 0);
  const next = Math.min(request.before, first + request.recordsMax);
  if (first >= next) return { kind: 'nothing' };
  const epoch = manifest.epoch + 1;
  const span = { first, next };
  const intent: Intent = { ...span, epoch, name: request.nameOf(span, epoch) };
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
  return { ...manifest, intent: null, segments: [...manifest.segments, { first, next, name, ...stored }] };
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

/** Entries that end before this offset are gone from sight; one that reaches beyond it stays. Their objects go later. */
export function forgetBefore(manifest: Manifest, offset: number): { manifest: Manifest; forgotten: readonly SegmentRef[] } {
  const forgotten = manifest.segments.filter(({ next }) => next <= offset);
  return { manifest: { ...manifest, segments: manifest.segments.slice(forgotten.length) }, forgotten };
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

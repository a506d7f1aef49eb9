import type { Intent } from './manifest.ts';

/** What the steps of a sweep tell each other. */

export interface SweepPlace {
  /** Name. */
  readonly topic: string;
  readonly partition: number;
}

export interface SweepFlush extends SweepPlace {
  readonly intent: Intent;
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
  | { readonly kind: 'purge'; readonly before: number };

/** What a sweep did in one partition. */
export interface Swept {
  readonly partition: number;
  /** Segments that were stored. */
  readonly segments: number;
  /** Records that left the hot window. */
  readonly records: number;
}

import type { Preflight } from './approval.ts';
import type { Owner } from './consumer.ts';
import type { LaneRange } from './lanes.ts';
import type { Problem } from './problems.ts';
import type { ReplayPlan } from './plan.ts';
import type { ReplayTarget } from './target.ts';

/** What describing found: everything the run pins before its first batch, and the closed owner it takes over from. */
export type Described =
  | { readonly kind: 'refused'; readonly problems: readonly Problem[]; readonly searchAttributes: boolean }
  | { readonly kind: 'described'; readonly description: Description; readonly predecessor: Owner | null };

/** A description together with what the destination says, for an approval. */
export type Rehearsed =
  { readonly kind: 'refused'; readonly problems: readonly Problem[]; readonly searchAttributes: boolean } | Rehearsal;

export interface Rehearsal {
  readonly kind: 'rehearsed';
  readonly description: Description;
  readonly predecessor: Owner | null;
  readonly preflight: readonly Preflight[];
  /** Hash over what is approved; see core/approval.ts. */
  readonly fingerprint: string;
}

export interface Description {
  readonly plan: ReplayPlan;
  readonly target: ReplayTarget;
  readonly range: Range;
  /** Of a topic: by partition. `range` and `cursor` are then places of all of them together, 1 the first. */
  readonly lanes?: readonly LaneRange[];
  /** Where the run starts: `range.first`, or the floor of an unfinished run of the same plan. */
  readonly cursor: number;
  readonly resumed: boolean;
  /** What makes it the same replay: hash over stream, scope, boundaries, durable, target and key. */
  readonly fingerprint: string;
  /** Temporal cluster id, part of the owner of the durable. */
  readonly cluster: string;
  readonly families: readonly string[];
  readonly sink: { readonly type: string; readonly key: string; readonly duplicatesSafe: boolean };
  readonly count: RangeCount;
  readonly warnings: readonly string[];
  /** Whether the server knows our search attributes: an unknown one would block the workflow task. */
  readonly searchAttributes: boolean;
}

/** The pinned boundaries, resolved to sequences once. */
export interface Range {
  readonly incarnation: string;
  readonly first: number;
  /** Inclusive; null: until the stream is drained. */
  readonly last: number | null;
  /** An end time still in the future: records at or after it end the run. Decimal nanoseconds; null when resolved. */
  readonly endTimeNanos: string | null;
  /** The stream's last sequence when it was described: the far end for progress when `last` is null. */
  readonly streamLast: number;
}

export interface RangeCount {
  readonly messages: number;
  readonly bytes: number;
  /** False: an estimate. */
  readonly exact: { readonly messages: boolean; readonly bytes: boolean };
  /** Sequences of the range that hold no message at all. */
  readonly gaps: number | null;
}

import type { Approved } from './approval.ts';
import type { ChildTally } from './children.ts';
import type { Description } from './description.ts';
import type { LaneProgress } from './lanes.ts';
import type { Counts, ReplayState } from './progress.ts';
import type { Reject } from './record.ts';

export type StopReason = 'dry_run' | 'end_of_range' | 'max_messages' | 'drained' | 'canceled' | 'failed';

export interface BatchSummary {
  /** Of a topic. */
  readonly partition?: number;
  readonly first: number;
  readonly last: number;
  readonly records: number;
  readonly duplicate: number;
  readonly rejected: number;
  readonly pull_ms: number;
  readonly write_ms: number;
  /** Seconds from the start of the run to the settling of this batch. Absent in runs of older code. */
  readonly at_seconds?: number | undefined;
}

/** The report of a run: file, workflow result and query `report`. Holds no payload, header, address, path or credential. */
export interface Report {
  readonly schema_version: 1;
  readonly state: ReplayState;
  readonly stop_reason: StopReason | null;
  readonly plan: {
    readonly stream: string;
    readonly durable_consumer: string;
    readonly subject_families: readonly string[];
    readonly max_messages: number;
    readonly window: string | null;
    readonly fingerprint: string;
    readonly resumed: boolean;
  };
  /** null: the plan asked for none, or it was not given. */
  readonly approval: Approved | null;
  readonly sink: {
    readonly type: string;
    readonly key: string;
    readonly duplicates_safe: boolean;
    readonly dead_letter: boolean;
  };
  readonly counts: Counts;
  /** Of a fan-out: counts by child, and what optional ones still miss. */
  readonly children?: readonly ChildTally[];
  readonly range: {
    readonly incarnation: string;
    readonly first: number;
    readonly last: number | null;
    readonly cursor: number;
    /** Messages of the scope when the run was described. */
    readonly count: number;
    readonly count_exact: boolean;
    readonly bytes: number;
    readonly bytes_exact: boolean;
    readonly not_reached: number | null;
  };
  /** Of a topic: by partition, in offsets. `range` counts the places of all of them together, 1 the first. */
  readonly lanes?: readonly LaneProgress[];
  readonly warnings: readonly string[];
  readonly rejects: readonly Reject[];
  readonly rejects_not_listed: number;
  readonly batches: readonly BatchSummary[];
  readonly batches_not_listed: number;
  readonly timings: {
    readonly started_at: string;
    readonly ended_at: string | null;
    readonly total_seconds: number;
    readonly pull_seconds: number;
    readonly write_seconds: number;
    readonly paused_seconds: number;
    readonly blocked_seconds: number;
    readonly records_per_second: number;
  };
}

/** Lists of a report are cut to these lengths, so that it stays below 256 KiB and the carried state below 64 KiB. */
export const reportRejectsMax = 500;
export const reportBatchesMax = 200;

/** Timestamps with milliseconds, as everywhere in reports and progress. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function sinkSummary(description: Description): Report['sink'] {
  return {
    type: description.sink.type,
    key: description.sink.key,
    duplicates_safe: description.sink.duplicatesSafe,
    dead_letter: description.target.dead_letter !== null,
  };
}

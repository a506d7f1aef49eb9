import type { AwaitedApproval } from './approval.ts';
import type { ChildTally } from './children.ts';
import type { FaultCode } from './errors.ts';
import type { LaneProgress } from './lanes.ts';
import type { Reject } from './record.ts';

/** Where a run stands. `refused` and everything after it is final. */
export type ReplayState =
  | 'describing'
  | 'rehearsed'
  | 'awaiting_approval'
  | 'running'
  | 'paused'
  | 'blocked'
  | 'cancelling'
  | 'completed'
  | 'canceled'
  | 'failed'
  | 'refused';

/**
 * What became of the records. After a run: pulled = written + duplicate + skipped + rejected, and every reject is
 * dead-lettered before its ACK. The names are the same in progress, report, metrics and docs.
 */
export interface Counts {
  /** Records received, redelivered ones included. */
  readonly pulled: number;
  readonly written: number;
  /** The sink had them already. */
  readonly duplicate: number;
  /** Redelivered below the cursor and settled before, or left out by a rule of the target: only ACKed. */
  readonly skipped: number;
  /** Refused by the sink for good. */
  readonly rejected: number;
  readonly dead_lettered: number;
  /** Dead letters whose body was gone from the stream: stored without it. */
  readonly lost_body: number;
  readonly acked: number;
  /** Counted when the run began, deleted from the stream before the run reached them. */
  readonly vanished: number;
  /** Sequences of the range that held no message when the run began. */
  readonly gaps: number;
  /** Payload bytes pulled. */
  readonly bytes: number;
}

export const noCounts: Counts = {
  pulled: 0,
  written: 0,
  duplicate: 0,
  skipped: 0,
  rejected: 0,
  dead_lettered: 0,
  lost_body: 0,
  acked: 0,
  vanished: 0,
  gaps: 0,
  bytes: 0,
};

export function addCounts(counts: Counts, more: Partial<Counts>): Counts {
  const sum: Record<string, number> = { ...counts };
  for (const [name, value] of Object.entries(more)) sum[name]! += value;
  return sum as unknown as Counts;
}

/** Why a plan is `blocked` and what a person does about it. */
export interface BlockedBy {
  readonly code: FaultCode;
  readonly detail: string | null;
  /** RFC 3339. */
  readonly since: string;
  readonly next: string;
  /** RFC 3339; null: only after `resume`. */
  readonly retry_at: string | null;
}

/** Why the next batch has not begun, though nothing is wrong. */
export interface Waiting {
  readonly for: 'rate_limit' | 'original_pace' | 'allowed_hours';
  /** RFC 3339. */
  readonly until: string;
}

/** Answer of the query `progress`. */
export interface Progress {
  readonly state: ReplayState;
  readonly problem: BlockedBy | null;
  readonly counts: Counts;
  readonly range: { readonly first: number; readonly last: number | null };
  readonly cursor: number;
  /** Records a second over the last batches. */
  readonly rate: number;
  readonly rate_limit_per_second: number | null;
  readonly rate_limit_bytes_per_second: number | null;
  /** null: as fast as it goes. */
  readonly pace: 'original' | null;
  readonly pace_factor: number | null;
  /** Between two batches; null: at work. */
  readonly waiting: Waiting | null;
  /** 0 to 100; null while the far end is unknown. */
  readonly percent: number | null;
  readonly secondsLeft: number | null;
  /** What awaits an approval; null: nothing does. */
  readonly approval: AwaitedApproval | null;
  /** Of a fan-out. */
  readonly children?: readonly ChildTally[];
  /** Of a topic: by partition, in offsets. */
  readonly lanes?: readonly LaneProgress[];
  /** The last ones, or those that block the plan; at most 20. */
  readonly rejects: readonly Reject[];
}

/** Rejects that one answer of `progress` shows. */
export const progressRejectsMax = 20;

/** Before the plan has been described. */
export const noProgress: Omit<Progress, 'state' | 'problem'> = {
  counts: noCounts,
  range: { first: 0, last: null },
  cursor: 0,
  rate: 0,
  rate_limit_per_second: null,
  rate_limit_bytes_per_second: null,
  pace: null,
  pace_factor: null,
  waiting: null,
  percent: null,
  secondsLeft: null,
  approval: null,
  rejects: [],
};

export interface Rate {
  readonly percent: number | null;
  readonly secondsLeft: number | null;
}

interface Position {
  readonly cursor: number;
  readonly first: number;
  /** Inclusive far end of the range. */
  readonly farEnd: number;
  readonly settled: number;
  readonly maxMessages: number;
  /** Records expected in the range; null when unknown. */
  readonly expected: number | null;
  readonly ratePerSecond: number;
}

/** How far a run is. By records where their number is known, else by sequences. */
export function progressOf(position: Position): Rate {
  const goal = Math.min(position.expected ?? Infinity, position.maxMessages);
  const bySequenceDone = position.cursor - position.first;
  const bySequenceLeft = Math.max(0, position.farEnd + 1 - position.cursor);
  const bySequence =
    position.farEnd < position.first ? 1 : (position.cursor - position.first) / (position.farEnd + 1 - position.first);
  const byRecord = goal === 0 ? 1 : position.settled / goal;
  const done = Math.min(1, Math.max(0, position.expected === null ? Math.max(bySequence, byRecord) : byRecord));
  // Without an exact count, the sequences ahead are taken to hold as many records as those behind.
  const guessed = bySequenceDone > 0 ? Math.ceil((position.settled * bySequenceLeft) / bySequenceDone) : null;
  const toGoal = Math.max(0, goal - position.settled);
  const left = position.expected !== null || guessed === null ? (goal === Infinity ? null : toGoal) : Math.min(guessed, toGoal);
  return {
    percent: Math.floor(done * 1000) / 10,
    secondsLeft: left === null || position.ratePerSecond <= 0 ? null : Math.ceil(left / position.ratePerSecond),
  };
}

import type { ChildTally } from './children.ts';
import type { Owner } from './consumer.ts';
import type { Span } from './group.ts';
import type { Due, Stretch } from './pacing.ts';
import type { Reject } from './record.ts';
import type { Report } from './report.ts';
import type { Receipt } from './receipt.ts';
import type { ReplayTarget } from './target.ts';
import type { LastSuccess } from './window.ts';

/** Inputs and results of the durable steps: what crosses Temporal's history. Numbers and short strings only, never records. */

export interface ReplayRequest {
  readonly plan: unknown;
  /** The target document, or the name of a file in the worker's targets folder. */
  readonly target: unknown;
}

export interface DescribeRequest extends ReplayRequest {
  /** First run of the workflow chain that asks: an owner is never blocked by itself. */
  readonly firstRunId: string;
  /** RFC 3339: the time for which a Schedule meant this run, else its start. Absent in runs of older code. */
  readonly at?: string;
  /** Where the last successful run of the same Schedule stopped. */
  readonly lastSuccess?: LastSuccess | null;
}

export interface WriteReportRequest {
  /** Relative to the report root; ends in .json or .md. */
  readonly file: string;
  readonly report: Report;
}

/** The replay that a step works for. */
export interface ReplayRef {
  readonly stream: string;
  readonly incarnation: string;
  readonly durable: string;
  readonly filters: readonly string[];
  readonly owner: Owner;
  readonly predecessor: Owner | null;
  /** Of a topic: whose partition the stream is. */
  readonly topic?: { readonly name: string; readonly partition: number };
}

export interface DeliverRequest {
  readonly replay: ReplayRef;
  readonly target: ReplayTarget;
  /** Next unsettled sequence: nothing below it is written again. */
  readonly cursor: number;
  /** Records of the range were settled before, by this run or by the one it goes on for. */
  readonly begun: boolean;
  readonly consumerSequence: number | null;
  /** Inclusive end; null: none. */
  readonly last: number | null;
  readonly endTimeNanos: string | null;
  /** Up to this sequence records were counted when the run began. */
  readonly countedTo: number;
  readonly maxRecords: number;
  /** Size of batches that adapts to how long they take, and goes on adapting in further batches; null: the plan's own size holds. */
  readonly adaptiveRecords: number | null;
  readonly maxBytes: number;
  readonly maxAckPending: number;
  /** How long to wait for a first record, milliseconds. */
  readonly waitMs: number;
  /** Most records that the step may deliver after its first batch, in further batches of up to `maxRecords`; 0: none. */
  readonly furtherRecords: number;
  /** No further batch begins once the step has taken this long, milliseconds. */
  readonly furtherMs: number;
  /** ACK that rides with this step: of the batch before, settled already. */
  readonly acknowledge: Receipt | null;
  /** With the pace of the stream: what is due. Absent: everything. */
  readonly due?: Due;
  /** Rest of the reject budget. */
  readonly rejectsAllowed: number;
  /** Pinned by the first batch; null before it, and for sinks that have no data root. */
  readonly dataRoot: string | null;
}

/** What one step has pulled and written: its last batch, and what is certain about those before it. */
export interface Delivery {
  readonly receipt: Receipt | null;
  /** What became of the ACK that rode with this step; null when there was none. */
  readonly acknowledged: Acknowledged | null;
  /** Batches that the step delivered before this one; null: none. */
  readonly earlier: EarlierBatches | null;
  readonly written: number;
  readonly duplicate: number;
  readonly skipped: number;
  /** By child, of a fan-out. */
  readonly children?: readonly ChildTally[];
  /** Payload bytes pulled. */
  readonly bytes: number;
  /** At most the rest of the budget plus one. */
  readonly rejects: readonly Reject[];
  /** All rejects of the batch, those over the budget included. */
  readonly rejected: number;
  readonly drift: boolean;
  /** Next unsettled sequence once this batch is settled. */
  readonly cursor: number;
  /** null: put back before the next pull. */
  readonly consumerSequence: number | null;
  readonly end: 'more' | 'drained' | 'end_of_range';
  /** The durable was put back in this step, which acknowledged everything that was deferred when the step began. */
  readonly putBack: boolean;
  /** Of the records settled by this batch, those that were counted when the run began. */
  readonly counted: number;
  readonly streamLast: number;
  /** Of a topic: offsets that the log no longer holds, which the cursor passed. */
  readonly gone?: Span;
  readonly dataRoot: string | null;
  /** Only where not everything is due. */
  readonly stretch?: Stretch;
  /** Pulled before it was asked for. Absent: an older worker did not tell. */
  readonly pulledAhead?: boolean;
  readonly pullMs: number;
  readonly writeMs: number;
  /** The size that the last batch was allowed. Absent: it does not adapt. */
  readonly adaptiveRecords?: number;
}

/**
 * Batches of which the destination refused nothing, so that nothing stood between their write and their ACK. The ACK of each ran
 * beside the delivery of the next, as between steps.
 */
export interface EarlierBatches {
  readonly acknowledged: Acknowledged;
  /** Next unsettled sequence after them. */
  readonly cursor: number;
  /** Of a fan-out: all of them together. */
  readonly children?: readonly ChildTally[];
  readonly batches: readonly EarlierBatch[];
}

export type EarlierBatch = Pick<
  Delivery,
  'written' | 'duplicate' | 'skipped' | 'bytes' | 'counted' | 'pulledAhead' | 'pullMs' | 'writeMs'
> & {
  readonly first: number;
  readonly last: number;
};

export interface DeadLetterRequest {
  readonly replay: ReplayRef;
  readonly target: ReplayTarget;
  readonly rejects: readonly Reject[];
}

export interface DeadLettered {
  readonly stored: number;
  readonly lostBodies: number;
}

export interface Acknowledged {
  /** Records whose ACK the server confirmed; 0 when deferred. */
  readonly acked: number;
  /** Records whose ACK the next put-back settles. */
  readonly deferred: number;
}

export interface CloseRequest {
  readonly replay: ReplayRef;
  readonly cursor: number;
  readonly maxAckPending: number;
  /** Some batch was delivered: a missing durable was ours. */
  readonly begun: boolean;
  /** `delete`: the run is complete. `keep_completed`: complete, but the plan keeps its durable. `keep`: it may go on later. */
  readonly durable: 'delete' | 'keep_completed' | 'keep';
  /** Inclusive range in which to count what was not reached; null: nothing to count. */
  readonly notReached: { readonly first: number; readonly last: number } | null;
}

export interface Closed {
  /** Everything below the cursor is acknowledged. */
  readonly settled: boolean;
  readonly notReached: number;
}

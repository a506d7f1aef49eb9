import { defineSearchAttributeKey } from '@temporalio/common';
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { Approval, Approved } from '../core/approval.ts';
import type { ChildTally } from '../core/children.ts';
import type { ReplayPlan } from '../core/plan.ts';
import type { Progress } from '../core/progress.ts';
import type { Report } from '../core/report.ts';
import type { Decision } from '../core/run.ts';
import type { ReplayTarget } from '../core/target.ts';

/** What others say to a running replay. Names are fixed: the Temporal CLI and UI use them too. */

export const workflowType = 'replayPlan';
/** The drain of a spool: takes the same signals, updates and queries. */
export const drainType = 'drainSpool';
export const reconcileType = 'reconcileTopics';
/** Of one topic; null: of all. */
export function reconcileWorkflowId(topic: string | null): string {
  return topic === null ? 'reconcile-topics' : `reconcile:${topic}`;
}
export const taskQueue = 'durable-replay';

/** Who asked and why; both optional, so that the signals work with no input at all. */
export interface Request {
  readonly by?: string;
  readonly reason?: string;
}

export const pauseSignal = defineSignal<[Request?]>('pause');
export const resumeSignal = defineSignal<[Request?]>('resume');
export const cancelSignal = defineSignal<[Request?]>('cancel');

export interface SetRate {
  /** Records a second; null lifts the limit. What is absent stays as it is. */
  readonly perSecond?: number | null;
  /** Payload bytes a second; null lifts the limit. */
  readonly bytesPerSecond?: number | null;
  /** With the pace of the stream: how many times faster than in it. */
  readonly factor?: number;
  /** null lifts the allowed hours for the rest of this replay. */
  readonly allowedHours?: null;
}
export const setRateUpdate = defineUpdate<SetRate, [SetRate]>('setRate');

export interface Decide {
  /** `dead-letter`, `skip` or `retry`. */
  readonly decision: Decision;
}
export const decideUpdate = defineUpdate<Decide, [Decide]>('decide');

export const approveUpdate = defineUpdate<Approved, [Approval]>('approve');

export const progressQuery = defineQuery<Progress>('progress');
/** What optional children of a fan-out still miss, and with what plan and target it is brought. */
export interface OptionalFailures {
  readonly plan: ReplayPlan;
  readonly target: ReplayTarget;
  readonly incarnation: string;
  readonly children: readonly ChildTally[];
}
export const optionalFailuresQuery = defineQuery<OptionalFailures | null>('optionalFailures');
export const reportQuery = defineQuery<Report | null>('report');

/** Failure types of a closed run: what the CLI turns into its exit status. */
export const refusedFailure = 'ReplayRefused';

export const searchAttributes = {
  stream: defineSearchAttributeKey('ReplayStream', 'KEYWORD'),
  state: defineSearchAttributeKey('ReplayState', 'KEYWORD'),
  sink: defineSearchAttributeKey('ReplaySink', 'KEYWORD'),
  rejected: defineSearchAttributeKey('ReplayRejected', 'INT'),
} as const;

export const searchAttributeNames: readonly string[] = Object.values(searchAttributes).map((key) => key.name);

/** Workflow ids of `replay-stream`. Other ids work too: the fence is the owner in the durable's metadata. */
export function replayWorkflowId(plan: {
  readonly stream: string;
  readonly durable_consumer: string;
  readonly dry_run: boolean;
}): string {
  return `${plan.dry_run ? 'replay-dry' : 'replay'}:${plan.stream}:${plan.durable_consumer}`;
}

export function drainWorkflowId(spool: string, dryRun: boolean): string {
  return `${dryRun ? 'spool-drain-dry' : 'spool-drain'}:${spool}`;
}

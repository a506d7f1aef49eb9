import { counted } from './problems.ts';
import type { Owner } from './consumer.ts';
import type { FaultCode } from './errors.ts';
import type { Pace } from './pacing.ts';
import {
  addCounts,
  noCounts,
  progressOf,
  progressRejectsMax,
  type Counts,
  type Progress,
  type ReplayState,
} from './progress.ts';
import type { Reject } from './record.ts';
import { isoTime, reportBatchesMax, reportRejectsMax, type BatchSummary, type Report, type StopReason } from './report.ts';
import type { Decision, Situation } from './run.ts';
import type { DeadLettered } from './steps.ts';
import type { ReplayTarget } from './target.ts';

/** The drain of a spool: the state of its run, and the pure decisions over it. See core/run.ts, its model. */

export interface DrainRequest {
  /** A target document whose sink is a spool, or the name of a file in the worker's targets folder. */
  readonly spool: unknown;
  /** Where its records go: a target document, or such a name. */
  readonly target: unknown;
  readonly drain?: unknown;
}

export interface DrainOptions {
  readonly dry_run: boolean;
  readonly batch_size: number;
  readonly max_rejects: number;
  readonly rate_limit_per_second: number | null;
  readonly report_file: string | null;
}

export interface DrainDescription {
  readonly spool: ReplayTarget['sink'];
  /** What the spool is called in reports and records. */
  readonly name: string;
  readonly target: ReplayTarget;
  readonly options: DrainOptions;
  /** What it held when it was described. */
  readonly records: number;
  readonly bytes: number;
  readonly cluster: string;
  readonly warnings: readonly string[];
  readonly searchAttributes: boolean;
}

/** The drain that a step works for. */
export interface DrainRef {
  readonly spool: ReplayTarget['sink'];
  readonly name: string;
  readonly target: ReplayTarget;
  readonly owner: Omit<Owner, 'fingerprint'>;
  /** Pinned by the first batch; null before it. */
  readonly dataRoot: string | null;
}

export interface DrainBatchRequest {
  readonly drain: DrainRef;
  /** The run has settled records before. */
  readonly begun: boolean;
  readonly maxRecords: number;
  /** These packs once more; null: the next ones. */
  readonly packs: readonly number[] | null;
  readonly rejectsAllowed: number;
}

/** Whose record it was: of a spool, sequences alone do not say. */
export interface DrainReject extends Reject {
  readonly stream: string;
  readonly incarnation: string;
}

export interface DrainedBatch {
  /** Empty: the spool is. */
  readonly packs: readonly number[];
  readonly written: number;
  readonly duplicate: number;
  readonly bytes: number;
  readonly rejects: readonly DrainReject[];
  readonly rejected: number;
  readonly drift: boolean;
  /** Damaged or foreign entries that were put aside. */
  readonly setAside: number;
  /** Records that the spool held when this batch was taken; null: not looked at. */
  readonly left: number | null;
  readonly dataRoot: string;
  readonly takeMs: number;
  readonly writeMs: number;
}

export interface DrainLettersRequest {
  readonly drain: DrainRef;
  readonly packs: readonly number[];
  readonly rejects: readonly DrainReject[];
}

export interface RemoveDrainedRequest {
  readonly drain: DrainRef;
  readonly packs: readonly number[];
}

export interface DrainState {
  readonly description: DrainDescription;
  readonly owner: DrainRef['owner'];
  readonly startedMs: number;
  counts: Counts;
  settled: number;
  /** Records still to come, as far as known. */
  left: number;
  setAside: number;
  rejectsAllowed: number;
  driftAccepted: boolean;
  /** What an operator decided about the refused records of these packs; null again once they are settled. */
  decided: { readonly decision: 'dead-letter' | 'skip'; readonly packs: readonly number[]; readonly records: number } | null;
  isEmpty: boolean;
  dataRoot: string | null;
  pace: Pace;
  rejects: Reject[];
  batches: BatchSummary[];
  batchesTotal: number;
  recent: { readonly endedMs: number; readonly records: number }[];
  warnings: string[];
  takeMs: number;
  writeMs: number;
  pausedMs: number;
  blockedMs: number;
}

const recentMax = 10;

export function startDrain(description: DrainDescription, owner: DrainRef['owner'], nowMs: number): DrainState {
  return {
    description,
    owner,
    startedMs: nowMs,
    counts: noCounts,
    settled: 0,
    left: description.records,
    setAside: 0,
    rejectsAllowed: description.options.max_rejects,
    driftAccepted: false,
    decided: null,
    isEmpty: false,
    dataRoot: null,
    pace: { dueMs: nowMs, lateMs: 0 },
    rejects: [],
    batches: [],
    batchesTotal: 0,
    recent: [],
    warnings: [...description.warnings],
    takeMs: 0,
    writeMs: 0,
    pausedMs: 0,
    blockedMs: 0,
  };
}

export function drainRef({ description, owner, dataRoot }: DrainState): DrainRef {
  const { spool, name, target } = description;
  return { spool, name, target, owner, dataRoot };
}

export function nextBatch(run: DrainState, maxRecords: number): DrainBatchRequest {
  return {
    drain: drainRef(run),
    begun: run.settled > 0,
    maxRecords,
    packs: run.decided?.packs ?? null,
    rejectsAllowed: run.rejectsAllowed + (run.decided?.records ?? 0),
  };
}

/** What stands between a written batch and its dead letters; null: nothing. */
export function drainObjection(run: DrainState, batch: DrainedBatch): FaultCode | null {
  if (batch.rejects.length === 0 || run.decided !== null) return null;
  if (run.description.target.dead_letter === null) return 'dead_letter_not_configured';
  if (batch.drift && !run.driftAccepted) return 'drift';
  return batch.rejects.length > run.rejectsAllowed ? 'reject_budget' : null;
}

/** An operator said `resume` (null) to an objection, or decided: the same packs are written once more. */
export function overruleDrain(run: DrainState, code: FaultCode, batch: DrainedBatch, decision: Decision | null): void {
  if (decision === 'dead-letter' || decision === 'skip') {
    run.decided = { decision, packs: batch.packs, records: batch.written + batch.duplicate + batch.rejected };
  } else if (decision === null && code === 'reject_budget') {
    run.rejectsAllowed += Math.max(1, run.description.options.max_rejects);
  } else if (decision === null && code === 'drift') run.driftAccepted = true;
}

/** Those that become dead letters. */
export function lettersOf(run: DrainState, batch: DrainedBatch): readonly DrainReject[] {
  return run.decided?.decision === 'skip' ? [] : batch.rejects;
}

/** The batch is in the target, its rejects are dead letters, and the spool no longer holds it. */
export function settleDrained(run: DrainState, batch: DrainedBatch, letters: DeadLettered, nowMs: number): void {
  run.isEmpty = batch.packs.length === 0;
  run.setAside += batch.setAside;
  run.dataRoot = batch.dataRoot;
  const rejected = batch.rejects.length;
  const records = batch.written + batch.duplicate + rejected;
  run.left = Math.max(0, (batch.left ?? run.left) - records);
  if (run.isEmpty) return;
  const { written, duplicate, bytes } = batch;
  run.counts = addCounts(run.counts, {
    pulled: records,
    written,
    duplicate,
    rejected,
    dead_lettered: letters.stored,
    acked: records,
    bytes,
  });
  const isDecided = run.decided !== null;
  const skipped = run.decided?.decision === 'skip';
  if (!isDecided) run.rejectsAllowed -= rejected;
  if (skipped) run.warnings.push(`Skipped by an operator's decision, without a dead letter: ${counted(rejected, 'record')}.`);
  run.driftAccepted = false;
  run.decided = null;
  remember(run, { ...batch, rejects: batch.rejects.map((reject) => compact(reject, skipped)) }, { records, nowMs });
}

function compact({ sequence, time, code, field, bytes }: DrainReject, skipped: boolean): Reject {
  return {
    sequence,
    time,
    code,
    ...(field === undefined ? {} : { field }),
    ...(bytes === undefined ? {} : { bytes }),
    ...(skipped ? { decision: 'skip' as const } : {}),
  };
}

interface Remembered extends Omit<DrainedBatch, 'rejects'> {
  readonly rejects: readonly Reject[];
}

function remember(
  run: DrainState,
  batch: Remembered,
  { records, nowMs }: { readonly records: number; readonly nowMs: number },
): void {
  run.takeMs += batch.takeMs;
  run.writeMs += batch.writeMs;
  run.rejects.push(...batch.rejects.slice(0, Math.max(0, reportRejectsMax - run.rejects.length)));
  run.batchesTotal++;
  run.recent.push({ endedMs: nowMs, records });
  if (run.recent.length > recentMax) run.recent.shift();
  run.batches.push({
    first: run.settled + 1,
    last: run.settled + records,
    records,
    duplicate: batch.duplicate,
    rejected: batch.rejects.length,
    pull_ms: batch.takeMs,
    write_ms: batch.writeMs,
  });
  if (run.batches.length > reportBatchesMax) run.batches.splice(reportBatchesMax / 2, 1);
  run.settled += records;
}

function recentRate(run: DrainState): number {
  const [first, last] = [run.recent[0], run.recent.at(-1)];
  if (first === undefined || last === undefined) return 0;
  const alone = run.recent.length === 1;
  const since = alone ? run.startedMs : first.endedMs;
  const records = run.recent.slice(alone ? 0 : 1).reduce((sum, batch) => sum + batch.records, 0);
  return last.endedMs > since ? Math.round((records * 10_000) / (last.endedMs - since)) / 10 : 0;
}

export function drainProgress(run: DrainState, { state, problem, limits, waiting }: Situation): Progress {
  const rate = recentRate(run);
  const total = run.settled + run.left;
  const position = progressOf({
    cursor: run.settled + 1,
    first: 1,
    farEnd: total,
    settled: run.settled,
    maxMessages: Infinity,
    expected: total,
    ratePerSecond: rate,
  });
  const ended = state === 'completed';
  return {
    state,
    problem,
    counts: run.counts,
    range: { first: 1, last: total },
    cursor: run.settled + 1,
    rate,
    rate_limit_per_second: limits.perSecond,
    rate_limit_bytes_per_second: null,
    pace: null,
    pace_factor: null,
    waiting,
    percent: ended ? 100 : position.percent,
    secondsLeft: ended ? 0 : position.secondsLeft,
    approval: null,
    rejects: run.rejects.slice(-progressRejectsMax),
  };
}

/** The report of a replay, of which the range is the places in the order of the drain: 1 is what was taken first. */
export function drainReport(run: DrainState, state: ReplayState, reason: StopReason | null, nowMs: number): Report {
  const { description } = run;
  const seconds = (ms: number): number => Math.round(ms) / 1_000;
  const totalMs = nowMs - run.startedMs;
  const workingMs = totalMs - run.pausedMs - run.blockedMs;
  return {
    schema_version: 1,
    state,
    stop_reason: reason,
    plan: {
      stream: description.name,
      durable_consumer: description.name,
      subject_families: ['>'],
      max_messages: description.records,
      window: null,
      fingerprint: '',
      resumed: false,
    },
    sink: {
      type: description.target.sink.type,
      key: description.target.idempotency.key,
      duplicates_safe: true,
      dead_letter: description.target.dead_letter !== null,
    },
    approval: null,
    counts: run.counts,
    range: {
      incarnation: '',
      first: 1,
      last: run.settled + run.left,
      cursor: run.settled + 1,
      count: description.records,
      count_exact: true,
      bytes: description.bytes,
      bytes_exact: true,
      not_reached: run.left,
    },
    warnings: [...run.warnings, ...asideWarning(run.setAside)],
    rejects: run.rejects,
    rejects_not_listed: Math.max(0, run.counts.rejected - run.rejects.length),
    batches: run.batches,
    batches_not_listed: run.batchesTotal - run.batches.length,
    timings: {
      started_at: isoTime(run.startedMs),
      ended_at: reason === null ? null : isoTime(nowMs),
      total_seconds: seconds(totalMs),
      pull_seconds: seconds(run.takeMs),
      write_seconds: seconds(run.writeMs),
      paused_seconds: seconds(run.pausedMs),
      blocked_seconds: seconds(run.blockedMs),
      records_per_second: workingMs > 0 ? Math.round((run.settled * 1_000) / workingMs) : 0,
    },
  };
}

function asideWarning(setAside: number): string[] {
  if (setAside === 0) return [];
  return [
    `${setAside} damaged or foreign entries were set aside, in the folder "aside" of the spool; the worker log names them.`,
  ];
}

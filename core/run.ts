import { counted } from './problems.ts';
import type { Approved } from './approval.ts';
import { addTallies, type ChildTally } from './children.ts';
import type { Owner } from './consumer.ts';
import type { Description } from './description.ts';
import type { FaultCode } from './errors.ts';
import type { Hours } from './hours.ts';
import {
  goneText,
  laneNotReached,
  laneProgress,
  lanesEnd,
  mayWait,
  nextTurn,
  placesOf,
  startLane,
  type Lane,
  type LaneProgress,
  type LaneRange,
  type Place,
} from './lanes.ts';
import {
  ackPendingMin,
  adaptBatchRecords,
  batchRecordsInitial,
  dueBatchRecords,
  dueBy,
  furtherMsMax,
  idleWaitMs,
  isLimited,
  limitBatchBytes,
  limitBatchRecords,
  type Pace,
  type PaceLimits,
} from './pacing.ts';
import {
  addCounts,
  noCounts,
  progressOf,
  progressRejectsMax,
  type BlockedBy,
  type Counts,
  type Progress,
  type ReplayState,
  type Waiting,
} from './progress.ts';
import type { Receipt } from './receipt.ts';
import type { Reject } from './record.ts';
import {
  isoTime,
  reportBatchesMax,
  reportRejectsMax,
  sinkSummary,
  type BatchSummary,
  type Report,
  type StopReason,
} from './report.ts';
import type { Acknowledged, CloseRequest, Closed, DeadLettered, DeliverRequest, Delivery, ReplayRef } from './steps.ts';

/**
 * All that a run must remember, and the pure decisions over it. The workflow (workflows/replay-plan.ts) is a thin loop around
 * these functions; the same state is carried through continue-as-new.
 */
export interface RunState extends Place {
  readonly description: Description;
  readonly owner: Owner;
  readonly predecessor: Owner | null;
  readonly startedMs: number;
  /** null: the plan asks for none, or it is still awaited. */
  approval: Approved | null;

  /** Of a topic, in the order of the description's; each has a place of its own. */
  lanes?: readonly Lane[];
  /** Index of the lane whose turn it is. */
  lane?: number;
  /** The consumer sequence that the record at the cursor must have; null: put the durable back first. */
  consumerSequence: number | null;
  /** Records whose ACK was deferred: settled by the next put-back. */
  deferred: number;
  /** The batch that is settled, and whose ACK has not begun. */
  unacknowledged: Receipt | null;
  /** Records settled by this run, of all its continue-as-new links. */
  settled: number;
  /** Settled records that were counted when the run was described. */
  counted: number;
  counts: Counts;
  /** Of a fan-out; absent before its first batch. */
  children?: readonly ChildTally[];
  rejectsAllowed: number;
  /** Set by `resume` while blocked by drift: the next batch may be refused as a whole. */
  driftAccepted: boolean;
  /** What an operator decided about the refused records of the batch that blocked; null again once it is settled. */
  decided: Decided | null;
  dataRoot: string | null;
  batchRecords: number;
  pace: Pace;
  /** Of a plan with allowed hours; absent before it was looked at. */
  hours?: Hours;

  rejects: Reject[];
  batches: BatchSummary[];
  batchesTotal: number;
  recent: { endedMs: number; records: number }[];
  warnings: string[];
  /** Of a topic: gaps that it came upon. */
  goneSpans?: number;
  notReached: number | null;
  pullMs: number;
  writeMs: number;
  pausedMs: number;
  blockedMs: number;
}

/** `retry`: mended, try the batch again. The others settle its refused records, whatever the budget says. */
export type Decision = 'dead-letter' | 'skip' | 'retry';
export const decisions: readonly Decision[] = ['dead-letter', 'skip', 'retry'];

interface Decided {
  readonly decision: 'dead-letter' | 'skip';
  /** The last sequence that the operator had before him, and the number of records up to it. */
  readonly lastSequence: number;
  readonly records: number;
}

export function startRun(description: Description, owner: Owner, predecessor: Owner | null, nowMs: number): RunState {
  const { plan, range } = description;
  return {
    description,
    owner,
    predecessor,
    startedMs: nowMs,
    approval: null,
    cursor: description.cursor,
    consumerSequence: null,
    deferred: 0,
    unacknowledged: null,
    settled: 0,
    counted: 0,
    counts: { ...noCounts, gaps: description.count.gaps ?? 0 },
    rejectsAllowed: plan.max_rejects,
    driftAccepted: false,
    decided: null,
    dataRoot: null,
    batchRecords: plan.batch_size ?? batchRecordsInitial,
    pace: { dueMs: nowMs, lateMs: 0 },
    idleSinceMs: null,
    streamLast: range.streamLast,
    ...(description.lanes === undefined ? {} : { lanes: description.lanes.map(startLane), lane: description.lanes.length - 1 }),
    rangeEnded: range.last !== null && description.cursor > range.last,
    rejects: [],
    batches: [],
    batchesTotal: 0,
    recent: [],
    warnings: [...description.warnings],
    notReached: null,
    pullMs: 0,
    writeMs: 0,
    pausedMs: 0,
    blockedMs: 0,
  };
}

/** Why the run is over; null: it goes on. */
export function stopReason(run: RunState, nowMs: number): StopReason | null {
  const { plan } = run.description;
  const ended = run.lanes === undefined ? null : lanesEnd(run.lanes, plan.stop_after_idle_seconds * 1_000);
  if (run.rangeEnded || ended === 'end_of_range') return 'end_of_range';
  if (run.settled >= plan.max_messages) return 'max_messages';
  if (ended === 'drained') return 'drained';
  if (run.idleSinceMs !== null && nowMs - run.idleSinceMs >= plan.stop_after_idle_seconds * 1_000) return 'drained';
  return null;
}

/** Of a topic: chooses the partition that gives the next batch. */
export function takeTurn(run: RunState, nowMs: number): void {
  if (run.lanes === undefined) return;
  const idleMs = run.description.plan.stop_after_idle_seconds * 1_000;
  run.lane = nextTurn(run.lanes, run.lane ?? 0, { nowMs, idleMs });
}

/** Where the batch comes from that is delivered now. */
function placeOf(run: RunState): Place {
  return run.lanes?.[run.lane ?? 0] ?? run;
}

function laneRange({ description, lane }: Pick<RunState, 'description' | 'lane'>): LaneRange | null {
  return description.lanes?.[lane ?? 0] ?? null;
}

export function replayRef(run: RunState): ReplayRef {
  const { plan, range } = run.description;
  const lane = laneRange(run);
  return {
    stream: lane?.stream ?? plan.stream,
    incarnation: lane?.incarnation ?? range.incarnation,
    durable: lane === null ? plan.durable_consumer : laneDurable(plan.durable_consumer, lane.partition),
    filters: plan.subject_filters,
    owner: run.owner,
    predecessor: lane === null ? run.predecessor : lane.predecessor,
    ...(lane === null ? {} : { topic: { name: plan.topic!, partition: lane.partition } }),
  };
}

/** The durable consumer of one partition. */
export function laneDurable(durable: string, partition: number): string {
  return `${durable}-p${partition}`;
}

function maxAckPending(run: RunState): number {
  return ackPendingMin(run.description.plan.batch_size);
}

export function nextDelivery(run: RunState, limits: PaceLimits, nowMs: number): DeliverRequest {
  const { plan, target, range } = run.description;
  const { perSecond, bytesPerSecond, original } = limits;
  const paced = original === null ? run.batchRecords : dueBatchRecords(run.batchRecords, run.pace);
  const maxRecords = Math.min(limitBatchRecords(paced, perSecond), plan.max_messages - run.settled);
  const [place, lane] = [placeOf(run), laneRange(run)];
  return {
    replay: replayRef(run),
    target,
    cursor: place.cursor,
    begun: lane === null ? run.cursor > range.first : run.settled > 0 || run.description.cursor > range.first,
    consumerSequence: run.deferred > 0 ? null : run.consumerSequence,
    last: lane === null ? range.last : lane.last,
    endTimeNanos: range.endTimeNanos,
    countedTo: lane === null ? farEnd(run.description) : Math.min(lane.last ?? Infinity, lane.streamLast),
    maxRecords,
    adaptiveRecords: plan.batch_size === null ? run.batchRecords : null,
    maxBytes: limitBatchBytes(plan.batch_bytes, bytesPerSecond),
    maxAckPending: maxAckPending(run),
    waitMs:
      place.idleSinceMs === null || (run.lanes !== undefined && !mayWait(run.lanes))
        ? 0
        : idleWaitMs(nowMs - place.idleSinceMs, plan.stop_after_idle_seconds * 1_000),
    furtherRecords: goesFurther(run, limits) ? plan.max_messages - run.settled - maxRecords : 0,
    furtherMs: furtherMsMax,
    acknowledge: run.unacknowledged ?? null,
    ...(original === null || lane !== null ? {} : { due: dueBy(run.pace, original, nowMs) }),
    rejectsAllowed: run.rejectsAllowed + (run.decided?.records ?? 0),
    dataRoot: run.dataRoot,
  };
}

/** A limited run waits between its batches, and what an operator decided holds for one batch. */
function goesFurther(run: RunState, limits: PaceLimits): boolean {
  return run.lanes === undefined && !isLimited(limits) && run.decided == null && !run.driftAccepted;
}

/**
 * The request of a delivery that now begins. Until it has succeeded nobody knows what its attempts pulled, so whatever is
 * delivered next puts the durable back: numbers of a durable that a lost attempt put back may fit by chance. The same holds for
 * the ACK that rides with it: deferred until the delivery says otherwise.
 */
export function beginDelivery(run: RunState, limits: PaceLimits, nowMs: number): DeliverRequest {
  const request = nextDelivery(run, limits, nowMs);
  run.consumerSequence = null;
  run.deferred += takeUnacknowledged(run)?.count ?? 0;
  return request;
}

/** The receipt whose ACK now begins. */
export function takeUnacknowledged(run: RunState): Receipt | null {
  const receipt = run.unacknowledged ?? null;
  run.unacknowledged = null;
  return receipt;
}

/** What is certain once a delivery has succeeded, whatever becomes of its last batch: ACKs, and the batches before the last. */
export function noteDelivered(run: RunState, { acknowledged, putBack, earlier }: Delivery, nowMs: number): void {
  const ridden = acknowledged?.acked ?? 0;
  run.deferred -= ridden;
  run.counts = addCounts(run.counts, { acked: ridden });
  if (putBack) settleDeferred(run);
  if (earlier == null) return;
  for (const { written, duplicate, skipped, bytes, counted, ...batch } of earlier.batches) {
    const records = written + duplicate;
    run.counts = addCounts(run.counts, { pulled: records + skipped, written, duplicate, skipped, bytes });
    run.settled += records;
    run.counted += counted;
    rememberBatch(run, {
      first: batch.first,
      last: batch.last,
      records,
      duplicate,
      rejected: 0,
      pull_ms: batch.pullMs,
      write_ms: batch.writeMs,
    });
  }
  noteChildren(run, earlier.children);
  run.counts = addCounts(run.counts, { acked: earlier.acknowledged.acked });
  run.deferred += earlier.acknowledged.deferred;
  run.cursor = earlier.cursor;
  rememberPace(
    run,
    earlier.batches.reduce((sum, { written, duplicate }) => sum + written + duplicate, 0),
    nowMs,
  );
}

function noteChildren(run: RunState, tallies: readonly ChildTally[] | undefined): void {
  if (tallies !== undefined) run.children = addTallies(run.children ?? [], tallies);
}

/** What stands between a delivered batch and its dead letters; null: nothing. */
export function objection(run: RunState, delivery: Delivery): FaultCode | null {
  const { undecided } = sortRejects(run, delivery);
  if (undecided.length === 0) return null;
  if (run.description.target.dead_letter === null) return 'dead_letter_not_configured';
  if (delivery.drift && !run.driftAccepted) return 'drift';
  if (undecided.length > run.rejectsAllowed) return 'reject_budget';
  return null;
}

/** An operator said `resume` (null) to an objection, or decided: the batch is delivered once more. */
export function overrule(run: RunState, code: FaultCode, delivery: Delivery, decision: Decision | null): void {
  run.consumerSequence = null;
  if (decision === 'retry') return;
  if (decision !== null) {
    const lastSequence = delivery.cursor - 1;
    run.decided = { decision, lastSequence, records: delivery.receipt?.count ?? 0 };
    return;
  }
  if (code === 'reject_budget') run.rejectsAllowed += Math.max(1, run.description.plan.max_rejects);
  if (code === 'drift') run.driftAccepted = true;
}

interface SortedRejects {
  /** No decision was made about these: they count against the budget. */
  readonly undecided: readonly Reject[];
  readonly toDeadLetter: readonly Reject[];
  readonly toSkip: readonly Reject[];
}

/** A batch that is delivered again after a decision may reach further than the operator saw. */
export function sortRejects({ decided }: Pick<RunState, 'decided'>, { rejects }: Delivery): SortedRejects {
  if (decided == null) return { undecided: rejects, toDeadLetter: rejects, toSkip: [] };
  const seen = rejects.filter(({ sequence }) => sequence <= decided.lastSequence);
  const undecided = rejects.filter(({ sequence }) => sequence > decided.lastSequence);
  return decided.decision === 'skip'
    ? { undecided, toDeadLetter: undecided, toSkip: seen.map((reject) => ({ ...reject, decision: 'skip' })) }
    : { undecided, toDeadLetter: rejects, toSkip: [] };
}

/** The batch is written and its dead letters are stored: the cursor moves past it. Its ACK may follow later. */
export function settle(run: RunState, delivery: Delivery, letters: DeadLettered, nowMs: number): void {
  const rejected = delivery.rejects.length;
  const sorted = sortRejects(run, delivery);
  const records = delivery.written + delivery.duplicate + rejected;
  run.counts = addCounts(run.counts, {
    pulled: records + delivery.skipped,
    written: delivery.written,
    duplicate: delivery.duplicate,
    skipped: delivery.skipped,
    rejected,
    dead_lettered: letters.stored,
    lost_body: letters.lostBodies,
    bytes: delivery.bytes,
  });
  run.settled += records;
  noteChildren(run, delivery.children);
  run.counted += delivery.counted;
  run.rejectsAllowed -= sorted.undecided.length;
  run.driftAccepted = false;
  run.decided = null;
  if (run.description.plan.batch_size === null && delivery.end === 'more') {
    const seconds = (delivery.pullMs + delivery.writeMs) / 1_000;
    run.batchRecords = adaptBatchRecords(delivery.adaptiveRecords ?? run.batchRecords, { records, seconds });
  }
  const place = placeOf(run);
  place.cursor = delivery.cursor;
  run.consumerSequence = delivery.consumerSequence;
  run.unacknowledged = delivery.receipt;
  run.dataRoot = delivery.dataRoot;
  place.streamLast = Math.max(place.streamLast, delivery.streamLast);
  place.rangeEnded = delivery.end === 'end_of_range';
  place.idleSinceMs = delivery.end === 'drained' ? (records > 0 ? nowMs : (place.idleSinceMs ?? nowMs)) : null;
  if (run.lanes !== undefined) noteTurn(run, delivery, nowMs);
  if (sorted.toSkip.length > 0) run.warnings.push(skippedWarning(sorted.toSkip));
  remember(run, { ...delivery, rejects: [...sorted.toSkip, ...sorted.toDeadLetter] }, nowMs);
}

/** Gaps that one report names; each has its warning. */
const goneWarningsMax = 100;

function noteTurn(run: RunState, { gone }: Delivery, nowMs: number): void {
  run.lanes![run.lane ?? 0]!.askedMs = nowMs;
  if (gone === undefined) return;
  const partition = laneRange(run)!.partition;
  run.goneSpans = (run.goneSpans ?? 0) + 1;
  if (run.goneSpans <= goneWarningsMax) run.warnings.push(goneText(partition, gone));
  else if (run.goneSpans === goneWarningsMax + 1) run.warnings.push('More of the log is gone; it is counted, not listed.');
}

function skippedWarning(skipped: readonly Reject[]): string {
  const [first, last] = [skipped[0]!.sequence, skipped.at(-1)!.sequence];
  const which = first === last ? `sequence ${first}` : `${skipped.length} records, sequences ${first} to ${last}`;
  return `Skipped by an operator's decision, without a dead letter: ${which}.`;
}

function remember(run: RunState, delivery: Delivery, nowMs: number): void {
  if (run.rejects.length < reportRejectsMax)
    run.rejects.push(...delivery.rejects.slice(0, reportRejectsMax - run.rejects.length));
  const records = delivery.written + delivery.duplicate + delivery.rejects.length;
  if (delivery.receipt === null) {
    run.pullMs += delivery.pullMs;
    return;
  }
  rememberPace(run, records, nowMs);
  rememberBatch(run, {
    ...(run.lanes === undefined ? {} : { partition: laneRange(run)!.partition }),
    first: delivery.receipt.firstSequence,
    last: delivery.receipt.lastSequence,
    records,
    duplicate: delivery.duplicate,
    rejected: delivery.rejects.length,
    pull_ms: delivery.pullMs,
    write_ms: delivery.writeMs,
    at_seconds: Math.round((nowMs - run.startedMs) / 100) / 10,
  });
}

/** Batches of one step end at the same time: together they are one measure of the pace. */
function rememberPace(run: RunState, records: number, nowMs: number): void {
  const last = run.recent.at(-1);
  if (last?.endedMs === nowMs) last.records += records;
  else run.recent.push({ endedMs: nowMs, records });
  if (run.recent.length > 10) run.recent.shift();
}

function rememberBatch(run: RunState, batch: BatchSummary): void {
  run.batchesTotal++;
  run.pullMs += batch.pull_ms;
  run.writeMs += batch.write_ms;
  run.batches.push(batch);
  // The first half stays, the later half slides: how it began and how it went last are what a reader looks for.
  if (run.batches.length > reportBatchesMax) run.batches.splice(reportBatchesMax / 2, 1);
}

export function noteAcknowledged(run: RunState, result: Acknowledged): void {
  run.counts = addCounts(run.counts, { acked: result.acked });
  run.deferred += result.deferred;
}

function settleDeferred(run: RunState): void {
  run.counts = addCounts(run.counts, { acked: run.deferred });
  run.deferred = 0;
}

/** How the run leaves its durable: see "Control" in docs/delivery.md. */
export function closeRequests(run: RunState, reason: StopReason): CloseRequest[] {
  if (run.lanes === undefined) return [closeRequest(run, reason)];
  return run.lanes.map((_, lane) => ({ ...closeRequest({ ...run, lane }, reason), notReached: null }));
}

function closeRequest(run: RunState, reason: StopReason): CloseRequest {
  const complete = reason === 'end_of_range' || reason === 'max_messages' || reason === 'drained';
  const last = farEnd(run.description);
  return {
    replay: replayRef(run),
    cursor: placeOf(run).cursor,
    maxAckPending: maxAckPending(run),
    begun: run.lanes === undefined ? run.batchesTotal > 0 : run.lanes[run.lane ?? 0]!.askedMs !== null,
    durable: complete ? (run.description.plan.keep_consumer ? 'keep_completed' : 'delete') : 'keep',
    notReached: run.cursor > last ? null : { first: run.cursor, last },
  };
}

export function noteClosed(run: RunState, closed: readonly Closed[]): void {
  const { count, lanes = [] } = run.description;
  const left = lanes.reduce((sum, lane, i) => sum + laneNotReached(lane, run.lanes![i]!), 0);
  run.notReached = left + closed.reduce((sum, { notReached }) => sum + notReached, 0);
  if (closed.every(({ settled }) => settled)) settleDeferred(run);
  if (count.exact.messages) {
    const vanished = Math.max(0, count.messages - run.counted - run.notReached);
    run.counts = addCounts(run.counts, { vanished });
    if (vanished > 0)
      run.warnings.push(
        `${counted(vanished, 'message')} of the range ${vanished === 1 ? 'was' : 'were'} deleted from the stream before this run reached them.`,
      );
  }
}

/** Of a topic: in places of all its partitions together. */
export function cursorOf(run: RunState): number {
  return run.lanes === undefined ? run.cursor : placesOf(run.description.lanes!, run.lanes).cursor;
}

function lanesOf(run: RunState): { readonly lanes?: readonly LaneProgress[] } {
  return run.lanes === undefined ? {} : { lanes: laneProgress(run.description.lanes!, run.lanes) };
}

function recentRate(run: RunState): number {
  const first = run.recent[0];
  const last = run.recent.at(-1);
  if (first === undefined || last === undefined) return 0;
  const since = run.recent.length === 1 ? run.startedMs : first.endedMs;
  const records = run.recent.slice(run.recent.length === 1 ? 0 : 1).reduce((sum, batch) => sum + batch.records, 0);
  return last.endedMs > since ? Math.round((records * 10_000) / (last.endedMs - since)) / 10 : 0;
}

export interface Situation {
  readonly state: ReplayState;
  readonly problem: BlockedBy | null;
  readonly limits: PaceLimits;
  readonly waiting: Waiting | null;
}

export function progress(run: RunState, { state, problem, limits, waiting }: Situation): Progress {
  const { plan, range, count } = run.description;
  const rate = recentRate(run);
  const ended = state === 'completed';
  const streamLast = run.lanes === undefined ? run.streamLast : placesOf(run.description.lanes!, run.lanes).end;
  const position = progressOf({
    cursor: cursorOf(run),
    first: run.description.cursor,
    farEnd: range.last ?? streamLast,
    settled: run.settled,
    maxMessages: plan.max_messages,
    expected: count.exact.messages && range.last !== null ? count.messages : null,
    ratePerSecond: rate,
  });
  return {
    state,
    problem,
    counts: run.counts,
    range: { first: range.first, last: range.last },
    cursor: cursorOf(run),
    rate,
    rate_limit_per_second: limits.perSecond,
    rate_limit_bytes_per_second: limits.bytesPerSecond,
    pace: limits.original === null ? null : 'original',
    pace_factor: limits.original?.factor ?? null,
    waiting,
    percent: ended ? 100 : position.percent,
    secondsLeft: ended ? 0 : position.secondsLeft,
    approval: null,
    ...(run.children === undefined ? {} : { children: run.children }),
    ...lanesOf(run),
    rejects: run.rejects.slice(-progressRejectsMax),
  };
}

export function report(run: RunState, state: ReplayState, reason: StopReason | null, nowMs: number): Report {
  const { plan, range, count } = run.description;
  const seconds = (ms: number): number => Math.round(ms) / 1_000;
  const totalMs = nowMs - run.startedMs;
  const workingMs = totalMs - run.pausedMs - run.blockedMs;
  return {
    schema_version: 1,
    state,
    stop_reason: reason,
    plan: {
      stream: plan.stream,
      durable_consumer: plan.durable_consumer,
      subject_families: run.description.families,
      max_messages: plan.max_messages,
      window: plan.window ?? null,
      fingerprint: run.description.fingerprint,
      resumed: run.description.resumed,
    },
    approval: run.approval ?? null,
    sink: sinkSummary(run.description),
    counts: run.counts,
    ...(run.children === undefined ? {} : { children: run.children }),
    range: {
      incarnation: range.incarnation,
      first: range.first,
      last: range.last,
      cursor: cursorOf(run),
      count: count.messages,
      count_exact: count.exact.messages,
      bytes: count.bytes,
      bytes_exact: count.exact.bytes,
      not_reached: run.notReached,
    },
    ...lanesOf(run),
    warnings: run.warnings,
    rejects: run.rejects,
    rejects_not_listed: Math.max(0, run.counts.rejected - run.rejects.length),
    batches: run.batches,
    batches_not_listed: run.batchesTotal - run.batches.length,
    timings: {
      started_at: isoTime(run.startedMs),
      ended_at: reason === null ? null : isoTime(nowMs),
      total_seconds: seconds(totalMs),
      pull_seconds: seconds(run.pullMs),
      write_seconds: seconds(run.writeMs),
      paused_seconds: seconds(run.pausedMs),
      blocked_seconds: seconds(run.blockedMs),
      records_per_second: workingMs > 0 ? Math.round((run.settled * 1_000) / workingMs) : 0,
    },
  };
}

/** The end up to which records were counted when the run was described. */
function farEnd(description: Description): number {
  return Math.min(description.range.last ?? Infinity, description.range.streamLast);
}

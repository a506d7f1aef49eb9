import { rejectReason } from '../core/record.ts';
import { defineSearchAttributeKey } from '@temporalio/common';
import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  patched,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { Owner } from '../core/consumer.ts';
import type { Description, Rehearsal } from '../core/description.ts';
import { describingMarkdown, detailsMarkdown, formatDuration, refusedMarkdown } from '../core/details.ts';
import { paceAfter, paceAtFactor, paceAtStart, paceInterrupted, paceWaitMs, type PaceLimits } from '../core/pacing.ts';
import { counted, formatProblems, type Problem } from '../core/problems.ts';
import { noProgress, progressRejectsMax, type Progress } from '../core/progress.ts';
import type { Receipt } from '../core/receipt.ts';
import { isoTime, type Report, type StopReason } from '../core/report.ts';
import * as runs from '../core/run.ts';
import type { RunState } from '../core/run.ts';
import type { Closed, DeadLettered, DescribeRequest, Delivery, ReplayRequest } from '../core/steps.ts';
import { lastSuccessOf } from '../core/window.ts';
import {
  acknowledge,
  closeRun,
  deadLetter,
  deliverBatch,
  describeStream,
  lookAtHours,
  rehearse,
  writeReport,
} from './activities.ts';
import { createApprovalDesk, handleApproval, untilApproved, type ApprovalDesk } from './approval.ts';
import {
  addWaits,
  carriedControl,
  createControl,
  enter,
  handleMessages,
  healed,
  limitsOf,
  unblock,
  untilDecided,
  waitUntil,
  whilePaused,
  type CarriedControl,
  type Control,
} from './control.ts';
import {
  progressQuery,
  refusedFailure,
  reportQuery,
  searchAttributes,
  optionalFailuresQuery,
  type OptionalFailures,
} from './messages.ts';

/** After a cancellation: how long dead letters, ACKs and the durable may take to be settled. */
const cleanupMsMax = 60_000;
/** Dead letters of one step: bounds its input in the history. */
const deadLettersMax = 500;

/** Temporal's own: the time for which a Schedule meant a run. */
const scheduledStart = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');

/** What continue-as-new carries: everything the next link needs to go on where this one stopped. */
interface Carried {
  readonly run: RunState;
  readonly control: CarriedControl;
}

/** The frame around one link of a run: its memory, its controls, and the scope in which settling is shielded from cancel. */
interface Link {
  readonly request: ReplayRequest;
  readonly control: Control;
  readonly cleanup: CancellationScope;
  run: RunState | null;
  stopReason: StopReason | null;
  /** The ACK that is a step of its own: at most one, overlapping the next delivery. */
  acknowledging: Promise<void>;
  /** Written, but what becomes of its rejects is not settled yet. */
  unsettled: Delivery | null;
  /** Blocks the plan: its rejects are shown, and nothing of it is settled. */
  objected: Delivery | null;
  readonly desk: ApprovalDesk;
}

/**
 * One replay plan: describe, then a bounded loop of batches, then the report. Each batch is delivered (pulled and written),
 * its rejects are dead-lettered, and only then it is acknowledged; the ACK of one batch overlaps the delivery of the next.
 */
export async function replayPlan(request: ReplayRequest, carried?: Carried): Promise<Report> {
  const control = createControl(carried?.control);
  const link: Link = {
    request,
    control,
    cleanup: cleanupScope(),
    run: carried?.run ?? null,
    stopReason: null,
    acknowledging: Promise.resolve(),
    unsettled: null,
    objected: null,
    desk: createApprovalDesk(),
  };
  control.show = () => showDetails(link);
  handleMessages(control, ['perSecond', 'bytesPerSecond', 'factor', 'allowedHours']);
  handleApproval(link.desk);
  handleQueries(link);
  try {
    const run = link.run ?? (await describe(link));
    resumeWork(link, run);
    if (run.description.plan.dry_run) return await finish(link, run, 'rehearsed', 'dry_run');
    const reason = await replayBatches(link, run);
    return await finish(link, run, 'completed', reason);
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => finishCanceled(link));
    throw error;
  }
}

async function describe(link: Link): Promise<RunState> {
  const { control, request } = link;
  const described = await healed(control, () => describeStream(describeRequest(request)));
  if (described.kind === 'refused') throw refuse(control, described);
  const { description } = described;
  link.run = startRun(described);
  if (description.searchAttributes) {
    upsertSearchAttributes([
      { key: searchAttributes.stream, value: description.plan.stream },
      { key: searchAttributes.sink, value: description.sink.type },
      { key: searchAttributes.rejected, value: 0 },
    ]);
  }
  if (description.plan.require_approval && !description.plan.dry_run) await awaitApproval(link);
  return link.run;
}

function describeRequest(request: ReplayRequest): DescribeRequest {
  const { firstExecutionRunId, startTime, typedSearchAttributes, lastResult } = workflowInfo();
  const at = typedSearchAttributes.get(scheduledStart) ?? startTime;
  return { ...request, firstRunId: firstExecutionRunId, at: isoTime(at.getTime()), lastSuccess: lastSuccessOf(lastResult) };
}

function startRun({ description, predecessor }: Pick<Rehearsal, 'description' | 'predecessor'>): RunState {
  return runs.startRun(description, ownerOf(description), predecessor, workflowInfo().startTime.getTime());
}

function refuse(control: Control, refused: { readonly problems: readonly Problem[]; readonly searchAttributes: boolean }) {
  control.hasSearchAttributes = refused.searchAttributes;
  enter(control, 'refused');
  setCurrentDetails(refusedMarkdown(refused.problems));
  return ApplicationFailure.create({
    message: formatProblems(refused.problems),
    type: refusedFailure,
    nonRetryable: true,
    details: [refused.problems],
  });
}

/** Shows what a rehearsal found until somebody approves it. Then the run begins with what the last rehearsal found. */
async function awaitApproval(link: Link): Promise<void> {
  const { control, request, desk } = link;
  const look = () => healed(control, () => rehearse(describeRequest(request)));
  const first = await look();
  if (first.kind === 'refused') throw refuse(control, first);
  const sinceMs = Date.now();
  const { approval_timeout_seconds: seconds } = first.description.plan;
  const settled = await untilApproved(desk, first, {
    rehearse: look,
    deadlineMs: sinceMs + seconds * 1_000,
    show: (rehearsal) => {
      link.run = startRun(rehearsal);
      control.hasSearchAttributes = rehearsal.description.searchAttributes;
      enter(control, 'awaiting_approval');
      control.show();
    },
  });
  control.pausedMs += Date.now() - sinceMs;
  if (settled === null) {
    const message = `nobody approved this plan within ${formatDuration(seconds)}; nothing was written. Start it again when somebody can`;
    const problems = [{ path: 'replay.require_approval', message }];
    throw refuse(control, { problems, searchAttributes: control.hasSearchAttributes });
  }
  link.run = startRun(settled.rehearsal);
  link.run.approval = settled.approved;
}

function ownerOf(description: Description): Owner {
  const { namespace, workflowId, firstExecutionRunId } = workflowInfo();
  return {
    cluster: description.cluster,
    namespace,
    workflowId,
    firstRunId: firstExecutionRunId,
    fingerprint: description.fingerprint,
  };
}

function resumeWork({ control }: Link, run: RunState): void {
  control.hasSearchAttributes = run.description.searchAttributes;
  if (control.ratePerSecond === undefined) control.ratePerSecond = run.description.plan.rate_limit_per_second;
  control.working = 'running';
  if (!run.description.plan.dry_run) enter(control, 'running');
}

/** Returns why the run is over. Continues as new by throwing, as the SDK does. */
async function replayBatches(link: Link, run: RunState): Promise<StopReason> {
  const { control } = link;
  const rides = patched('ack-rides-with-delivery');
  for (let timerFired = false; ;) {
    if (control.paused) {
      beginAck(link, run);
      await whilePaused(control);
      if (patched('look-after-pause')) run.idleSinceMs = null;
    }
    // A step that completes in spite of a cancellation hides it: ask the scope itself.
    if (control.cancelRequested) await CancellationScope.current().cancelRequested;
    const reason = runs.stopReason(run, Date.now());
    if (reason !== null) return reason;
    if (workflowInfo().continueAsNewSuggested) return await continueLink(link, run);
    if (!(await withinHours(link, run))) continue;

    runs.takeTurn(run, Date.now());
    const delivery = await deliver(link, run, timerFired);
    link.unsettled = delivery;
    const letters = await settling(link, () => storeDeadLetters(link, run, delivery));
    await link.acknowledging;
    runs.settle(run, delivery, letters, Date.now());
    link.unsettled = null;
    if (!rides) beginAck(link, run);
    showDetails(link);
    showRejected(link, run, delivery);
    timerFired = await pace(link, run, delivery);
  }
}

/** Delivers the next batch until nothing stands between it and its ACK but its dead letters. */
async function deliver(link: Link, run: RunState, timerFired: boolean): Promise<Delivery> {
  const { control } = link;
  for (;;) {
    const { resumes } = control;
    const delivery = await healed(control, () => {
      // At each try: time spent blocked is not made up for.
      run.pace = paceAtStart(paceAtFactor(run.pace, Date.now(), paceLimits(link, run)), Date.now(), timerFired);
      const next = runs.beginDelivery(run, paceLimits(link, run), Date.now());
      const { topic } = next.replay;
      const place = topic === undefined ? next.cursor : `offset ${next.cursor - 1} of partition ${topic.partition}`;
      return deliverBatch.executeWithOptions({ summary: `batch ${run.batchesTotal + 1} from ${place}` }, [next]);
    });
    runs.noteDelivered(run, delivery, Date.now());
    const code = runs.objection(run, delivery);
    if (code === null) return delivery;
    // Nothing of this batch is dead-lettered or acknowledged: it is delivered again, and what the sink kept is a duplicate then.
    run.consumerSequence = null;
    link.objected = delivery;
    const deadLetter = run.description.target.dead_letter !== null;
    const block = { code, detail: objectionDetail(run, delivery), retryMs: null, resumes };
    const decision = await untilDecided(control, block, deadLetter);
    link.objected = null;
    runs.overrule(run, code, delivery, decision);
  }
}

function objectionDetail(run: RunState, { rejects, rejected }: Delivery): string {
  const first = rejects[0]!;
  return `${rejected} refused in this batch, ${run.rejectsAllowed} left in the budget; first: sequence ${first.sequence}, ${rejectReason(first)}`;
}

async function storeDeadLetters({ control }: Link, run: RunState, delivery: Delivery): Promise<DeadLettered> {
  const rejects = runs.sortRejects(run, delivery).toDeadLetter;
  const letters = { stored: 0, lostBodies: 0 };
  for (let start = 0; start < rejects.length; start += deadLettersMax) {
    const some = rejects.slice(start, start + deadLettersMax);
    const step = { replay: runs.replayRef(run), target: run.description.target, rejects: some };
    const done = await healed(control, () =>
      deadLetter.executeWithOptions({ summary: counted(some.length, 'dead letter') }, [step]),
    );
    letters.stored += done.stored;
    letters.lostBodies += done.lostBodies;
  }
  return letters;
}

/**
 * The ACK of a batch rides with the delivery of the next, which saves a step. Where none follows at once it is a step of its
 * own, begun here.
 */
function beginAck(link: Link, run: RunState): void {
  const receipt = runs.takeUnacknowledged(run);
  if (receipt !== null) link.acknowledging = settling(link, () => acknowledgeBatch(run, receipt));
}

async function awaitAck(link: Link, run: RunState): Promise<void> {
  await link.acknowledging;
  beginAck(link, run);
  await link.acknowledging;
}

/** A failed ACK is deferred, not lost: the next put-back of the durable at the cursor settles it. */
async function acknowledgeBatch(run: RunState, receipt: Receipt): Promise<void> {
  try {
    runs.noteAcknowledged(run, await acknowledge.executeWithOptions({ summary: `ACK to ${receipt.lastSequence}` }, [receipt]));
  } catch {
    runs.noteAcknowledged(run, { acked: 0, deferred: receipt.count });
  }
}

function showRejected({ control }: Link, run: RunState, delivery: Delivery): void {
  if (!control.hasSearchAttributes || delivery.rejects.length === 0) return;
  upsertSearchAttributes([{ key: searchAttributes.rejected, value: run.counts.rejected }]);
}

/** Waits until the pace allows the next batch; a changed one, pause or cancel ends the wait. True: the timer fired. */
async function pace(link: Link, run: RunState, { receipt, bytes, stretch }: Delivery): Promise<boolean> {
  const { control } = link;
  const limits = paceLimits(link, run);
  run.pace = paceAfter(paceAtFactor(run.pace, Date.now(), limits), { records: receipt?.count ?? 0, bytes, stretch }, limits);
  const { dueMs } = run.pace;
  if (paceWaitMs(dueMs, Date.now()) === 0) return false;
  beginAck(link, run);
  const interrupted = await waitUntil(control, { for: limits.original === null ? 'rate_limit' : 'original_pace', dueMs });
  if (interrupted) run.pace = paceInterrupted(run.pace, Date.now(), paceLimits(link, run));
  return !interrupted;
}

function paceLimits({ control }: Link, run: RunState): PaceLimits {
  return limitsOf(control, run.description.plan);
}

/** False: it has waited for the allowed hours, or something cut the wait short; what was true before may have changed. */
async function withinHours(link: Link, run: RunState): Promise<boolean> {
  const { control } = link;
  const hours = run.description.plan.allowed_hours ?? null;
  if (hours === null || control.asked.allowedHours === null) return true;
  const nowMs = Date.now();
  if (run.hours === undefined || run.hours.untilMs <= nowMs) {
    const { zone, from, to } = hours;
    const summary = `allowed hours ${from} to ${to} ${zone}`;
    run.hours = await healed(control, () => lookAtHours.executeWithOptions({ summary }, [{ hours, nowMs }]));
  }
  if (run.hours.open) return true;
  await awaitAck(link, run);
  await waitUntil(control, { for: 'allowed_hours', dueMs: run.hours.untilMs });
  // It has not looked in the meantime.
  run.idleSinceMs = null;
  return false;
}

async function continueLink(link: Link, run: RunState): Promise<never> {
  const { control, request } = link;
  await awaitAck(link, run);
  await condition(allHandlersFinished);
  addWaits(run, control);
  return await continueAsNew<typeof replayPlan>(request, { run, control: carriedControl(control) });
}

/** Runs a step that a cancellation must not interrupt, within the time that a clean-up may take. */
function settling<T>({ cleanup }: Link, step: () => Promise<T>): Promise<T> {
  return cleanup.run(step);
}

/** Shielded from the workflow's cancellation, but ended by its own limit after it. */
function cleanupScope(): CancellationScope {
  const root = CancellationScope.current();
  const shield = new CancellationScope({ cancellable: false });
  const cleanup = new CancellationScope({ cancellable: true, parent: shield });
  root.cancelRequested.catch(() => shield.run(() => sleep(cleanupMsMax)).then(() => cleanup.cancel()));
  return cleanup;
}

async function finish(link: Link, run: RunState, state: 'rehearsed' | 'completed', reason: StopReason): Promise<Report> {
  await awaitAck(link, run);
  if (reason !== 'dry_run') await healed(link.control, () => settling(link, () => close(run, reason)));
  return await conclude(link, run, state, reason);
}

async function close(run: RunState, reason: StopReason): Promise<void> {
  const closed: Closed[] = [];
  for (const request of runs.closeRequests(run, reason)) closed.push(await closeRun(request));
  runs.noteClosed(run, closed);
}

/** The durable is left at the cursor, the report is written; what is not settled stays un-ACKed and is named. */
async function finishCanceled(link: Link): Promise<void> {
  const { control, run } = link;
  unblock(control);
  enter(control, 'cancelling');
  if (run === null || run.description.plan.dry_run) return;
  await awaitAck(link, run);
  const unsettled = link.unsettled ?? link.objected;
  if (unsettled !== null) run.warnings.push(unsettledWarning(unsettled));
  try {
    await settling(link, () => close(run, 'canceled'));
  } catch {
    run.warnings.push(
      `The durable consumer could not be settled at ${runs.cursorOf(run)}; the same plan started again puts it right.`,
    );
  }
  await conclude(link, run, 'canceled', 'canceled');
}

function unsettledWarning({ receipt, rejected }: Delivery): string {
  return (
    `Records ${receipt?.firstSequence ?? 0} to ${receipt?.lastSequence ?? 0} are not acknowledged: the destination refused ` +
    `${rejected} of them, not all of which are dead letters; it holds the others. The same plan started again goes on there.`
  );
}

async function conclude(
  link: Link,
  run: RunState,
  state: 'rehearsed' | 'completed' | 'canceled',
  reason: StopReason,
): Promise<Report> {
  addWaits(run, link.control);
  link.stopReason = reason;
  enter(link.control, state);
  const endedMs = Date.now();
  const report = runs.report(run, state, reason, endedMs);
  const file = run.description.plan.report_file;
  if (file === null) return report;
  try {
    await writeReport({ file, report });
    return report;
  } catch {
    run.warnings.push(
      `The report file could not be written; this report is also the workflow's result and its query "report".`,
    );
    return runs.report(run, state, reason, endedMs);
  }
}

function showDetails(link: Link): void {
  const { run, control } = link;
  setCurrentDetails(run === null ? describingMarkdown(control) : detailsMarkdown(run.description, progressOf(link)));
}

function handleQueries(link: Link): void {
  setHandler(progressQuery, () => progressOf(link), {
    description: 'State, problem and what to do about it, counts, cursor, rate, percent, time left. No input.',
  });
  setHandler(optionalFailuresQuery, () => (link.run === null ? null : optionalFailuresOf(link.run)), {
    description: 'What optional children of a fan-out still miss, with plan and target. No input.',
  });
  setHandler(
    reportQuery,
    () => (link.run === null ? null : runs.report(link.run, link.control.state, link.stopReason, Date.now())),
    { description: 'The report as it stands; final once the run has ended. No input.' },
  );
}

function optionalFailuresOf({ description, children = [] }: RunState): OptionalFailures {
  const { plan, target, range } = description;
  return { plan, target, incarnation: range.incarnation, children: children.filter(({ missing }) => missing.length > 0) };
}

function progressOf({ control, run, objected, desk }: Link): Progress {
  const { state, problem } = control;
  if (run === null) return { ...noProgress, state, problem };
  const shown = runs.progress(run, {
    state,
    problem,
    limits: limitsOf(control, run.description.plan),
    waiting: control.waiting,
  });
  if (desk.awaited !== null) return { ...shown, approval: desk.awaited };
  return objected === null ? shown : { ...shown, rejects: objected.rejects.slice(0, progressRejectsMax) };
}

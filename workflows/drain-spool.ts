import { rejectReason } from '../core/record.ts';
import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { describingMarkdown, workingMarkdown } from '../core/details.ts';
import * as drains from '../core/drain.ts';
import type { DrainedBatch, DrainRequest, DrainState } from '../core/drain.ts';
import { limitBatchRecords, paceAfter, paceAtStart, paceWaitMs } from '../core/pacing.ts';
import { counted, formatProblems } from '../core/problems.ts';
import { noProgress, progressRejectsMax, type Progress } from '../core/progress.ts';
import type { Report, StopReason } from '../core/report.ts';
import type { DeadLettered } from '../core/steps.ts';
import { describeSpool, drainBatch, drainDeadLetters, removeDrained, writeReport } from './activities.ts';
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
import { progressQuery, refusedFailure, reportQuery, searchAttributes } from './messages.ts';

/** After a cancellation: how long dead letters and the removal of what is settled may take. */
const cleanupMsMax = 60_000;
/** Dead letters of one step: bounds its input in the history. */
const deadLettersMax = 500;

interface Carried {
  readonly run: DrainState;
  readonly control: CarriedControl;
}

interface Link {
  readonly request: DrainRequest;
  readonly control: Control;
  readonly cleanup: CancellationScope;
  run: DrainState | null;
  stopReason: StopReason | null;
  /** Blocks the drain: its rejects are shown, and nothing of it is settled. */
  objected: DrainedBatch | null;
}

/**
 * The drain of a spool into a target: describe, then a bounded loop of batches, then the report. Each batch is written to the
 * target, its rejects are dead-lettered, and only then it is removed from the spool.
 */
export async function drainSpool(request: DrainRequest, carried?: Carried): Promise<Report> {
  const control = createControl(carried?.control);
  const link: Link = { request, control, cleanup: cleanupScope(), run: carried?.run ?? null, stopReason: null, objected: null };
  control.show = () => showDetails(link);
  handleMessages(control, ['perSecond']);
  handleQueries(link);
  try {
    const run = link.run ?? (await describe(link));
    resumeWork(link, run);
    if (run.description.options.dry_run) return await conclude(link, run, 'rehearsed', 'dry_run');
    await drainBatches(link, run);
    return await conclude(link, run, 'completed', 'drained');
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => finishCanceled(link));
    throw error;
  }
}

async function describe(link: Link): Promise<DrainState> {
  const { control, request } = link;
  const described = await healed(control, () => describeSpool(request));
  if (described.kind === 'refused') {
    control.hasSearchAttributes = described.searchAttributes;
    enter(control, 'refused');
    throw ApplicationFailure.create({
      message: formatProblems(described.problems),
      type: refusedFailure,
      nonRetryable: true,
      details: [described.problems],
    });
  }
  const { description } = described;
  const { namespace, workflowId, firstExecutionRunId, startTime } = workflowInfo();
  const owner = { cluster: description.cluster, namespace, workflowId, firstRunId: firstExecutionRunId };
  link.run = drains.startDrain(description, owner, startTime.getTime());
  if (description.searchAttributes) {
    upsertSearchAttributes([
      { key: searchAttributes.stream, value: description.name },
      { key: searchAttributes.sink, value: description.target.sink.type },
      { key: searchAttributes.rejected, value: 0 },
    ]);
  }
  return link.run;
}

function resumeWork({ control }: Link, run: DrainState): void {
  control.hasSearchAttributes = run.description.searchAttributes;
  if (control.ratePerSecond === undefined) control.ratePerSecond = run.description.options.rate_limit_per_second;
  control.working = 'running';
  if (!run.description.options.dry_run) enter(control, 'running');
}

/** Continues as new by throwing, as the SDK does. */
async function drainBatches(link: Link, run: DrainState): Promise<void> {
  const { control } = link;
  for (let timerFired = false; ;) {
    await whilePaused(control);
    // A step that completes in spite of a cancellation hides it: ask the scope itself.
    if (control.cancelRequested) await CancellationScope.current().cancelRequested;
    if (run.isEmpty) return;
    if (workflowInfo().continueAsNewSuggested) return await continueLink(link, run);
    run.pace = paceAtStart(run.pace, Date.now(), timerFired);
    const batch = await writeBatch(link, run);
    const letters = await link.cleanup.run(() => settleBatch(link, run, batch));
    drains.settleDrained(run, batch, letters, Date.now());
    showDetails(link);
    if (control.hasSearchAttributes && batch.rejects.length > 0) {
      upsertSearchAttributes([{ key: searchAttributes.rejected, value: run.counts.rejected }]);
    }
    timerFired = await pace(control, run, batch.written + batch.duplicate + batch.rejects.length);
  }
}

/** Writes the next batch until nothing stands between it and its removal but its dead letters. */
async function writeBatch(link: Link, run: DrainState): Promise<DrainedBatch> {
  const { control } = link;
  for (;;) {
    const { resumes } = control;
    const batch = await healed(control, () => {
      const maxRecords = limitBatchRecords(run.description.options.batch_size, control.ratePerSecond ?? null);
      const summary = `batch ${run.batchesTotal + 1}`;
      return drainBatch.executeWithOptions({ summary }, [drains.nextBatch(run, maxRecords)]);
    });
    const code = drains.drainObjection(run, batch);
    if (code === null) return batch;
    link.objected = batch;
    const first = batch.rejects[0]!;
    const detail = `${batch.rejected} refused in this batch, ${run.rejectsAllowed} left in the budget; first: sequence ${first.sequence}, ${rejectReason(first)}`;
    const block = { code, detail, retryMs: null, resumes };
    const decision = await untilDecided(control, block, run.description.target.dead_letter !== null);
    link.objected = null;
    drains.overruleDrain(run, code, batch, decision);
  }
}

/** What the target has, or the dead-letter stream, leaves the spool. */
async function settleBatch({ control }: Link, run: DrainState, batch: DrainedBatch): Promise<DeadLettered> {
  const drain = { ...drains.drainRef(run), dataRoot: batch.dataRoot };
  const { packs } = batch;
  const rejects = drains.lettersOf(run, batch);
  let stored = 0;
  for (let start = 0; start < rejects.length; start += deadLettersMax) {
    const some = rejects.slice(start, start + deadLettersMax);
    const letters = { drain, packs, rejects: some };
    const done = await healed(control, () =>
      drainDeadLetters.executeWithOptions({ summary: counted(some.length, 'dead letter') }, [letters]),
    );
    stored += done.stored;
  }
  if (packs.length > 0) {
    await healed(control, () =>
      removeDrained.executeWithOptions({ summary: `remove ${packs.length} packs` }, [{ drain, packs }]),
    );
  }
  return { stored, lostBodies: 0 };
}

/** Waits until the rate limit allows the next batch; a changed limit, pause or cancel ends the wait. True: the timer fired. */
async function pace(control: Control, run: DrainState, records: number): Promise<boolean> {
  const limits = limitsOf(control);
  run.pace = paceAfter(run.pace, { records, bytes: 0 }, limits);
  if (paceWaitMs(run.pace.dueMs, Date.now()) === 0) return false;
  const interrupted = await waitUntil(control, { for: 'rate_limit', dueMs: run.pace.dueMs });
  if (interrupted) run.pace = { dueMs: Date.now(), lateMs: 0 };
  return !interrupted;
}

async function continueLink(link: Link, run: DrainState): Promise<never> {
  const { control, request } = link;
  await condition(allHandlersFinished);
  addWaits(run, control);
  return await continueAsNew<typeof drainSpool>(request, { run, control: carriedControl(control) });
}

/** Shielded from the workflow's cancellation, but ended by its own limit after it. */
function cleanupScope(): CancellationScope {
  const root = CancellationScope.current();
  const shield = new CancellationScope({ cancellable: false });
  const cleanup = new CancellationScope({ cancellable: true, parent: shield });
  root.cancelRequested.catch(() => shield.run(() => sleep(cleanupMsMax)).then(() => cleanup.cancel()));
  return cleanup;
}

/** What is not settled stays in the spool: the same drain started again goes on there. */
async function finishCanceled(link: Link): Promise<void> {
  const { control, run } = link;
  unblock(control);
  enter(control, 'cancelling');
  if (run !== null && !run.description.options.dry_run) await conclude(link, run, 'canceled', 'canceled');
}

async function conclude(
  link: Link,
  run: DrainState,
  state: 'rehearsed' | 'completed' | 'canceled',
  reason: StopReason,
): Promise<Report> {
  addWaits(run, link.control);
  link.stopReason = reason;
  enter(link.control, state);
  const endedMs = Date.now();
  const report = drains.drainReport(run, state, reason, endedMs);
  const file = run.description.options.report_file;
  if (file === null) return report;
  try {
    await writeReport({ file, report });
    return report;
  } catch {
    run.warnings.push(
      `The report file could not be written; this report is also the workflow's result and its query "report".`,
    );
    return drains.drainReport(run, state, reason, endedMs);
  }
}

function showDetails(link: Link): void {
  const { run, control } = link;
  if (run === null) return setCurrentDetails(describingMarkdown(control));
  const { name, target } = run.description;
  setCurrentDetails(workingMarkdown(name, target.sink.type, progressOf(link)));
}

function handleQueries(link: Link): void {
  setHandler(progressQuery, () => progressOf(link), {
    description: 'State, problem and what to do about it, counts, rate, percent, time left. No input.',
  });
  setHandler(
    reportQuery,
    () => (link.run === null ? null : drains.drainReport(link.run, link.control.state, link.stopReason, Date.now())),
    { description: 'The report as it stands; final once the run has ended. No input.' },
  );
}

function progressOf({ control, run, objected }: Link): Progress {
  const { state, problem } = control;
  if (run === null) return { ...noProgress, state, problem };
  const shown = drains.drainProgress(run, { state, problem, limits: limitsOf(control), waiting: control.waiting });
  return objected === null ? shown : { ...shown, rejects: objected.rejects.slice(0, progressRejectsMax) };
}

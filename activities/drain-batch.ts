import { isDrift } from '../core/batch.ts';
import type { DrainBatchRequest, DrainedBatch, DrainRef, DrainReject } from '../core/drain.ts';
import { ReplayFault } from '../core/errors.ts';
import { rejectOf, type Outcome, type ReplayRecord } from '../core/record.ts';
import type { SpoolDrain } from '../sinks/spool-drain.ts';
import type { Deps } from './deps.ts';
import { graceSignal } from './grace.ts';
import { step, type StepDeps } from './step.ts';

/** Takes a batch out of the spool and writes it to the target. Removes nothing from the spool. */
export function makeDrainBatch(deps: StepDeps): (request: DrainBatchRequest) => Promise<DrainedBatch> {
  return (request) => step(deps.faults, (signal) => drainBatch(deps, request, signal));
}

async function drainBatch(deps: Deps, request: DrainBatchRequest, signal: AbortSignal): Promise<DrainedBatch> {
  const began = performance.now();
  const { spool, dataRoot } = await claimedSpool(deps, request.drain);
  const { packs } = request;
  const taken = packs === null ? await spool.take(request.maxRecords, signal) : await spool.read(packs, signal);
  signal.throwIfAborted();
  const writeBegan = performance.now();
  const outcomes = await writeAll(deps, request, taken.records, signal);
  const rejects = rejectsOf(taken.records, outcomes);
  return {
    packs: taken.packs,
    written: outcomes.filter(({ kind }) => kind === 'written').length,
    duplicate: outcomes.filter(({ kind }) => kind === 'duplicate').length,
    bytes: taken.records.reduce((sum, { payload }) => sum + payload.length, 0),
    rejects: rejects.slice(0, request.rejectsAllowed + 1),
    rejected: rejects.length,
    drift: isDrift(taken.records.length, rejects),
    setAside: taken.setAside,
    left: 'left' in taken ? (taken.left as number) : null,
    dataRoot,
    takeMs: Math.round(writeBegan - began),
    writeMs: Math.round(performance.now() - writeBegan),
  };
}

/** The spool, which this run must own, on the data root where the run began. */
export async function claimedSpool(
  { spools, runs, dataRoot }: Deps,
  { spool: sink, owner, dataRoot: pinned }: DrainRef,
): Promise<{ readonly spool: SpoolDrain; readonly dataRoot: string }> {
  const found = await dataRoot.read();
  if (found === null) throw new ReplayFault('sink_missing', 'the data root');
  if (pinned !== null && found !== pinned) throw new ReplayFault('wrong_root');
  const spool = await spools.open(sink);
  await spool.claim(owner, (holder) => runs.isOpen(holder));
  return { spool, dataRoot: found };
}

/** Stream by stream: a sink expects one batch to rise. */
async function writeAll(
  deps: Deps,
  { drain, begun }: DrainBatchRequest,
  records: readonly ReplayRecord[],
  signal: AbortSignal,
): Promise<Outcome[]> {
  if (records.length === 0) return [];
  const use = { target: drain.target, plan: drain.name, run: drain.owner.firstRunId, begun };
  const borrowed = await deps.sinks.borrow(use, signal);
  try {
    const grace = graceSignal(signal);
    const outcomes: Outcome[] = [];
    for (const part of streamsOf(records)) outcomes.push(...(await borrowed.sink.write(part, grace).finally(grace.clear)));
    await borrowed.giveBack('good');
    return outcomes;
  } catch (error) {
    await borrowed.giveBack('broken');
    throw error;
  }
}

function streamsOf(records: readonly ReplayRecord[]): ReplayRecord[][] {
  const parts: ReplayRecord[][] = [];
  for (const record of records) {
    const last = parts.at(-1)?.[0];
    if (last?.stream === record.stream && last.incarnation === record.incarnation) parts.at(-1)!.push(record);
    else parts.push([record]);
  }
  return parts;
}

function rejectsOf(records: readonly ReplayRecord[], outcomes: readonly Outcome[]): DrainReject[] {
  if (outcomes.length !== records.length) {
    throw new RangeError(`the sink answered for ${outcomes.length} of ${records.length} records`);
  }
  return outcomes.flatMap((outcome, index) => {
    if (outcome.kind !== 'rejected') return [];
    const { stream, incarnation, sequence, timeNanos, payload } = records[index]!;
    return [{ stream, incarnation, ...rejectOf({ sequence: Number(sequence), timeNanos, payload }, outcome, undefined) }];
  });
}

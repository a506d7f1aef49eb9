import {
  arrangeBatch,
  holdBack,
  isDrift,
  receiptOf,
  tallyOutcomes,
  type Batch,
  type Bounds,
  type Tally,
} from '../core/batch.ts';
import type { ChildTally } from '../core/children.ts';
import { decideConsumer } from '../core/consumer.ts';
import { ReplayFault } from '../core/errors.ts';
import type { Receipt } from '../core/receipt.ts';
import type { Reject } from '../core/record.ts';
import type { DeliverRequest, Delivery } from '../core/steps.ts';
import type { PulledRecord } from '../jetstream/source.ts';
import { graceSignal } from './grace.ts';
import { pullInOrder, pullNextAhead, type OrderedPull } from './pull-in-order.ts';
import { pullLane, type PulledBatch } from './read-lane.ts';
import type { RidingAck } from './riding-ack.ts';
import type { StepDeps } from './step.ts';

/** A batch that is written; its own ACK has not begun. */
export type Delivered = Omit<Delivery, 'acknowledged' | 'earlier'>;

/** Pulls one batch and writes it, beside the ACK of the batch before. */
export async function pullAndWrite(
  deps: StepDeps,
  request: DeliverRequest,
  { ack, lost }: { readonly ack: RidingAck; readonly lost: boolean },
  signal: AbortSignal,
): Promise<Delivered> {
  const began = performance.now();
  const dataRoot = await pinnedDataRoot(deps, request);
  if (request.replay.topic !== undefined)
    return await writePulled(deps, request, await pullLane(deps, request, signal), { began, dataRoot }, signal);
  const ordered = await pullInOrder(deps, request, lost, signal);
  const { pulled, putBack, consumerSequence, pulledAhead } = ordered;
  if (putBack) ack.settledByPutBack();
  const arranged = arrangeBatch(pulled.records, boundsOf(request));
  const { batch, stretch } = request.due === undefined ? { batch: arranged, stretch: null } : holdBack(arranged, request.due);
  const holds = stretch !== null && stretch.heldNanos !== null;
  pullNextAhead(deps, request, ordered, !holds && !reachesEnd(request, batch));
  const { end, streamLast } = holds
    ? { end: 'more' as const, streamLast: arranged.fresh.at(-1)!.position }
    : await whereItEnds(deps, request, ordered, batch);
  // What is held back is pending now: only a durable that is put back delivers it again.
  const next = { cursor: lastPosition(request, batch) + 1, consumerSequence: holds ? null : consumerSequence };
  const found = { ...next, batch, end, putBack, streamLast, pulledAhead, ...(stretch === null ? {} : { stretch }) };
  return await writePulled(deps, request, found, { began, dataRoot }, signal);
}

async function writePulled(
  deps: StepDeps,
  request: DeliverRequest,
  { batch, ...pulled }: PulledBatch,
  { began, dataRoot }: { readonly began: number; readonly dataRoot: string | null },
  signal: AbortSignal,
): Promise<Delivered> {
  signal.throwIfAborted();
  const writeBegan = performance.now();
  const { written, duplicate, rejects, ...rest } = await writeBatch(deps, request, batch.fresh, signal);
  const settled = [...batch.settledBefore, ...batch.fresh];
  return {
    ...pulled,
    receipt: receiptFor(request, settled),
    written,
    duplicate,
    skipped: batch.settledBefore.length + rest.skipped,
    ...(rest.children === undefined ? {} : { children: rest.children }),
    bytes: settled.reduce((sum, record) => sum + record.payload.length, 0),
    rejects: rejects.slice(0, request.rejectsAllowed + 1).map((reject) => inPartition(request, reject)),
    rejected: rejects.length,
    drift: isDrift(batch.fresh.length, rejects),
    counted: batch.fresh.filter((record) => record.position <= request.countedTo).length,
    dataRoot,
    pullMs: Math.round(writeBegan - began),
    writeMs: Math.round(performance.now() - writeBegan),
    ...(request.adaptiveRecords == null ? {} : { adaptiveRecords: request.adaptiveRecords }),
  };
}

function receiptFor({ replay, maxAckPending }: DeliverRequest, settled: readonly PulledRecord[]): Receipt | null {
  const receipt = receiptOf(replay, settled);
  if (receipt === null || replay.topic === undefined) return receipt;
  return { ...receipt, lane: { owner: replay.owner, filters: replay.filters, maxAckPending } };
}

function inPartition({ replay: { topic } }: DeliverRequest, reject: Reject): Reject {
  return topic === undefined ? reject : { ...reject, partition: topic.partition };
}

function boundsOf({ cursor, last, endTimeNanos }: DeliverRequest): Bounds {
  return { cursor, last, endTimeNanos: endTimeNanos === null ? null : BigInt(endTimeNanos) };
}

function lastPosition({ cursor }: DeliverRequest, { fresh }: Batch<PulledRecord>): number {
  return fresh.at(-1)?.position ?? cursor - 1;
}

function reachesEnd(request: DeliverRequest, batch: Batch<PulledRecord>): boolean {
  return batch.beyondEnd || (request.last !== null && lastPosition(request, batch) >= request.last);
}

interface End {
  readonly end: Delivery['end'];
  readonly streamLast: number;
}

/** Fewer records than asked is not the end: only the server's word, and the stream's own last sequence, are. */
async function whereItEnds(
  { source }: StepDeps,
  request: DeliverRequest,
  { pulled, consumerSequence }: OrderedPull,
  batch: Batch<PulledRecord>,
): Promise<End> {
  const { replay, last } = request;
  const reached = lastPosition(request, batch);
  if (reachesEnd(request, batch)) return { end: 'end_of_range', streamLast: reached };
  if (pulled.end !== 'drained') return { end: 'more', streamLast: reached };
  const { lastSequence } = await source.describe(replay.stream);
  if (last === null || lastSequence < last) return { end: 'drained', streamLast: lastSequence };
  // In this order: records that arrived between the pull and the look at the stream are pending now.
  const consumer = await source.readConsumer(replay.stream, replay.durable);
  const { owner } = replay;
  const undisturbed = decideConsumer(consumer, { owner, predecessor: null, consumerSequence, attempt: 1 }) === 'keep';
  const nothingLeft = undisturbed && consumer?.pending === 0;
  return { end: nothingLeft ? 'end_of_range' : 'more', streamLast: lastSequence };
}

/** Sinks below a data root must find the same root in every batch of a run. */
async function pinnedDataRoot({ targets, dataRoot }: StepDeps, request: DeliverRequest): Promise<string | null> {
  if (!targets.isLocal(request.target.sink)) return null;
  const found = request.dataRoot === null ? await dataRoot.readOrCreate() : await dataRoot.read();
  if (found === null) throw new ReplayFault('sink_missing', 'the data root');
  if (request.dataRoot !== null && found !== request.dataRoot) throw new ReplayFault('wrong_root');
  return found;
}

async function writeBatch(
  deps: StepDeps,
  request: DeliverRequest,
  records: readonly PulledRecord[],
  signal: AbortSignal,
): Promise<Tally & { readonly children?: readonly ChildTally[] }> {
  if (records.length === 0) return { written: 0, duplicate: 0, skipped: 0, rejects: [] };
  const { durable, owner } = request.replay;
  const borrowed = await deps.sinks.borrow(
    { target: request.target, plan: durable, run: owner.firstRunId, begun: request.begun },
    signal,
  );
  try {
    const grace = graceSignal(signal);
    const outcomes = await borrowed.sink.write(records, grace).finally(grace.clear);
    const tally = tallyOutcomes(records, outcomes, borrowed.sink.capabilities.maxRecordBytes);
    const children = borrowed.sink.childTallies?.();
    await borrowed.giveBack('good');
    return children === undefined ? tally : { ...tally, children };
  } catch (error) {
    await borrowed.giveBack('broken');
    throw error;
  }
}

import { Context } from '@temporalio/activity';
import { addTallies, type ChildTally } from '../core/children.ts';
import { adaptBatchRecords } from '../core/pacing.ts';
import type { Acknowledged, DeliverRequest, Delivery, EarlierBatch, EarlierBatches } from '../core/steps.ts';
import { pullAndWrite, type Delivered } from './pull-and-write.ts';
import { beginAck, noAck, type RidingAck } from './riding-ack.ts';
import { step, type StepDeps } from './step.ts';

/** Bounds the result of a step, which the history keeps. */
const earlierBatchesMax = 20;

/**
 * Pulls a batch from the plan's durable and writes it to the sink, beside the ACK of the batch before. While the sink refuses
 * nothing, it goes on with further batches for the time that the request allows. The last batch is not acknowledged here: the
 * workflow decides about it.
 */
export function makeDeliverBatch(deps: StepDeps): (request: DeliverRequest) => Promise<Delivery> {
  return (request) => step(deps.faults, (signal) => deliverBatches(deps, request, signal));
}

async function deliverBatches(deps: StepDeps, request: DeliverRequest, signal: AbortSignal): Promise<Delivery> {
  const began = performance.now();
  const lost = Context.current().info.attempt > 1;
  // After a lost attempt the durable is put back, and with that the ACK is settled.
  const ridden = request.acknowledge == null || lost ? noAck : beginAck(deps.source, request.acknowledge, signal);
  let last = await beside(ridden, () => pullAndWrite(deps, request, { ack: ridden, lost }, signal));
  let { putBack } = last;
  let earlier: EarlierBatches | null = null;
  for (let left = request.furtherRecords ?? 0; left > 0 && mayGoOn(last) && !signal.aborted;) {
    if (performance.now() - began >= request.furtherMs || earlier?.batches.length === earlierBatchesMax) break;
    const further = await deliverFurther(deps, followingRequest(request, last, left), last, signal);
    if (further === null) {
      // Nobody knows what was pulled. What went wrong is found again by the next step, and told there.
      last = { ...last, consumerSequence: null };
      break;
    }
    earlier = joinEarlier(earlier, last, further);
    last = further.delivered;
    putBack ||= last.putBack;
    left -= last.written + last.duplicate + last.rejected;
  }
  return { ...last, putBack, acknowledged: await ridden.ended, earlier };
}

/** Nothing stands between the batch and its ACK, and there is a next one. */
function mayGoOn({ receipt, rejected, end, consumerSequence }: Delivered): boolean {
  return receipt !== null && rejected === 0 && end === 'more' && consumerSequence !== null;
}

function followingRequest(request: DeliverRequest, last: Delivered, left: number): DeliverRequest {
  const { cursor, consumerSequence, dataRoot } = last;
  const adaptiveRecords = adapted(last);
  const maxRecords = Math.min(adaptiveRecords ?? request.maxRecords, left);
  const further = { adaptiveRecords, maxRecords, furtherRecords: left - maxRecords };
  return { ...request, cursor, consumerSequence, dataRoot, ...further, waitMs: 0 };
}

/** null: the plan's own size holds. */
function adapted({ adaptiveRecords, written, duplicate, pullMs, writeMs }: Delivered): number | null {
  if (adaptiveRecords === undefined) return null;
  return adaptBatchRecords(adaptiveRecords, { records: written + duplicate, seconds: (pullMs + writeMs) / 1_000 });
}

interface Further {
  readonly delivered: Delivered;
  /** Of the batch before. */
  readonly acknowledged: Acknowledged;
}

/** null: it failed or was cancelled. The batch before is written, and may be acknowledged once more. */
async function deliverFurther(
  deps: StepDeps,
  request: DeliverRequest,
  before: Delivered,
  signal: AbortSignal,
): Promise<Further | null> {
  const ack = beginAck(deps.source, before.receipt!, signal);
  try {
    const delivered = await beside(ack, () => pullAndWrite(deps, request, { ack, lost: false }, signal));
    return { delivered, acknowledged: (await ack.ended)! };
  } catch {
    return null;
  }
}

async function beside<T>(ack: RidingAck, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } finally {
    await ack.ended;
  }
}

function joinEarlier(earlier: EarlierBatches | null, before: Delivered, { delivered, acknowledged }: Further): EarlierBatches {
  const acked = (earlier?.acknowledged.acked ?? 0) + acknowledged.acked;
  const deferred = (earlier?.acknowledged.deferred ?? 0) + acknowledged.deferred;
  return {
    acknowledged: delivered.putBack ? { acked: acked + deferred, deferred: 0 } : { acked, deferred },
    cursor: before.cursor,
    ...joinChildren(earlier?.children, before.children),
    batches: [...(earlier?.batches ?? []), earlierBatch(before)],
  };
}

function joinChildren(
  some: readonly ChildTally[] | undefined,
  more: readonly ChildTally[] | undefined,
): Pick<EarlierBatches, 'children'> {
  return more === undefined ? {} : { children: addTallies(some ?? [], more) };
}

function earlierBatch(batch: Delivered): EarlierBatch {
  const { written, duplicate, skipped, bytes, counted, pulledAhead, pullMs, writeMs } = batch;
  const { firstSequence: first, lastSequence: last } = batch.receipt!;
  const moved = { written, duplicate, skipped, bytes, counted };
  return { first, last, ...moved, ...(pulledAhead === undefined ? {} : { pulledAhead }), pullMs, writeMs };
}

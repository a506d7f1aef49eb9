import { setTimeout as sleep } from 'node:timers/promises';
import { arrangeBatch, type Batch } from '../core/batch.ts';
import { decideConsumer } from '../core/consumer.ts';
import { ReplayFault } from '../core/errors.ts';
import type { Span } from '../core/group.ts';
import type { Reject } from '../core/record.ts';
import type { DeliverRequest, Delivery, ReplayRef } from '../core/steps.ts';
import { TopicError } from '../core/topic-errors.ts';
import type { PulledRecord } from '../jetstream/source.ts';
import type { Partition } from '../jetstream/topics/partition-stream.ts';
import type { LogPart } from '../jetstream/topics/replay-log.ts';
import type { StepDeps } from './step.ts';

/** A batch before it is written. */
export interface PulledBatch extends Pick<
  Delivery,
  'cursor' | 'consumerSequence' | 'end' | 'putBack' | 'streamLast' | 'stretch'
> {
  readonly batch: Batch<PulledRecord>;
  readonly pulledAhead: boolean;
  readonly gone?: Span;
}

/** Between two looks at a partition that gives nothing. */
const idlePollMs = 250;

/**
 * The next batch of one partition of a topic, cold or hot. It is read from the log, not pulled: the durable of the partition is
 * the claim of this run, and keeps how far it has settled.
 */
export async function pullLane(deps: StepDeps, request: DeliverRequest, signal: AbortSignal): Promise<PulledBatch> {
  const { replay, cursor, last, endTimeNanos } = request;
  const partition = await openLane(deps, replay);
  await claim(deps, request);
  const part = await readWaiting(deps, partition, request, signal);
  if (part.gone !== null) return passedGap(request, part, part.gone.next + 1);
  const bounds = { cursor, last, endTimeNanos: endTimeNanos === null ? null : BigInt(endTimeNanos) };
  const batch = arrangeBatch(part.records, bounds);
  const next = (batch.fresh.at(-1)?.position ?? cursor - 1) + 1;
  const atEnd = batch.beyondEnd || (last !== null && next > last);
  const end = atEnd ? 'end_of_range' : next > part.next ? 'drained' : 'more';
  return { batch, cursor: next, consumerSequence: null, end, putBack: false, streamLast: part.next, pulledAhead: false };
}

/** Nobody can bring back what the log no longer holds: the cursor passes it, and the run names it. */
function passedGap({ last }: DeliverRequest, { gone, next }: LogPart, cursor: number): PulledBatch {
  const to = last === null ? cursor : Math.min(cursor, last + 1);
  return {
    batch: { fresh: [], settledBefore: [], beyondEnd: false },
    cursor: to,
    gone: { first: gone!.first, next: to - 1 },
    consumerSequence: null,
    end: last !== null && to > last ? 'end_of_range' : 'more',
    putBack: false,
    streamLast: next,
    pulledAhead: false,
  };
}

/** The partition that the run was pinned to. */
async function openLane({ topics }: StepDeps, { topic, stream, incarnation }: ReplayRef): Promise<Partition> {
  const opened = await inFaults(() => topics.open(topic!.name));
  const partition = opened.partitions[topic!.partition];
  if (partition?.stream === stream && partition.incarnation === incarnation) return partition;
  throw new ReplayFault('stream_recreated', 'the topic was created anew');
}

/** What a topic answers, in the words of a run. */
async function inFaults<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof TopicError)) throw error;
    if (error.code === 'topic_missing') throw new ReplayFault('stream_missing', 'the topic was deleted', { cause: error });
    if (error.code === 'topic_broken') throw new ReplayFault('stream_recreated', error.detail, { cause: error });
    throw new ReplayFault('unexpected', error.code, { cause: error });
  }
}

async function claim({ source }: StepDeps, { replay, cursor, maxAckPending }: DeliverRequest): Promise<void> {
  const { stream, incarnation, durable, filters, owner, predecessor } = replay;
  const seen = await source.readConsumer(stream, durable);
  const consumerSequence = (seen?.delivered.consumer ?? 0) + 1;
  const decision = decideConsumer(seen, { owner, predecessor, consumerSequence, attempt: 1 });
  if (typeof decision === 'object') throw new ReplayFault(decision.fault);
  if (decision === 'put_back') await source.putBack({ stream, incarnation, durable, filters, owner, maxAckPending }, cursor);
}

async function readWaiting(
  { topics }: StepDeps,
  partition: Partition,
  { cursor, maxRecords, maxBytes, waitMs }: DeliverRequest,
  signal: AbortSignal,
): Promise<LogPart> {
  const request = { from: cursor - 1, limit: maxRecords, bytesMax: maxBytes };
  for (const began = performance.now(); ;) {
    const part = await inFaults(() => topics.read(partition, request, signal));
    const left = waitMs - (performance.now() - began);
    if (part.records.length > 0 || part.gone !== null || left <= 0) return part;
    await sleep(Math.min(idlePollMs, left), undefined, { signal });
  }
}

/** The record that was refused; null when the log no longer holds it. */
export async function readLaneRecord(
  deps: StepDeps,
  replay: ReplayRef,
  { sequence, time }: Reject,
  signal: AbortSignal,
): Promise<PulledRecord | null> {
  const partition = await openLane(deps, replay);
  const request = { from: sequence - 1, limit: 1, bytesMax: 1 };
  const [record] = (await inFaults(() => deps.topics.read(partition, request, signal))).records;
  return record?.timeNanos === BigInt(time) ? record : null;
}

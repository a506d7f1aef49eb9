import { Context } from '@temporalio/activity';
import {
  arrangeBatch,
  continuesConsumer,
  isDrift,
  receiptOf,
  tallyOutcomes,
  type Batch,
  type Bounds,
  type Tally,
} from '../core/batch.ts';
import { decideConsumer } from '../core/consumer.ts';
import { ReplayFault } from '../core/errors.ts';
import type { DeliverRequest, Delivery, ReplayRef } from '../core/steps.ts';
import type { ConsumerSpec, Pulled, PulledRecord, Source } from '../jetstream/source.ts';
import type { Deps } from './deps.ts';
import { step, type StepDeps } from './step.ts';

/** How long a write may go on after a cancellation before it is aborted, milliseconds. */
const writeGraceMs = 3_000;
/** Puts the durable back this often within one attempt before the step fails. */
const putBacksMax = 3;

/** Pulls a batch from the plan's durable and writes it to the sink. Acknowledges nothing. */
export function makeDeliverBatch(deps: StepDeps): (request: DeliverRequest) => Promise<Delivery> {
  return (request) => step(deps.faults, (signal) => deliverBatch(deps, request, signal));
}

async function deliverBatch(deps: Deps, request: DeliverRequest, signal: AbortSignal): Promise<Delivery> {
  const { replay } = request;
  const began = performance.now();
  const dataRoot = await pinnedDataRoot(deps, request);
  const ordered = await pullInOrder(deps, request, signal);
  const { pulled, putBack, consumerSequence } = ordered;
  const batch = arrangeBatch(pulled.records, boundsOf(request));
  const { end, streamLast } = await whereItEnds(deps, request, ordered, batch);
  signal.throwIfAborted();
  const writeBegan = performance.now();
  const { written, duplicate, rejects } = await writeBatch(deps, request, batch.fresh, signal);
  const settled = [...batch.settledBefore, ...batch.fresh];
  return {
    receipt: receiptOf(replay, settled),
    written,
    duplicate,
    skipped: batch.settledBefore.length,
    bytes: settled.reduce((sum, record) => sum + record.payload.length, 0),
    rejects: rejects.slice(0, request.rejectsAllowed + 1),
    rejected: rejects.length,
    drift: isDrift(batch.fresh.length, rejects),
    cursor: (batch.fresh.at(-1)?.position ?? request.cursor - 1) + 1,
    consumerSequence,
    end,
    putBack,
    counted: batch.fresh.filter((record) => record.position <= request.countedTo).length,
    streamLast,
    dataRoot,
    pullMs: Math.round(writeBegan - began),
    writeMs: Math.round(performance.now() - writeBegan),
  };
}

function boundsOf({ cursor, last, endTimeNanos }: DeliverRequest): Bounds {
  return { cursor, last, endTimeNanos: endTimeNanos === null ? null : BigInt(endTimeNanos) };
}

interface OrderedPull {
  readonly pulled: Pulled;
  readonly putBack: boolean;
  /** The consumer sequence that follows this pull; null when the durable must be put back first. */
  readonly consumerSequence: number | null;
}

/** Pulls what follows the cursor, putting the durable back where somebody or something came between. */
async function pullInOrder({ source }: Deps, request: DeliverRequest, signal: AbortSignal): Promise<OrderedPull> {
  const { replay } = request;
  const { attempt } = Context.current().info;
  let expected = request.consumerSequence;
  for (let putBacks = 0; ;) {
    const seen = await source.readConsumer(replay.stream, replay.durable);
    const decision = decideConsumer(seen, {
      owner: replay.owner,
      predecessor: replay.predecessor,
      consumerSequence: expected,
      attempt: putBacks === 0 ? attempt : 1,
    });
    if (typeof decision === 'object') throw new ReplayFault(decision.fault);
    if (decision === 'put_back') {
      if (putBacks === putBacksMax) throw new ReplayFault('consumer_disturbed');
      await source.putBack(consumerSpec(request), request.cursor);
      putBacks++;
      expected = 1;
    }
    const first = expected ?? 1;
    const pulled = await source.pull(
      {
        stream: replay.stream,
        incarnation: replay.incarnation,
        durable: replay.durable,
        maxRecords: request.maxRecords,
        maxBytes: request.maxBytes,
        waitMs: request.waitMs,
      },
      signal,
    );
    const inOrder = continuesConsumer(pulled.records, first) && (await broughtAll(source, replay, pulled, first));
    if (inOrder && (pulled.end !== 'broken' || pulled.records.length > 0)) {
      const next = pulled.end === 'broken' ? null : first + pulled.records.length;
      return { pulled, putBack: putBacks > 0, consumerSequence: next };
    }
    expected = null;
  }
}

/** What somebody else pulled makes the durable look drained: only its own count tells that all of it came here. */
async function broughtAll(source: Source, replay: ReplayRef, pulled: Pulled, first: number): Promise<boolean> {
  if (pulled.end !== 'drained') return true;
  const consumer = await source.readConsumer(replay.stream, replay.durable);
  return consumer !== null && consumer.delivered.consumer === first - 1 + pulled.records.length;
}

function consumerSpec({ replay, maxAckPending }: Pick<DeliverRequest, 'replay' | 'maxAckPending'>): ConsumerSpec {
  const { stream, incarnation, durable, filters, owner } = replay;
  return { stream, incarnation, durable, filters, owner, maxAckPending };
}

interface End {
  readonly end: Delivery['end'];
  readonly streamLast: number;
}

/** Fewer records than asked is not the end: only the server's word, and the stream's own last sequence, are. */
async function whereItEnds(
  { source }: Deps,
  request: DeliverRequest,
  { pulled, consumerSequence }: OrderedPull,
  batch: Batch<PulledRecord>,
): Promise<End> {
  const { replay, last } = request;
  const reached = batch.fresh.at(-1)?.position ?? request.cursor - 1;
  if (batch.beyondEnd || (last !== null && reached >= last)) return { end: 'end_of_range', streamLast: reached };
  if (pulled.end !== 'drained') return { end: 'more', streamLast: reached };
  const { lastSequence } = await source.describe(replay.stream);
  if (last === null || lastSequence < last) return { end: 'drained', streamLast: lastSequence };
  // In this order: records that arrived between the pull and the look at the stream are pending now.
  const consumer = await source.readConsumer(replay.stream, replay.durable);
  const nothingLeft = consumer?.pending === 0 && consumer.delivered.consumer + 1 === consumerSequence;
  return { end: nothingLeft ? 'end_of_range' : 'more', streamLast: lastSequence };
}

/** Sinks below a data root must find the same root in every batch of a run. */
async function pinnedDataRoot({ targets, dataRoot }: Deps, request: DeliverRequest): Promise<string | null> {
  if (!targets.isLocal(request.target.sink.type)) return null;
  const found = request.dataRoot === null ? await dataRoot.readOrCreate() : await dataRoot.read();
  if (found === null) throw new ReplayFault('sink_missing', 'the data root');
  if (request.dataRoot !== null && found !== request.dataRoot) throw new ReplayFault('wrong_root');
  return found;
}

async function writeBatch(
  deps: Deps,
  request: DeliverRequest,
  records: readonly PulledRecord[],
  signal: AbortSignal,
): Promise<Tally> {
  if (records.length === 0) return { written: 0, duplicate: 0, rejects: [] };
  const { durable, owner } = request.replay;
  const borrowed = await deps.sinks.borrow(
    { target: request.target, plan: durable, run: owner.firstRunId, begun: request.begun },
    signal,
  );
  try {
    const grace = graceSignal(signal);
    const tally = tallyOutcomes(records, await borrowed.sink.write(records, grace).finally(grace.clear));
    await borrowed.giveBack('good');
    return tally;
  } catch (error) {
    await borrowed.giveBack('broken');
    throw error;
  }
}

/** Aborts some time after the cancellation, so that a write in flight may finish and be settled. */
function graceSignal(signal: AbortSignal): AbortSignal & { readonly clear: () => void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(() => controller.abort(signal.reason), writeGraceMs);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  const clear = (): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  };
  return Object.assign(controller.signal, { clear });
}

import { continuesConsumer } from '../core/batch.ts';
import { decideConsumer } from '../core/consumer.ts';
import { ReplayFault } from '../core/errors.ts';
import type { DeliverRequest, ReplayRef } from '../core/steps.ts';
import type { ConsumerSpec, Pulled, PullRequest, Source } from '../jetstream/source.ts';
import type { StepDeps } from './step.ts';

/** Puts the durable back this often within one attempt before the step fails. */
const putBacksMax = 3;

export interface OrderedPull {
  readonly pulled: Pulled;
  readonly putBack: boolean;
  readonly pulledAhead: boolean;
  /** The consumer sequence that follows this pull; null when the durable must be put back first. */
  readonly consumerSequence: number | null;
}

/**
 * Pulls what follows the cursor, putting the durable back where somebody or something came between. `lost`: an attempt of this
 * step was lost, and what it pulled is still pending.
 */
export async function pullInOrder(
  deps: StepDeps,
  request: DeliverRequest,
  lost: boolean,
  signal: AbortSignal,
): Promise<OrderedPull> {
  const { replay } = request;
  const { source } = deps;
  const ahead = await pulledAhead(deps, request, lost, signal);
  if (ahead !== null) return ahead;
  let attempt = lost ? 2 : 1;
  let expected = request.consumerSequence;
  for (let putBacks = 0; ;) {
    const seen = await source.readConsumer(replay.stream, replay.durable);
    const { owner, predecessor } = replay;
    const decision = decideConsumer(seen, { owner, predecessor, consumerSequence: expected, attempt });
    if (typeof decision === 'object') throw new ReplayFault(decision.fault);
    if (decision === 'put_back') {
      if (putBacks === putBacksMax) throw new ReplayFault('consumer_disturbed');
      await source.putBack(consumerSpec(request), request.cursor);
      putBacks++;
      attempt = 1;
      expected = 1;
    }
    const first = expected ?? 1;
    const pulled = await source.pull(pullRequest(request, request.maxRecords), signal);
    if (await isInOrder(source, replay, pulled, first))
      return { ...ordered(pulled, first), putBack: putBacks > 0, pulledAhead: false };
    expected = null;
  }
}

function ordered(pulled: Pulled, first: number): Pick<OrderedPull, 'pulled' | 'consumerSequence'> {
  return { pulled, consumerSequence: pulled.end === 'broken' ? null : first + pulled.records.length };
}

function pullRequest({ replay, maxBytes, waitMs }: DeliverRequest, maxRecords: number): PullRequest {
  const { stream, incarnation, durable } = replay;
  return { stream, incarnation, durable, maxRecords, maxBytes, waitMs };
}

/**
 * Whether the pull brought all that the durable delivered since, and nothing was passed over. The numbers of the records tell
 * of those that others pulled in between; only the durable itself tells of those that others pulled last, and of filters that
 * somebody changed meanwhile, which make it look drained or skip records without a hole in its numbers.
 */
async function isInOrder(source: Source, replay: ReplayRef, pulled: Pulled, first: number): Promise<boolean> {
  const { records, end } = pulled;
  if (!continuesConsumer(records, first) || (end === 'broken' && records.length === 0)) return false;
  const seen = await source.readConsumer(replay.stream, replay.durable);
  const consumerSequence = end === 'broken' && seen !== null ? seen.delivered.consumer + 1 : first + records.length;
  return decideConsumer(seen, { owner: replay.owner, predecessor: null, consumerSequence, attempt: 1 }) === 'keep';
}

/** The batch that was pulled while the one before was written, if nothing came between; else it is pulled again. */
async function pulledAhead(
  deps: StepDeps,
  request: DeliverRequest,
  lost: boolean,
  signal: AbortSignal,
): Promise<OrderedPull | null> {
  const { replay, consumerSequence } = request;
  if (consumerSequence === null || lost) {
    deps.prefetch.drop(replay.owner.firstRunId, replay.durable);
    return null;
  }
  const place = { run: replay.owner.firstRunId, durable: replay.durable, consumerSequence };
  const pulled = await deps.prefetch.take(place, pullRequest(request, request.maxRecords), signal);
  if (pulled === null || !(await isInOrder(deps.source, replay, pulled, consumerSequence))) return null;
  return { ...ordered(pulled, consumerSequence), putBack: false, pulledAhead: true };
}

/** Begins the pull of the batch after this one, for this step or the next. */
export function pullNextAhead(
  deps: StepDeps,
  request: DeliverRequest,
  { pulled, consumerSequence }: OrderedPull,
  more: boolean,
): void {
  if (consumerSequence === null) return;
  const { owner, durable } = request.replay;
  const delivered = pulled.records.length;
  const place = { run: owner.firstRunId, durable, consumerSequence: consumerSequence - delivered };
  const records = Math.min(request.maxRecords, request.furtherRecords ?? 0);
  const next = more && pulled.end === 'full' && records > 0;
  deps.prefetch.begin(place, delivered, next ? { ...pullRequest(request, records), waitMs: 0 } : null);
}

function consumerSpec({ replay, maxAckPending }: Pick<DeliverRequest, 'replay' | 'maxAckPending'>): ConsumerSpec {
  const { stream, incarnation, durable, filters, owner } = replay;
  return { stream, incarnation, durable, filters, owner, maxAckPending };
}

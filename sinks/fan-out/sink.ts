import type { ChildTally } from '../../core/children.ts';
import { ReplayFault } from '../../core/errors.ts';
import { joinRanges, rangesOf } from '../../core/ranges.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import type { Finding, Sink, SinkCapabilities, SinkContext } from '../sink.ts';
import { Child } from './child.ts';
import type { ChildOutcomes } from './child.ts';
import type { FanOutConfig } from './config.ts';
import { createRouter } from './routing.ts';
import type { Route } from './routing.ts';

const BATCH_RECORDS_MAX = 10_000;
/** Ranges that one batch may add to those of a child. */
const BATCH_RANGES_MAX = 200;

const SKIPPED: Outcome = { kind: 'skipped' };
const NO_ROUTE: Outcome = { kind: 'rejected', code: 'no_route' };

export function createFanOutSink(config: FanOutConfig, context: SinkContext): Sink {
  return new FanOutSink(config, context);
}

/** What one child was given, and answered. */
interface Part {
  readonly child: Child;
  readonly batch: readonly ReplayRecord[];
  readonly outcomes: ChildOutcomes;
}

class FanOutSink implements Sink {
  readonly capabilities: SinkCapabilities = {
    keys: ['stream_sequence', 'message_id', 'payload_field'],
    transactional: false,
    maxBatchRecords: BATCH_RECORDS_MAX,
  };
  readonly #children: readonly Child[];
  readonly #routeOf: (record: ReplayRecord) => Route;
  readonly #only: string | undefined;
  #tallies: readonly ChildTally[] = [];

  constructor(config: FanOutConfig, context: SinkContext) {
    this.#only = config.only;
    this.#routeOf = createRouter(config);
    this.#children = Object.entries(config.sinks)
      .filter(([name]) => config.only === undefined || name === config.only)
      .map(([name, child]) => new Child(name, child, { required: child.required || name === config.only, context }));
  }

  async open(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await allDone(this.#children.map((child) => child.open(signal)));
  }

  async write(batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]> {
    signal.throwIfAborted();
    const routes = batch.map((record) => this.#routed(record));
    const parts = await allDone(
      this.#children.map(async (child): Promise<Part> => {
        const some = batch.filter((_, i) => routes[i]!.includes(child.name));
        return { child, batch: some, outcomes: await child.write(some, signal) };
      }),
    );
    const found = parts.map(({ child, batch: some, outcomes }) => ({ child, byRecord: byRecord(some, outcomes) }));
    const outcomes = batch.map((record, i) => outcomeOf(record, routes[i]!, found));
    this.#tallies = parts.map(tallyOf);
    return outcomes;
  }

  /** Of the last write. */
  childTallies(): readonly ChildTally[] {
    return this.#tallies;
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    signal.throwIfAborted();
    return (await allDone(this.#children.map((child) => child.probe(signal)))).flat();
  }

  async close(): Promise<void> {
    await allDone(this.#children.map((child) => child.close()));
  }

  #routed(record: ReplayRecord): Route {
    const route = this.#routeOf(record);
    if (this.#only === undefined) return route;
    return route.includes(this.#only) ? [this.#only] : 'skip';
  }
}

type Found = { readonly child: Child; readonly byRecord: ReadonlyMap<ReplayRecord, Outcome | null> };

function byRecord(batch: readonly ReplayRecord[], outcomes: ChildOutcomes): ReadonlyMap<ReplayRecord, Outcome | null> {
  return new Map(batch.map((record, i) => [record, outcomes === null ? null : outcomes[i]!]));
}

/**
 * A reject of a required child is a reject. Otherwise the first required child that takes the record says whether it was there
 * already. A record that only optional children take needs one of them to have it: it must be durable somewhere.
 */
function outcomeOf(record: ReplayRecord, route: Route, found: readonly Found[]): Outcome {
  if (route === 'reject') return NO_ROUTE;
  if (route === 'skip') return SKIPPED;
  const takers = found.filter(({ byRecord: answers }) => answers.has(record));
  const required = takers.filter(({ child }) => child.required);
  const counting = required.length > 0 ? required : takers;
  const answers = counting.flatMap(({ child, byRecord: of }) => {
    const outcome = of.get(record) ?? null;
    return outcome === null ? [] : [{ child, outcome }];
  });
  const refusal = answers.find(({ outcome }) => outcome.kind === 'rejected');
  const settled = answers.find(({ outcome }) => outcome.kind !== 'rejected');
  if (refusal !== undefined && (required.length > 0 || settled === undefined))
    return inChild(refusal.child.name, refusal.outcome);
  if (settled !== undefined) return settled.outcome;
  throw new ReplayFault('sink_unreachable', 'a record that only optional children take, and none of them could');
}

function inChild(name: string, outcome: Outcome): Outcome {
  if (outcome.kind !== 'rejected') return outcome;
  return { ...outcome, field: outcome.field === undefined ? name : `${name}.${outcome.field}` };
}

function tallyOf({ child, batch, outcomes }: Part): ChildTally {
  const count = (kind: Outcome['kind']) => outcomes?.filter((outcome) => outcome.kind === kind).length ?? 0;
  const missing = child.required ? [] : batch.filter((_, i) => outcomes === null || outcomes[i]!.kind === 'rejected');
  return {
    name: child.name,
    required: child.required,
    written: count('written'),
    duplicate: count('duplicate'),
    rejected: count('rejected'),
    failed: outcomes === null ? batch.length : 0,
    missing: joinRanges(rangesOf(missing.map(({ sequence }) => Number(sequence))), [], BATCH_RANGES_MAX),
  };
}

/** Promise.all, but no promise is left running when it throws. A fault that stops wins over one that passes. */
async function allDone<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  const failed = settled.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failed.length > 0) throw failed.find((error) => error instanceof ReplayFault && error.kind === 'stop') ?? failed[0];
  return settled.map((result) => (result as PromiseFulfilledResult<T>).value);
}

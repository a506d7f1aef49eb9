import type { Owner } from '../../../core/consumer.ts';
import { ReplayFault } from '../../../core/errors.ts';
import { decodeRuns } from '../../../core/receipt.ts';
import type { ReplayRecord } from '../../../core/record.ts';
import type { Deps } from '../../../activities/deps.ts';
import type { ConsumerSpec, PulledRecord, Source } from '../../../jetstream/source.ts';
import type { Random } from './random.ts';

/** The worker is gone: thrown from any effect, and by every effect until the next attempt begins. */
export class WorkerLost extends Error {}
/** Somebody terminates the run. */
export class Terminated extends Error {}

interface Consumer {
  readonly id: number;
  readonly owner: Owner | null;
  readonly start: number;
  altered: boolean;
  deliveredStream: number;
  deliveredConsumer: number;
  pending: Set<number>;
}

/** Somebody altered the filters of the durable: it delivers every other message only. */
function hides({ altered }: Consumer, sequence: number): boolean {
  return altered && sequence % 2 === 1;
}

/** A few records a second, and now and then a long gap. */
function timeNanosOf(n: number): bigint {
  return BigInt(n * 300 + Math.floor(n / 13) * 60_000) * 1_000_000n;
}

export interface Rates {
  /** One in so many effects; 0: never. */
  readonly crash: number;
  readonly meddle: number;
  readonly terminate: number;
}

export const stream = 'S';
const incarnation = '2026-01-01T00:00:00.000000000Z';

/** Stream, durable, destination and dead letters in memory, with faults between any two effects. */
export interface World {
  readonly deps: Deps;
  readonly messages: Map<number, { readonly bad: boolean }>;
  readonly last: number;
  /** In write order. */
  readonly rows: number[];
  readonly letters: Map<string, number>;
  /** null: there is no durable, or none whose floor can be trusted. */
  readonly ackFloor: () => number | null;
  readonly hasDurable: () => boolean;
  readonly ownerOfDurable: () => Owner | null;
  /** What happened, for a failing seed. */
  readonly trace: string[];
  /** Called once, inside the next delivery. */
  inNextDelivery: (() => Promise<void>) | null;
  /** What cut the worker off since that many cuts; null: nothing. */
  readonly cutOff: (since: number) => WorkerLost | Terminated | null;
  /** Times that a worker was cut off. */
  readonly cuts: () => number;
  /** A new attempt begins on a living worker. */
  revive(): void;
  /** No more faults from here on. */
  calm(): void;
}

export function createWorld(random: Random, size: { readonly last: number; readonly badOneIn: number }, rates: Rates): World {
  const messages = new Map<number, { readonly bad: boolean }>();
  for (let n = 1; n <= size.last; n++) if (!random.oneIn(9)) messages.set(n, { bad: random.oneIn(size.badOneIn) });
  messages.set(size.last, { bad: false });
  const rows: number[] = [];
  const present = new Set<number>();
  const letters = new Map<string, number>();
  const lettered = new Set<number>();
  const trace: string[] = [];
  let consumer: Consumer | null = null;
  let remembered: Consumer | null = null;
  let ids = 0;
  let cut: WorkerLost | Terminated | null = null;
  const cutsSoFar: (WorkerLost | Terminated)[] = [];
  let calm = false;

  const floorOf = (one: Consumer): number => {
    const open = Math.min(...one.pending);
    return one.pending.size > 0 ? open - 1 : Math.max(one.start - 1, one.deliveredStream);
  };
  const checkAcks = (): void => {
    if (consumer === null) return;
    const floor = floorOf(consumer);
    for (const n of messages.keys()) {
      if (n <= floor && !hides(consumer, n) && !present.has(n) && !lettered.has(n))
        throw new Error(`sequence ${n} is acknowledged and nowhere`);
    }
  };
  const copy = (one: Consumer | null): Consumer | null => one && { ...one, pending: new Set(one.pending) };

  /** One effect: it may be cut off before or after it took place; the world changes between any two of them. */
  async function effect<T>(name: string, act: () => T | Promise<T>): Promise<T> {
    if (cut !== null) throw cut;
    await Promise.resolve();
    meddle();
    die(`${name}, before`);
    const result = await act();
    trace.push(name);
    checkAcks();
    if (random.oneIn(5)) remembered = copy(consumer);
    die(`${name}, after`);
    return result;
  }
  function die(where: string): void {
    if (calm) return;
    if (rates.terminate > 0 && random.oneIn(rates.terminate)) {
      trace.push(`TERMINATED at ${where}`);
      throw cutBy(new Terminated());
    }
    if (rates.crash === 0 || !random.oneIn(rates.crash)) return;
    trace.push(`LOST at ${where}`);
    throw cutBy(new WorkerLost());
  }
  function cutBy(reason: WorkerLost | Terminated): Error {
    cutsSoFar.push(reason);
    return (cut = reason);
  }
  function meddle(): void {
    if (calm || rates.meddle === 0 || !random.oneIn(rates.meddle)) return;
    switch (random.below(6)) {
      case 0:
        trace.push('durable deleted');
        consumer = null;
        break;
      case 1:
        trace.push('durable altered');
        if (consumer !== null) consumer.altered = true;
        break;
      case 2:
        trace.push('somebody else pulls');
        if (consumer !== null) deliver(consumer, 1 + random.below(5));
        break;
      case 3:
        // A killed server forgets what it had not flushed of the durable that it has.
        trace.push('server killed');
        if (consumer !== null && remembered?.id === consumer.id) consumer = copy(remembered);
        break;
      case 4: {
        const gone = 1 + random.below(size.last - 1);
        trace.push(`message ${gone} deleted`);
        messages.delete(gone);
        consumer?.pending.delete(gone);
        break;
      }
      case 5:
        trace.push('connection lost');
        throw new ReplayFault('nats_unreachable');
    }
  }
  function deliver(one: Consumer, most: number): PulledRecord[] {
    const found: PulledRecord[] = [];
    for (let n = Math.max(one.start, one.deliveredStream + 1); n <= size.last && found.length < most; n++) {
      if (!messages.has(n) || hides(one, n)) continue;
      one.deliveredStream = n;
      one.deliveredConsumer++;
      one.pending.add(n);
      found.push(recordOf(n, one.deliveredConsumer));
    }
    return found;
  }
  const pendingOf = (one: Consumer): number =>
    [...messages.keys()].filter((n) => n > one.deliveredStream && n >= one.start && !hides(one, n)).length;

  const source: Source = {
    describe: () =>
      effect('describe', () => ({
        stream,
        incarnation,
        firstSequence: 1,
        lastSequence: size.last,
        messages: messages.size,
        bytes: messages.size,
        retention: 'limits' as const,
        subjects: ['s.>'],
        allowDirect: true,
        isMirror: false,
        origins: [],
        consumerLimits: { inactiveThresholdMs: null, maxAckPending: null },
        serverTimeNanos: 0n,
      })),
    sequenceAt: () => Promise.reject(new Error('not simulated')),
    count: (_, { first, last }) => {
      const inside = [...messages.keys()].filter((n) => n >= first && n <= last).length;
      return effect('count', () => ({ messages: inside, bytes: inside, exact: { messages: true, bytes: true } }));
    },
    timesRise: () => Promise.resolve(true),
    readConsumer: () =>
      effect('read durable', () =>
        consumer === null
          ? null
          : {
              owner: consumer.owner,
              completed: false,
              startSequence: 1,
              ackFloor: floorOf(consumer),
              delivered: { stream: consumer.deliveredStream, consumer: consumer.deliveredConsumer },
              pending: pendingOf(consumer),
              ackPending: consumer.pending.size,
              altered: consumer.altered ? ['filter_subjects'] : [],
            },
      ),
    async putBack(spec: ConsumerSpec, cursor: number) {
      await effect('delete durable', () => {
        if (consumer?.owner && consumer.owner.fingerprint !== spec.owner.fingerprint) throw new ReplayFault('consumer_taken');
        consumer = null;
      });
      await effect(`create durable at ${cursor}`, () => {
        const pending = new Set<number>();
        consumer = {
          id: ++ids,
          owner: spec.owner,
          start: cursor,
          altered: false,
          deliveredStream: cursor - 1,
          deliveredConsumer: 0,
          pending,
        };
      });
    },
    deleteConsumer: () => effect('delete durable', () => void (consumer = null)),
    markCompleted: () => Promise.reject(new Error('not simulated')),
    async pull(request) {
      const records = await effect(`pull ${request.maxRecords}`, () => {
        if (consumer === null) return null;
        // Every now and then the connection breaks in the middle.
        const most = !calm && random.oneIn(12) ? random.below(request.maxRecords) : request.maxRecords;
        return { found: deliver(consumer, most), short: most < request.maxRecords };
      });
      const during = world.inNextDelivery;
      world.inNextDelivery = null;
      await during?.();
      if (records === null) return { records: [], end: 'broken' };
      const { found, short } = records;
      if (short) return { records: found, end: 'broken' };
      return { records: found, end: found.length === request.maxRecords ? 'full' : 'drained' };
    },
    acknowledge: (receipt) =>
      effect(`ack to ${receipt.lastSequence}`, () => {
        if (consumer === null || consumer.deliveredStream < receipt.lastSequence) return 'deferred';
        for (const n of decodeRuns(receipt.runs)) consumer.pending.delete(n);
        return floorOf(consumer) >= receipt.lastSequence ? 'confirmed' : 'deferred';
      }),
    isBound: () => Promise.resolve(true),
    duplicateWindowMs: () => Promise.resolve(null),
    publishDeadLetter: ({ reject, replayId }) =>
      effect(`dead letter ${reject.sequence}`, () => {
        letters.set(replayId, reject.sequence);
        lettered.add(reject.sequence);
        return { duplicate: false, body: messages.has(reject.sequence) ? 'kept' : 'lost' };
      }),
  };

  async function write(batch: readonly ReplayRecord[]) {
    return await effect(`write ${batch.length} from ${batch[0]!.sequence}`, () =>
      batch.map((record) => {
        const n = Number(record.sequence);
        if (record.payload[0] === 1) return { kind: 'rejected' as const, code: 'too_large' as const };
        if (present.has(n)) return { kind: 'duplicate' as const };
        if (rows.length > 0 && rows.at(-1)! > n) throw new Error(`row ${n} comes after row ${rows.at(-1)}`);
        present.add(n);
        rows.push(n);
        return { kind: 'written' as const };
      }),
    );
  }
  const bads = new Set([...messages].filter(([, { bad }]) => bad).map(([n]) => n));
  function recordOf(n: number, consumerSequence: number): PulledRecord {
    const payload = Uint8Array.of(bads.has(n) ? 1 : 0);
    const rest = { stream, incarnation, subject: 's.a', headers: new Map(), redelivered: false };
    return { ...rest, sequence: BigInt(n), position: n, consumerSequence, timeNanos: timeNanosOf(n), payload };
  }

  const nothing = (): void => undefined;
  const capabilities = { keys: ['stream_sequence' as const], transactional: true, maxBatchRecords: 10_000 };
  const sink = {
    capabilities,
    write,
    open: () => Promise.resolve(),
    probe: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  };
  const world: World = {
    deps: {
      source,
      sinks: { borrow: () => Promise.resolve({ sink, giveBack: () => Promise.resolve() }) },
      targets: {
        resolve: () => Promise.reject(new Error('not simulated')),
        uncertified: () => null,
        isLocal: () => false,
        streamsWritten: () => [],
        unopened: () => Promise.reject(new Error('not simulated')),
      },
      spools: { isSpool: () => false, open: () => Promise.reject(new Error('not simulated')) },
      runs: {
        namespace: 'n',
        clusterId: () => Promise.resolve('c'),
        isOpen: () => Promise.resolve(false),
        cancel: () => Promise.resolve(),
        hasSearchAttributes: () => Promise.resolve(true),
      },
      reports: { write: () => Promise.resolve() },
      dataRoot: { read: () => Promise.resolve(null), readOrCreate: () => Promise.resolve('r') },
      // Not simulated.
      topics: undefined as never,
      sweeps: undefined as never,
      log: {
        info: nothing,
        warn: (fields, message) => void trace.push(`${message} ${String((fields as { error?: unknown }).error)}`),
        error: nothing,
      },
    },
    messages,
    last: size.last,
    rows,
    letters,
    ackFloor: () => (consumer === null || consumer.altered ? null : floorOf(consumer)),
    hasDurable: () => consumer !== null,
    ownerOfDurable: () => consumer?.owner ?? null,
    trace,
    inNextDelivery: null,
    cutOff: (since) => cutsSoFar.slice(since).find((one) => one instanceof Terminated) ?? cutsSoFar[since] ?? null,
    cuts: () => cutsSoFar.length,
    revive: () => void (cut = null),
    calm: () => void (calm = true),
  };
  return world;
}

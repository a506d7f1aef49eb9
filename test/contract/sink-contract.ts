import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, RejectCode, ReplayRecord } from '../../core/record.ts';
import { findSinkSpec } from '../../sinks/registry.ts';
import type { SinkSpec } from '../../sinks/registry.ts';
import type { Sink, SinkContext, SinkLog } from '../../sinks/sink.ts';
import { bodies, bytesOf, makeBatch, makeRecord, makeRecordsOf, oddEnvelopes } from './records.ts';

/** A kind of destination that the suite can try: one sink type in one mode. */
export interface Destination {
  readonly spec: SinkSpec;
  /** What `spec.modeOf` answers for its targets. */
  readonly mode: string;
  /** A new, empty place, reachable and sound. */
  create(): Promise<Place>;
}

export interface Place {
  /** The `sink` object of a target as a user writes it, without a literal secret. */
  readonly target: Readonly<Record<string, unknown>>;
  readonly surroundings: Pick<SinkContext, 'dataRoot' | 'secret' | 'streams'>;
  /** What must never stand in an error or a log line: passwords, paths, addresses. */
  readonly confidential: readonly string[];
  /** A target that cannot be written to, and of which `probe` must say so. */
  readonly badTarget: Readonly<Record<string, unknown>>;
  /** Fields to set in the target so that `spoil` makes a record that is refused for good. */
  readonly poison: {
    readonly fields: Readonly<Record<string, unknown>>;
    readonly code: RejectCode;
    spoil(record: ReplayRecord): ReplayRecord;
  };
  /** Takes the destination away from under its writers, and gives it back. Absent where nothing can be lost. */
  readonly connection?: { break(): Promise<void>; mend(): Promise<void> };
  /** What is stored, read without the sink, in the order of sequences within a stream. */
  readBack(): Promise<readonly StoredRecord[]>;
  /** The bytes that stand for this body in the destination, where they are not the same. */
  storedPayload?(payload: Uint8Array): Uint8Array;
  /** Anything that changes when something is made in the destination: to see that `probe` makes nothing. */
  traces(): Promise<unknown>;
  remove(): Promise<void>;
}

/** As far as the destination keeps it: what is undefined is not compared. */
export type StoredRecord = { readonly [Field in StoredField]?: Stored[Field] } & Pick<Stored, 'sequence' | 'payload'>;
type StoredField = keyof Stored;
interface Stored {
  readonly stream: string;
  readonly incarnation: string;
  readonly sequence: bigint;
  readonly subject: string;
  readonly timeNanos: bigint;
  readonly messageId: string | null;
  readonly headers: readonly (readonly [name: string, values: readonly string[]])[];
  readonly payload: Uint8Array;
  readonly plan: string;
  readonly run: string;
}

export interface ContractCase {
  readonly name: string;
  readonly needsConnection?: true;
  run(bench: Bench): Promise<void>;
}

export type CaseResult = 'passed' | 'not_applicable';

/** Runs one case in a new place. Throws what the case throws. */
export async function assertCase(contractCase: ContractCase, destination: Destination): Promise<CaseResult> {
  const place = await destination.create();
  const bench = new Bench(destination, place);
  try {
    if (contractCase.needsConnection && place.connection === undefined) return 'not_applicable';
    await contractCase.run(bench);
    bench.assertNothingTold();
    return 'passed';
  } finally {
    await bench.close();
    await place.remove();
  }
}

const PLAN = 'orders-replay-2026-05';
const RUN = '0198f6b2-6a1e-7d3f-8a53-0f0e4d1c2b3a';
const SETTLE_MS_MAX = 20_000;

/** Sinks on one place, and everything that they let out. */
export class Bench {
  readonly place: Place;
  readonly #destination: Destination;
  readonly #sinks: Sink[] = [];
  readonly #told: unknown[] = [];

  constructor(destination: Destination, place: Place) {
    this.#destination = destination;
    this.place = place;
  }

  /** Not opened yet. */
  async build(fields: Readonly<Record<string, unknown>> = {}, plan = PLAN): Promise<Sink> {
    return await this.buildFor({ ...this.place.target, ...fields }, plan);
  }

  async buildFor(target: Readonly<Record<string, unknown>>, plan = PLAN): Promise<Sink> {
    const { spec, mode } = this.#destination;
    const config = spec.config.parse(target) as Readonly<Record<string, unknown>>;
    assert.equal(spec.modeOf?.(config) ?? 'default', mode, 'the destination creates targets of its mode');
    const create = (await spec.load()) as unknown as (config: unknown, context: SinkContext) => Sink;
    const note: SinkLog['info'] = (fields, message) => void this.#told.push(fields, message);
    const context = this.#contextOf({
      ...this.place.surroundings,
      plan,
      run: RUN,
      begun: false,
      log: { info: note, warn: note },
    });
    const sink = create(config, context);
    this.#sinks.push(sink);
    return sink;
  }

  /** With children, for a sink that has some. */
  #contextOf(context: SinkContext): SinkContext {
    return {
      ...context,
      async child(sink) {
        const spec = findSinkSpec(String(sink['type']))!;
        const create = (await spec.load()) as unknown as (config: unknown, context: SinkContext) => Sink;
        return create(spec.config.parse(sink), context);
      },
    };
  }

  async open(fields: Readonly<Record<string, unknown>> = {}, plan = PLAN): Promise<Sink> {
    const sink = await this.build(fields, plan);
    await sink.open(never());
    return sink;
  }

  /** What it threw; it must be a fault with a code, or the reason of an abort. */
  async fault(work: Promise<unknown>): Promise<ReplayFault> {
    const error = await this.thrown(work);
    assert.ok(error instanceof ReplayFault, `expected a fault with a code, got ${String(error)}`);
    return error;
  }

  async thrown(work: Promise<unknown>): Promise<unknown> {
    const settled = await settle(work);
    assert.equal(settled.status, 'rejected', 'expected it to throw');
    this.#told.push(settled.reason);
    return settled.reason;
  }

  /** Settles whatever way; a rejection is kept for `assertNothingTold`. */
  async whatever(work: Promise<unknown>): Promise<'done' | 'thrown'> {
    const settled = await settle(work);
    if (settled.status === 'rejected') this.#told.push(settled.reason);
    return settled.status === 'rejected' ? 'thrown' : 'done';
  }

  /** Writes through new sinks until one succeeds, as the deliver step does after retry faults. */
  async writeUntilDone(batch: readonly ReplayRecord[], plan = PLAN): Promise<readonly Outcome[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        const sink = await this.open({}, plan);
        const outcomes = await sink.write(batch, never());
        await sink.close();
        return outcomes;
      } catch (error) {
        this.#told.push(error);
        if (attempt === 20 || !(error instanceof ReplayFault) || error.kind !== 'retry') throw error;
        await sleep(20 * attempt);
      }
    }
  }

  /** Everything stored is exactly these records, each once, in order. */
  async assertStored(records: readonly ReplayRecord[]): Promise<void> {
    const stored = await this.place.readBack();
    assert.deepEqual(
      stored.map(({ stream, sequence }) => `${stream ?? ''} ${sequence}`),
      records.map(({ stream, sequence }, i) => `${stored[i]?.stream === undefined ? '' : stream} ${sequence}`),
      'the stored sequences, in order',
    );
    records.forEach((record, i) => this.#assertSame(stored[i]!, record));
  }

  #assertSame(stored: StoredRecord, record: ReplayRecord): void {
    const { payload, ...envelope } = stored;
    const kept = Object.fromEntries(Object.entries(envelope).filter(([, value]) => value !== undefined));
    const wanted: Omit<Stored, 'payload'> = {
      stream: record.stream,
      incarnation: record.incarnation,
      sequence: record.sequence,
      subject: record.subject,
      timeNanos: record.timeNanos,
      messageId: record.messageId ?? null,
      headers: [...record.headers],
      plan: kept['plan'] === undefined ? '' : String(kept['plan']),
      run: RUN,
    };
    assert.deepEqual(kept, Object.fromEntries(Object.entries(wanted).filter(([field]) => field in kept)));
    const expected = this.place.storedPayload?.(record.payload) ?? record.payload;
    assert.ok(Buffer.from(payload).equals(expected), `the body of sequence ${record.sequence} is stored as it was`);
  }

  assertNothingTold(): void {
    const texts = this.#told.map((item) =>
      item instanceof Error
        ? [item.message, inspectCause(item)].join(' ')
        : typeof item === 'string'
          ? item
          : JSON.stringify(item),
    );
    for (const text of texts) {
      for (const secret of this.place.confidential) {
        assert.ok(!text.includes(secret), 'an error or a log line holds something confidential');
      }
    }
  }

  async close(): Promise<void> {
    for (const sink of this.#sinks) await sink.close();
  }
}

function inspectCause(error: Error): string {
  const detail = error instanceof ReplayFault ? (error.detail ?? '') : '';
  return error.cause instanceof Error ? `${detail} ${error.cause.message} ${inspectCause(error.cause)}` : detail;
}

async function settle(work: Promise<unknown>): Promise<PromiseSettledResult<unknown>> {
  const late = sleep(SETTLE_MS_MAX, 'late' as const, { ref: false });
  const [settled] = await Promise.race([Promise.allSettled([work]), late.then(() => [null])]);
  assert.ok(settled, `it neither ended nor threw within ${SETTLE_MS_MAX} ms`);
  return settled;
}

/** A signal that does not abort. */
export function never(): AbortSignal {
  return new AbortController().signal;
}

function kinds(outcomes: readonly Outcome[]): string {
  return outcomes.map(({ kind }) => kind[0]).join('');
}

async function assertStoresExactly(bench: Bench, records: readonly ReplayRecord[]): Promise<void> {
  const sink = await bench.open();
  assert.equal(kinds(await sink.write(records, never())), 'w'.repeat(records.length));
  await bench.assertStored(records);
  assert.equal(kinds(await sink.write(records, never())), 'd'.repeat(records.length));
  await bench.assertStored(records);
}

async function assertIsolatesPoison(bench: Bench, poisoned: readonly number[]): Promise<void> {
  const { fields, code, spoil } = bench.place.poison;
  const batch = makeBatch(1, 50).map((record, i) => (poisoned.includes(i) ? spoil(record) : record));
  const good = batch.filter((_, i) => !poisoned.includes(i));
  const expected = (kind: string) => batch.map((_, i) => (poisoned.includes(i) ? 'r' : kind)).join('');
  const sink = await bench.open(fields);
  const outcomes = await sink.write(batch, never());
  assert.equal(kinds(outcomes), expected('w'));
  for (const i of poisoned) assert.equal((outcomes[i] as { code?: string }).code, code);
  await bench.assertStored(good);
  assert.equal(kinds(await sink.write(batch, never())), expected('d'));
  await bench.assertStored(good);
}

/** Milliseconds into a write at which something happens to it. */
const MOMENTS_MS = [0, 1, 2, 3, 5, 8, 13, 21];

const PAYLOAD_BYTES_LARGE = 8_388_608;

export const contractCases: readonly ContractCase[] = [
  {
    name: 'opens twice',
    async run(bench) {
      const sink = await bench.open();
      await sink.open(never());
      const other = await bench.open();
      const [first, second] = [makeBatch(1, 5), makeBatch(6, 5)];
      assert.equal(kinds(await sink.write(first, never())), 'wwwww');
      assert.equal(kinds(await other.write(second, never())), 'wwwww');
      await bench.assertStored([...first, ...second]);
    },
  },
  {
    name: 'closes twice, and without having been opened',
    async run(bench) {
      const sink = await bench.open();
      await sink.write(makeBatch(1, 3), never());
      await sink.close();
      await sink.close();
      await (await bench.build()).close();
      await bench.assertStored(makeBatch(1, 3));
    },
  },
  {
    name: 'probe on a good target, before and after there is something',
    async run(bench) {
      const isError = ({ severity }: { severity: string }) => severity === 'error';
      const before = await bench.place.traces();
      assert.deepEqual((await (await bench.build()).probe(never())).filter(isError), []);
      assert.deepEqual(await bench.place.traces(), before, 'probing an empty destination makes nothing');
      const sink = await bench.open();
      await sink.write(makeBatch(1, 3), never());
      await sink.close();
      const after = await bench.place.traces();
      assert.deepEqual((await (await bench.build()).probe(never())).filter(isError), []);
      assert.deepEqual(await bench.place.traces(), after, 'probing makes nothing');
    },
  },
  {
    name: 'probe on a bad target',
    async run(bench) {
      const sink = await bench.buildFor(bench.place.badTarget);
      const probed = sink.probe(never());
      if ((await bench.whatever(probed)) === 'thrown') await bench.fault(probed);
      else {
        const errors = (await probed).filter(({ severity }) => severity === 'error');
        assert.ok(errors.length > 0, 'a finding says what is wrong');
        for (const { next } of errors) assert.ok(next, 'and what to do');
        for (const { message, next = '' } of errors) {
          for (const secret of bench.place.confidential) assert.ok(!`${message} ${next}`.includes(secret));
        }
      }
    },
  },
  {
    name: 'a bad target stops with a code',
    async run(bench) {
      const sink = await bench.buildFor(bench.place.badTarget);
      const fault = await bench.fault(sink.open(never()).then(() => sink.write(makeBatch(1, 3), never())));
      assert.equal(fault.kind, 'stop');
    },
  },
  {
    name: 'a batch is read back equal',
    run: (bench) => assertStoresExactly(bench, makeBatch(1, 500)),
  },
  {
    name: 'odd envelopes are read back equal',
    run: (bench) => assertStoresExactly(bench, oddEnvelopes(1)),
  },
  {
    name: 'the same batch twice, through other sinks and plans too',
    async run(bench) {
      const batch = makeBatch(10, 100);
      assert.equal(kinds(await bench.writeUntilDone(batch)), 'w'.repeat(100));
      assert.equal(kinds(await bench.writeUntilDone(batch)), 'd'.repeat(100));
      assert.equal(kinds(await bench.writeUntilDone(batch, 'another-plan')), 'd'.repeat(100));
      await bench.assertStored(batch);
    },
  },
  {
    name: 'overlapping batches',
    async run(bench) {
      const sink = await bench.open();
      await sink.write(makeBatch(1, 60), never());
      assert.equal(kinds(await sink.write(makeBatch(31, 60), never())), 'd'.repeat(30) + 'w'.repeat(30));
      const scattered = makeBatch(1, 200).filter((_, i) => i % 7 === 0);
      const expected = scattered.map(({ sequence }) => (sequence <= 90n ? 'd' : 'w')).join('');
      assert.equal(kinds(await sink.write(scattered, never())), expected);
      await bench.assertStored([...makeBatch(1, 90), ...scattered.filter(({ sequence }) => sequence > 90n)]);
    },
  },
  {
    name: 'an empty batch',
    async run(bench) {
      const sink = await bench.open();
      assert.deepEqual(await sink.write([], never()), []);
      await bench.assertStored([]);
    },
  },
  {
    name: 'the largest batch',
    async run(bench) {
      const sink = await bench.open();
      const batch = makeBatch(1, sink.capabilities.maxBatchRecords);
      assert.equal(kinds(await sink.write(batch, never())), 'w'.repeat(batch.length));
      await bench.assertStored(batch);
    },
  },
  {
    name: 'the largest payload',
    async run(bench) {
      const sink = await bench.open();
      const { maxRecordBytes } = sink.capabilities;
      const bytes = Math.min(maxRecordBytes ?? PAYLOAD_BYTES_LARGE, PAYLOAD_BYTES_LARGE);
      const large = makeRecord(2, { payload: new Uint8Array(bytes).fill(0x61) });
      const json = makeRecord(3, { payload: bytesOf(`"${'é'.repeat(Math.floor((bytes - 2) / 2))}"`) });
      const batch = [makeRecord(1), large, json, makeRecord(4)];
      assert.equal(kinds(await sink.write(batch, never())), 'wwww');
      await bench.assertStored(batch);
      if (maxRecordBytes === undefined) return;
      const tooLarge = makeRecord(5, { payload: new Uint8Array(maxRecordBytes + 1).fill(0x61) });
      assert.deepEqual(await sink.write([tooLarge], never()), [{ kind: 'rejected', code: 'too_large' }]);
    },
  },
  {
    name: 'empty, text, binary and non-UTF-8 bodies',
    run: (bench) => assertStoresExactly(bench, makeRecordsOf([...bodies.plain, ...bodies.notUtf8])),
  },
  {
    name: '64-bit integers, 1.10, 1e400',
    run: (bench) => assertStoresExactly(bench, makeRecordsOf(bodies.numbers)),
  },
  {
    name: 'duplicate keys, NaN, a byte order mark, line breaks between tokens',
    run: (bench) => assertStoresExactly(bench, makeRecordsOf(bodies.oddJson)),
  },
  {
    name: 'deep nesting',
    run: (bench) => assertStoresExactly(bench, makeRecordsOf(bodies.deep)),
  },
  {
    name: 'NUL and control characters, emoji, lone surrogate escapes',
    run: (bench) => assertStoresExactly(bench, makeRecordsOf(bodies.characters)),
  },
  {
    name: 'keys compare as bytes, and another incarnation is another record',
    async run(bench) {
      const same = makeBatch(1, 3);
      const others = [
        makeBatch(1, 3, { stream: 'orders' }),
        makeBatch(1, 3, { stream: 'ÖRDERS' }),
        makeBatch(1, 3, { incarnation: '2026-06-01T10:00:00.000000001Z' }),
      ];
      const sink = await bench.open();
      for (const batch of [same, ...others]) {
        assert.equal(kinds(await sink.write(batch, never())), 'www');
        assert.equal(kinds(await sink.write(batch, never())), 'ddd');
      }
      assert.equal((await bench.place.readBack()).length, 12);
    },
  },
  {
    name: 'one poison record at the start',
    run: (bench) => assertIsolatesPoison(bench, [0]),
  },
  {
    name: 'one poison record in the middle',
    run: (bench) => assertIsolatesPoison(bench, [25]),
  },
  {
    name: 'one poison record at the end',
    run: (bench) => assertIsolatesPoison(bench, [49]),
  },
  {
    name: 'several poison records, and a batch of nothing else',
    async run(bench) {
      await assertIsolatesPoison(bench, [0, 1, 24, 48, 49]);
      const { fields, spoil } = bench.place.poison;
      const sink = await bench.open(fields);
      assert.equal(kinds(await sink.write(makeBatch(101, 3).map(spoil), never())), 'rrr');
    },
  },
  {
    name: 'connection lost before a write',
    needsConnection: true,
    async run(bench) {
      const sink = await bench.open();
      await sink.write(makeBatch(1, 20), never());
      await bench.place.connection!.break();
      await bench.fault(sink.write(makeBatch(21, 20), never()));
      await bench.whatever(sink.close());
      await bench.fault(bench.open());
      await bench.place.connection!.mend();
      // The fault did not say whether the batch went in.
      const [known, unknown] = [makeBatch(1, 20), makeBatch(21, 20)];
      assert.equal(kinds(await bench.writeUntilDone(known)), 'd'.repeat(20));
      assert.match(kinds(await bench.writeUntilDone(unknown)), /^[dw]{20}$/);
      await bench.assertStored([...known, ...unknown]);
    },
  },
  {
    name: 'connection lost during a write',
    needsConnection: true,
    async run(bench) {
      let stored = 0;
      for (const moment of MOMENTS_MS) {
        const batch = makeBatch(stored + 1, 400);
        const sink = await bench.open();
        const writing = bench.whatever(sink.write(batch, never()));
        await sleep(moment);
        await bench.place.connection!.break();
        const result = await writing;
        await bench.whatever(sink.close());
        await bench.place.connection!.mend();
        const again = kinds(await bench.writeUntilDone(batch));
        if (result === 'done') assert.equal(again, 'd'.repeat(400), 'what was called written is there');
        stored += batch.length;
      }
      await bench.assertStored(makeBatch(1, stored));
    },
  },
  {
    name: 'connection lost after a write',
    needsConnection: true,
    async run(bench) {
      const sink = await bench.open();
      assert.equal(kinds(await sink.write(makeBatch(1, 100), never())), 'w'.repeat(100));
      await bench.place.connection!.break();
      await bench.whatever(sink.close());
      await bench.place.connection!.mend();
      assert.equal(kinds(await bench.writeUntilDone(makeBatch(1, 100))), 'd'.repeat(100));
      await bench.assertStored(makeBatch(1, 100));
    },
  },
  {
    name: 'an abort before a write writes nothing',
    async run(bench) {
      const sink = await bench.open();
      const reason = new Error('cancelled');
      assert.equal(await bench.thrown(sink.write(makeBatch(1, 10), AbortSignal.abort(reason))), reason);
      await bench.assertStored([]);
      await sink.close();
      assert.equal(kinds(await bench.writeUntilDone(makeBatch(1, 10))), 'w'.repeat(10));
    },
  },
  {
    name: 'an abort in mid-write leaves a re-writable state',
    async run(bench) {
      let stored = 0;
      for (const moment of MOMENTS_MS) {
        const batch = makeBatch(stored + 1, 400);
        const sink = await bench.open();
        const controller = new AbortController();
        const writing = bench.whatever(sink.write(batch, controller.signal));
        await sleep(moment);
        controller.abort(new Error('cancelled'));
        const result = await writing;
        await sink.close();
        const again = kinds(await bench.writeUntilDone(batch));
        if (result === 'done') assert.equal(again, 'd'.repeat(400), 'what was called written is there');
        stored += batch.length;
      }
      await bench.assertStored(makeBatch(1, stored));
    },
  },
  {
    name: 'two writers at once',
    async run(bench) {
      const all = makeBatch(1, 600);
      const write = async (plan: string, batches: readonly (readonly ReplayRecord[])[]) => {
        let written = 0;
        for (const batch of batches) {
          const outcomes = await bench.writeUntilDone(batch, plan);
          assert.equal(outcomes.length, batch.length);
          written += outcomes.filter(({ kind }) => kind === 'written').length;
        }
        return written;
      };
      const slices = (size: number) => Array.from({ length: 600 / size }, (_, i) => all.slice(i * size, (i + 1) * size));
      const written = await Promise.all([write('one', slices(60)), write('two', slices(100))]);
      await bench.assertStored(all);
      assert.ok(written[0] + written[1] <= 600, 'no record is called written by both');
    },
  },
  {
    name: 'two open sinks that take turns',
    async run(bench) {
      const sinks = [await bench.open({}, 'one'), await bench.open({}, 'two')];
      for (let turn = 0; turn < 10; turn++) {
        const batch = makeBatch(turn * 10 + 1, 15);
        const outcomes = await sinks[turn % 2]!.write(batch, never());
        assert.equal(kinds(outcomes.slice(turn === 0 ? 0 : 5)).replace(/d/g, 'w'), 'w'.repeat(turn === 0 ? 15 : 10));
      }
      await bench.assertStored(makeBatch(1, 105));
    },
  },
  {
    name: 'nothing confidential in errors and log lines',
    async run(bench) {
      const bad = await bench.buildFor(bench.place.badTarget);
      await bench.whatever(bad.probe(never()));
      await bench.whatever(bad.open(never()).then(() => bad.write(makeBatch(1, 1), never())));
      const sink = await bench.open(bench.place.poison.fields);
      await sink.write(makeBatch(1, 5).map(bench.place.poison.spoil), never());
      await bench.whatever(sink.write(makeBatch(1, 5), AbortSignal.abort()));
      await bench.place.connection?.break();
      await bench.whatever(sink.write(makeBatch(6, 5), never()));
      await bench.whatever(sink.close());
      await bench.place.connection?.mend();
      bench.assertNothingTold();
    },
  },
];

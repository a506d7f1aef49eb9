import { describe, expect, test } from 'vitest';
import { formatProblems } from '../../../core/problems.ts';
import { ReplayFault } from '../../../core/errors.ts';
import type { Outcome } from '../../../core/record.ts';
import { parseTarget } from '../../../core/target.ts';
import { fanOutConfigSchema } from '../../../sinks/fan-out/config.ts';
import { routeOf } from '../../../sinks/fan-out/routing.ts';
import { createFanOutSink } from '../../../sinks/fan-out/sink.ts';
import { leavesOf, sinkSpecs, streamsWritten } from '../../../sinks/registry.ts';
import type { Sink } from '../../../sinks/sink.ts';
import { makeBatch, makeRecord } from '../../contract/records.ts';
import { never } from '../../contract/sink-contract.ts';
import { uniqueName } from '../../support/servers.ts';

const file = (directory: string) => ({ sink: { type: 'file', directory } });

function problemsOf(sink: Record<string, unknown>, more: Record<string, unknown> = {}): string {
  const parsed = parseTarget({ sink: { type: 'fanout', ...sink }, ...more }, sinkSpecs);
  return parsed.ok ? '' : formatProblems(parsed.problems);
}

describe('the target', () => {
  test('each child is parsed by its own schema, with its defaults; parsed again it is the same', () => {
    const document = { sink: { type: 'fanout', sinks: { a: file('a'), b: { ...file('b'), required: false } } } };
    const parsed = parseTarget(document, sinkSpecs);
    expect(parsed).toMatchObject({
      ok: true,
      value: {
        sink: { unmatched: 'reject', sinks: { a: { required: true, timeout_ms: 30_000, sink: { compression: 'none' } } } },
      },
    });
    expect(parsed.ok && parseTarget(parsed.value, sinkSpecs)).toEqual(parsed);
  });

  test.each([
    [
      'a child with a wrong field',
      { sinks: { a: { sink: { type: 'file', directory: '/x' } } } },
      'sink.sinks.a.sink.directory: ',
    ],
    ['a child of an unknown type', { sinks: { a: { sink: { type: 'fil' } } } }, 'sink.sinks.a.sink.type: '],
    ['a fan-out in a fan-out', { sinks: { a: { sink: { type: 'fanout', sinks: {} } } } }, 'sink.sinks.a.sink.type: '],
    [
      'rules between the fields of a child',
      { sinks: { a: { sink: { type: 'spool', directory: 'x' } } } },
      'sink.sinks.a.sink.encryption: ',
    ],
    ['no required child', { sinks: { a: { ...file('a'), required: false } } }, 'no required child'],
    ['no child', { sinks: {} }, 'no required child'],
    ['an unknown rule', { sinks: { a: file('a') }, unmatched: 'drop' }, 'sink.unmatched: '],
    ['a child named like a rule', { sinks: { skip: file('a') } }, 'a rule of "unmatched"'],
    ['only a child that is not there', { sinks: { a: file('a') }, only: 'b' }, 'sink.only: '],
    ['a filter that is none', { sinks: { a: { ...file('a'), subjects: ['a..b'] } } }, 'sink.sinks.a.subjects'],
    [
      'a secret written out',
      { sinks: { a: { sink: { type: 'mysql', password: 'hunter2' } } } },
      'sink.sinks.a.sink.password: ',
    ],
  ])('%s is refused', (_, sink, message) => {
    expect(problemsOf(sink)).toContain(message);
    expect(problemsOf(sink)).not.toContain('hunter2');
  });

  test('a key that a child cannot honour is refused', () => {
    const sinks = { a: file('a'), copy: { sink: { type: 'jetstream', stream: 'X' } } };
    expect(problemsOf({ sinks }, { idempotency: { key: 'message_id' } })).toContain(
      'the child "a" (file) cannot honour "message_id"',
    );
  });

  test('what children write into counts for the whole', () => {
    const sink = { type: 'fanout', sinks: { a: file('a'), copy: { sink: { type: 'jetstream', stream: 'X' } } } };
    expect(leavesOf(sink).map(({ type }) => type)).toEqual(['file', 'jetstream']);
    expect(streamsWritten(sink)).toEqual(['X']);
  });
});

describe('routing', () => {
  const config = fanOutConfigSchema.parse({
    type: 'fanout',
    sinks: { all: file('a'), some: { ...file('b'), subjects: ['orders.created', 'orders.*', 'x.>'] } },
  });
  test.each([
    ['orders.created', ['all', 'some']],
    ['x.y.z', ['all', 'some']],
    ['other', ['all']],
  ])('%s goes to %j', (subject, names) => expect(routeOf(subject, config)).toEqual(names));

  test('what nobody takes follows the rule', () => {
    const { sinks } = fanOutConfigSchema.parse({
      type: 'fanout',
      sinks: { some: { ...file('b'), subjects: ['x'] }, rest: { ...file('c'), subjects: ['z'] } },
    });
    expect(['reject', 'skip', 'rest'].map((unmatched) => routeOf('y', { sinks, unmatched }))).toEqual([
      'reject',
      'skip',
      ['rest'],
    ]);
  });
});

/** Children of the test's own making: they answer, throw or hang as told. */
type Behaviour = (batch: readonly { sequence: bigint }[], signal: AbortSignal) => Promise<Outcome[]>;

function fanOut(
  children: Record<string, { readonly behave: Behaviour; readonly fields?: object; readonly probe?: () => Promise<[]> }>,
  fields: object = {},
) {
  const sinks = Object.fromEntries(
    Object.entries(children).map(([name, { fields: own = {} }]) => [name, { sink: { type: name }, timeout_ms: 200, ...own }]),
  );
  const made: string[] = [];
  const build = (run: string) =>
    createFanOutSink(fanOutConfigSchema.parse({ type: 'fanout', sinks, ...fields }), {
      dataRoot: '/nowhere',
      plan: 'plan',
      run,
      begun: false,
      secret: () => '',
      log: { info: () => undefined, warn: () => undefined },
      child: ({ type }) => {
        made.push(String(type));
        const { behave, probe = () => Promise.resolve([]) } = children[String(type)]!;
        const capabilities = { keys: [], transactional: true, maxBatchRecords: 10_000 };
        const sink: Sink = {
          capabilities,
          open: () => Promise.resolve(),
          write: behave,
          probe,
          close: () => Promise.resolve(),
        };
        return Promise.resolve(sink);
      },
    });
  const run = uniqueName('run');
  return { made, again: () => build(run) };
}

const answer =
  (kind: 'written' | 'duplicate'): Behaviour =>
  (batch) =>
    Promise.resolve(batch.map(() => ({ kind })));
const hang: Behaviour = () => new Promise(() => undefined);
const fails =
  (code: 'sink_missing' | 'sink_unreachable'): Behaviour =>
  () =>
    Promise.reject(new ReplayFault(code));

describe('writing', () => {
  test('a reject of a required child is a reject, with its name; one of an optional child is not', async () => {
    const refuse: Behaviour = (batch) =>
      Promise.resolve(
        batch.map(({ sequence }) =>
          sequence === 2n ? { kind: 'rejected', code: 'too_large', field: 'x' } : { kind: 'written' },
        ),
      );
    const required = fanOut({ a: { behave: answer('written') }, b: { behave: refuse } }).again();
    expect(await required.write(makeBatch(1, 3), never())).toEqual([
      { kind: 'written' },
      { kind: 'rejected', code: 'too_large', field: 'b.x' },
      { kind: 'written' },
    ]);
    const optional = fanOut({ a: { behave: answer('written') }, b: { behave: refuse, fields: { required: false } } }).again();
    expect(await optional.write(makeBatch(1, 3), never())).toEqual([
      { kind: 'written' },
      { kind: 'written' },
      { kind: 'written' },
    ]);
    expect(optional.childTallies!()).toMatchObject([
      { name: 'a', written: 3 },
      { name: 'b', written: 2, rejected: 1, failed: 0, missing: [[2, 2]] },
    ]);
  });

  test('a required child that fails or hangs fails the batch, by name; a fault that stops wins', async () => {
    const hanging = fanOut({ a: { behave: answer('written') }, b: { behave: hang } }).again();
    await expect(hanging.write(makeBatch(1, 3), never())).rejects.toMatchObject({
      code: 'sink_unreachable',
      detail: expect.stringContaining('"b"'),
    });
    const both = fanOut({ a: { behave: fails('sink_unreachable') }, b: { behave: fails('sink_missing') } }).again();
    await expect(both.write(makeBatch(1, 3), never())).rejects.toMatchObject({ code: 'sink_missing' });
  });

  test('a hanging optional child costs its time three times, then it is left out, though the sink is made anew; probed well, it is back', async () => {
    let isWell = false;
    let calls = 0;
    const behave: Behaviour = (batch, signal) => {
      calls++;
      return isWell ? answer('written')(batch, signal) : hang(batch, signal);
    };
    let probed!: () => void;
    const wasProbed = new Promise<void>((resolve) => (probed = resolve));
    const probe = async (): Promise<[]> => {
      isWell = true;
      probed();
      return [];
    };
    const made = fanOut({ a: { behave: answer('written') }, slow: { behave, probe, fields: { required: false } } });
    for (let batch = 0; batch < 3; batch++) {
      const sink = made.again();
      await sink.write(makeBatch(batch * 10 + 1, 10), never());
      expect(sink.childTallies!()[1]).toMatchObject({ failed: 10, missing: [[batch * 10 + 1, batch * 10 + 10]] });
      await sink.close();
    }
    expect(calls).toBe(3);
    const sink = made.again();
    await sink.write(makeBatch(31, 10), never());
    expect([calls, sink.childTallies!()[1]!.failed]).toEqual([3, 10]);
    await wasProbed;
    for (let written = 0; written === 0;) {
      await sink.write(makeBatch(41, 10), never());
      written = sink.childTallies!()[1]!.written;
    }
    expect(calls).toBe(4);
  });

  test('unmatched records do not hold up their batch; a record that only optional children take needs one of them', async () => {
    const made = fanOut({ a: { behave: answer('written'), fields: { subjects: ['orders.created'] } } });
    const batch = [makeRecord(1, { subject: 'orders.created' }), makeRecord(2, { subject: 'other' })];
    expect(await made.again().write(batch, never())).toEqual([{ kind: 'written' }, { kind: 'rejected', code: 'no_route' }]);
    const lonely = (behave: Behaviour) =>
      fanOut({
        a: { behave: answer('written'), fields: { subjects: ['orders.created'] } },
        b: { behave, fields: { required: false } },
      });
    expect(await lonely(answer('duplicate')).again().write(batch, never())).toEqual([
      { kind: 'written' },
      { kind: 'duplicate' },
    ]);
    await expect(lonely(fails('sink_missing')).again().write(batch, never())).rejects.toMatchObject({
      code: 'sink_unreachable',
    });
  });

  test('into one child alone: the others are not made, what does not go there is skipped, and its failure counts', async () => {
    const made = fanOut(
      {
        a: { behave: answer('written') },
        b: { behave: answer('written'), fields: { required: false, subjects: ['orders.created'] } },
      },
      { only: 'b' },
    );
    const batch = [makeRecord(1, { subject: 'orders.created' }), makeRecord(2, { subject: 'other' })];
    expect(await made.again().write(batch, never())).toEqual([{ kind: 'written' }, { kind: 'skipped' }]);
    expect(made.made).toEqual(['b']);
    const failing = fanOut(
      { a: { behave: answer('written') }, b: { behave: fails('sink_missing'), fields: { required: false } } },
      { only: 'b' },
    );
    await expect(failing.again().write(batch, never())).rejects.toMatchObject({ code: 'sink_missing' });
  });
});

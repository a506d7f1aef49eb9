import { describe, expect, test } from 'vitest';
import { formatTime } from '../../../core/time.ts';
import { createSource, type Scope, type StreamFacts } from '../../../jetstream/source.ts';
import { connectTestNats } from '../../support/servers.ts';
import { fill, makeStream, pause, type TestStream } from './streams.ts';

const nc = await connectTestNats();
const source = createSource(nc);

interface Stored {
  readonly sequence: number;
  readonly subject: string;
  readonly time: bigint;
}

/** What the stream really holds, read one by one. */
async function readAll(stream: TestStream, facts: StreamFacts): Promise<Stored[]> {
  const all: Stored[] = [];
  for (let sequence = facts.firstSequence; sequence <= facts.lastSequence; sequence++) {
    const message = await stream.jsm.streams.getMessage(stream.name, { seq: sequence }).catch(() => null);
    if (message === null) continue;
    const [seconds, nanos = '0'] = message.timestamp.slice(0, -1).split('.');
    const time = BigInt(Date.parse(`${seconds!}Z`)) * 1_000_000n + BigInt(nanos.padEnd(9, '0'));
    all.push({ sequence, subject: message.subject, time });
  }
  return all;
}

async function gappyStream(allowDirect: boolean): Promise<TestStream> {
  const stream = await makeStream(nc, { allow_direct: allowDirect });
  for (let burst = 0; burst < 5; burst++) {
    await fill(nc, stream, 20, (i) => ['a', 'b.x', 'c'][i % 3]!);
    await pause(20);
  }
  for (const sequence of [11, 12, 13, 14, 50, 100]) await stream.jsm.streams.deleteMessage(stream.name, sequence);
  await stream.jsm.streams.purge(stream.name, { seq: 4 });
  return stream;
}

describe.each([true, false])('with allow_direct %s', (allowDirect) => {
  test('describes the stream and pins its incarnation', async () => {
    const before = BigInt(Date.now()) * 1_000_000n;
    const stream = await gappyStream(allowDirect);
    const facts = await source.describe(stream.name);
    expect(facts).toMatchObject({
      stream: stream.name,
      firstSequence: 4,
      lastSequence: 100,
      messages: 91,
      retention: 'limits',
      subjects: [`${stream.root}.>`],
      allowDirect,
      isMirror: false,
      origins: [],
      consumerLimits: { inactiveThresholdMs: null, maxAckPending: null },
    });
    expect(facts.incarnation).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
    expect(facts.serverTimeNanos).toBeGreaterThan(before);
  });

  test('finds the first sequence at or after a time, over gaps, before the first and after the last', async () => {
    const stream = await gappyStream(allowDirect);
    const facts = await source.describe(stream.name);
    const all = await readAll(stream, facts);
    const last = all.at(-1)!;
    const times = all.flatMap(({ time }) => [time - 1n, time, time + 1n]).filter((_, i) => i % 7 === 0);
    for (const time of [...times, 0n, all[0]!.time, last.time, last.time + 1n, facts.serverTimeNanos]) {
      const expected = all.find((message) => message.time >= time)?.sequence ?? facts.lastSequence + 1;
      expect([formatTime(time), await source.sequenceAt(facts, time)]).toEqual([formatTime(time), expected]);
    }
  });

  test('says that times rise, also over gaps', async () => {
    const stream = await gappyStream(allowDirect);
    const facts = await source.describe(stream.name);
    expect(await source.timesRise(facts, facts.firstSequence, facts.lastSequence)).toBe(true);
    expect(await source.timesRise(facts, 1, 1_000)).toBe(true);
  });

  test('an empty and an emptied stream', async () => {
    const stream = await makeStream(nc, { allow_direct: allowDirect });
    const nothing = { messages: 0, bytes: 0, exact: { messages: true, bytes: true } };
    for (let i = 0; i < 2; i++) {
      const facts = await source.describe(stream.name);
      expect(await source.sequenceAt(facts, 0n)).toBe(facts.lastSequence + 1);
      expect(await source.count(facts, { filters: ['>'], first: 1, last: 100 })).toEqual(nothing);
      expect(await source.timesRise(facts, 1, 100)).toBe(true);
      await fill(nc, stream, 3, () => 'x');
      await stream.jsm.streams.purge(stream.name);
    }
  });
});

const scopes = (root: string): Scope[] => [
  { filters: ['>'], first: 1, last: 100 },
  { filters: ['>'], first: 30, last: 60 },
  { filters: [`${root}.a`], first: 4, last: 100 },
  { filters: [`${root}.a`, `${root}.b.>`], first: 10, last: 90 },
  { filters: [`${root}.*`, `${root}.b.x`], first: 50, last: 50 },
  { filters: [`${root}.none`], first: 1, last: 100 },
  { filters: ['>'], first: 101, last: 200 },
  { filters: ['>'], first: 60, last: 59 },
];

test('counts exactly per filter and boundary, and makes no consumer', async () => {
  const stream = await gappyStream(true);
  const facts = await source.describe(stream.name);
  const all = await readAll(stream, facts);
  for (const scope of scopes(stream.root)) {
    const expected = all.filter((message) => isIn(message, scope)).length;
    const counted = await source.count(facts, scope);
    expect([scope, counted.messages, counted.exact.messages]).toEqual([scope, expected, true]);
    expect(counted.bytes > 0).toBe(expected > 0);
  }
  expect((await stream.jsm.streams.info(stream.name)).state.consumer_count).toBe(0);
});

test('a count without allow_direct is exact for the whole stream, else an estimate that says so', async () => {
  const stream = await gappyStream(false);
  const facts = await source.describe(stream.name);
  const all = await readAll(stream, facts);
  for (const scope of scopes(stream.root)) {
    const expected = all.filter((message) => isIn(message, scope)).length;
    const counted = await source.count(facts, scope);
    const whole = scope.first <= facts.firstSequence && scope.last >= facts.lastSequence;
    expect(counted.exact.messages || !whole).toBe(true);
    expect(Math.abs(counted.messages - expected)).toBeLessThanOrEqual(counted.exact.messages ? 0 : 15);
  }
});

test('a count over messages that still come is bounded by the range', async () => {
  const stream = await makeStream(nc);
  await fill(nc, stream, 500, () => 'x');
  const facts = await source.describe(stream.name);
  const publishing = fill(nc, stream, 2_000, () => 'x');
  const counted = await source.count(facts, { filters: [`${stream.root}.x`], first: 101, last: 400 });
  await publishing;
  expect(Math.abs(counted.messages - 300)).toBeLessThanOrEqual(counted.exact.messages ? 0 : 2_000);
});

test('a mirror is told from a stream', async () => {
  const origin = await makeStream(nc);
  const mirror = await makeStream(nc, { subjects: undefined as never, mirror: { name: origin.name } });
  expect((await source.describe(mirror.name)).isMirror).toBe(true);
});

function isIn(message: Stored, scope: Scope): boolean {
  if (message.sequence < scope.first || message.sequence > scope.last) return false;
  const matches = (filter: string) => {
    const pattern = filter.replaceAll('.', '\\.').replaceAll('*', '[^.]+').replace('>', '.+');
    return new RegExp(`^${pattern}$`).test(message.subject);
  };
  return scope.filters.some(matches);
}

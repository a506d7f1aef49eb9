import { AckPolicy, DeliverPolicy, ReplayPolicy } from 'nats';
import { describe, expect, test } from 'vitest';
import { createSource } from '../../../jetstream/source.ts';
import { connectTestNats, natsUrl, uniqueName } from '../../support/servers.ts';
import { faultCode, fill, headerPublish, makeStream, never, pause, publishRaw, pullRequest, ready, specOf } from './streams.ts';

const nc = await connectTestNats();
const source = createSource(nc);

describe('pull', () => {
  test('brings only the subjects of several filters, in order, with contiguous consumer sequences', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 90, (i) => ['a', 'b.x', 'c'][i % 3]!);
    const spec = await ready(source, stream.name, [`${stream.root}.a`, `${stream.root}.b.>`]);
    const pulled = await source.pull(pullRequest(spec), never);
    expect(pulled.end).toBe('drained');
    const expected = Array.from({ length: 90 }, (_, i) => i + 1).filter((sequence) => sequence % 3 !== 0);
    expect(pulled.records.map(({ position }) => position)).toEqual(expected);
    expect(pulled.records.map(({ consumerSequence }) => consumerSequence)).toEqual(expected.map((_, i) => i + 1));
    expect(pulled.records.map(({ sequence }) => sequence)).toEqual(expected.map(BigInt));
    expect(pulled.records.every(({ subject }) => /\.(a|b\.x)$/.test(subject))).toBe(true);
    expect(pulled.records.some(({ redelivered }) => redelivered)).toBe(false);
  });

  test('keeps time to the nanosecond, body bytes and raw headers exactly', async () => {
    const stream = await makeStream(nc);
    const body = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0d, 0x0a]);
    const block = Buffer.concat([
      Buffer.from('NATS/1.0\r\nTrace: a\r\ntrace: b\r\nTrace: c\r\nEmpty: \r\nBare:\r\nIndented:   two more\r\nTrail: x  \r\n'),
      Buffer.from('odd name (1): kept\r\nColons: a:b: c\r\nnats-MSG-id: id-1\r\nUmlaut: gr\u00fc\u00dfe\r\n'),
      Buffer.from('\r\n'),
    ]);
    const subject = `${stream.root}.gr\u00fc\u00dfe`;
    await publishRaw(natsUrl(), headerPublish(subject, block, body));
    await publishRaw(
      natsUrl(),
      headerPublish(subject, Buffer.from('NATS/1.0\r\nBytes: \xe9\r\n\r\n', 'latin1'), Buffer.alloc(0)),
    );
    await publishRaw(natsUrl(), headerPublish(subject, Buffer.from('NATS/1.0 503\r\n\r\n'), Buffer.alloc(0)));
    const spec = await ready(source, stream.name, ['>']);
    const { records, end } = await source.pull(pullRequest(spec), never);
    expect(end).toBe('drained');
    expect(records).toHaveLength(3);
    const [first, second, third] = records;
    expect([...first!.headers]).toEqual([
      ['Trace', ['a', 'c']],
      ['trace', ['b']],
      ['Empty', ['']],
      ['Bare', ['']],
      ['Indented', ['  two more']],
      ['Trail', ['x  ']],
      ['odd name (1)', ['kept']],
      ['Colons', ['a:b: c']],
      ['nats-MSG-id', ['id-1']],
      ['Umlaut', ['gr\u00fc\u00dfe']],
    ]);
    expect(first!.messageId).toBe('id-1');
    expect(first!.subject).toBe(subject);
    expect(Buffer.from(first!.payload).equals(body)).toBe(true);
    const stored = await stream.jsm.streams.getMessage(stream.name, { seq: 1 });
    expect(first!.timeNanos.toString().slice(-9)).toBe(/\.(\d+)Z/.exec(stored.timestamp)![1]!.padEnd(9, '0'));
    expect(second!.headers.get('Bytes')).toEqual(['\u00e9']);
    expect(second!.payload).toHaveLength(0);
    expect(second!).not.toHaveProperty('messageId');
    // A status in the first line of a stored message is not a word of the server.
    expect(third!.position).toBe(3);
    expect(third!.headers.size).toBe(0);
  });

  test('a message above max_bytes comes alone, and nothing is lost around it', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 50, () => 'small');
    await nc.jetstream().publish(`${stream.root}.big`, Buffer.alloc(900 * 1024, 1));
    await fill(nc, stream, 50, () => 'small');
    const spec = await ready(source, stream.name, ['>']);
    const ends: string[] = [];
    const positions: number[][] = [];
    for (let i = 0; i < 10; i++) {
      const pulled = await source.pull(pullRequest(spec, { maxRecords: 1_000, maxBytes: 256 * 1024 }), never);
      ends.push(pulled.end);
      positions.push(pulled.records.map(({ position }) => position));
      if (pulled.end === 'drained') break;
    }
    expect(ends).toEqual(['full', 'full', 'drained']);
    expect(positions.map(({ length }) => length)).toEqual([50, 1, 50]);
    expect(positions[1]).toEqual([51]);
    expect(positions.flat()).toEqual(Array.from({ length: 101 }, (_, i) => i + 1));
  });

  test('max_bytes that the last message fills to the byte ends at once', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 10, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const acks = `$JS.ACK.${stream.name}.${spec.durable}.1.1.1.1780000000000000000.9`.length;
    const size = `${stream.root}.x`.length + acks + 'body-0'.length;
    const start = Date.now();
    const pulled = await source.pull(pullRequest(spec, { maxBytes: 3 * size }), never);
    expect(pulled.end).toBe('full');
    expect(pulled.records).toHaveLength(3);
    expect(Date.now() - start).toBeLessThan(4_500);
  });

  test('gaps, deletes and a purge in the range are stepped over', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 60, (i) => (i < 30 ? 'old' : 'new'));
    for (const sequence of [31, 40, 41, 60]) await stream.jsm.streams.deleteMessage(stream.name, sequence);
    await stream.jsm.streams.purge(stream.name, { filter: `${stream.root}.old`, keep: 5 });
    const spec = await ready(source, stream.name, ['>']);
    const pulled = await source.pull(pullRequest(spec), never);
    expect(pulled.end).toBe('drained');
    const present = [26, 27, 28, 29, 30, ...Array.from({ length: 30 }, (_, i) => i + 31)];
    expect(pulled.records.map(({ position }) => position)).toEqual(present.filter((s) => ![31, 40, 41, 60].includes(s)));
    expect(pulled.records.map(({ consumerSequence }) => consumerSequence)).toEqual(pulled.records.map((_, i) => i + 1));
  });

  test('an empty stream is drained at once; with a wait, the first record ends the wait', async () => {
    const stream = await makeStream(nc);
    const spec = await ready(source, stream.name, ['>']);
    expect(await source.pull(pullRequest(spec), never)).toEqual({ records: [], end: 'drained' });
    const start = Date.now();
    expect(await source.pull(pullRequest(spec, { waitMs: 700 }), never)).toEqual({ records: [], end: 'drained' });
    expect(Date.now() - start).toBeGreaterThanOrEqual(650);
    const waiting = source.pull(pullRequest(spec, { waitMs: 20_000 }), never);
    await pause(2_500);
    await fill(nc, stream, 1, () => 'late');
    const pulled = await waiting;
    expect(pulled.records.map(({ position }) => position)).toEqual([1]);
    expect(pulled.end).toBe('drained');
    expect(Date.now() - start).toBeLessThan(8_000);
  });

  test('full when as many as asked were there', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 12, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const pulled = await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    expect([pulled.end, pulled.records.length]).toEqual(['full', 10]);
    const rest = await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    expect([rest.end, rest.records.length]).toEqual(['drained', 2]);
  });

  test('a deleted durable ends a waiting pull as broken; a missing one too', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 5, () => 'x');
    const spec = await ready(source, stream.name, ['>'], 6);
    const start = Date.now();
    const waiting = source.pull(pullRequest(spec, { waitMs: 30_000 }), never);
    await pause(200);
    await stream.jsm.consumers.delete(stream.name, spec.durable);
    expect(await waiting).toEqual({ records: [], end: 'broken' });
    expect(await source.pull(pullRequest(spec), never)).toEqual({ records: [], end: 'broken' });
    expect(Date.now() - start).toBeLessThan(15_000);
  });

  test('putting back ends the waiting pull of a lost attempt, which gets nothing', async () => {
    const stream = await makeStream(nc);
    const spec = await ready(source, stream.name, ['>']);
    const lost = source.pull(pullRequest(spec, { waitMs: 30_000 }), never);
    await pause(200);
    await source.putBack(spec, 1);
    await fill(nc, stream, 10, () => 'x');
    expect(await lost).toEqual({ records: [], end: 'broken' });
    expect((await source.pull(pullRequest(spec), never)).records).toHaveLength(10);
  });

  test('abort ends a waiting pull with its reason', async () => {
    const stream = await makeStream(nc);
    const spec = await ready(source, stream.name, ['>']);
    const controller = new AbortController();
    const reason = new Error('enough');
    setTimeout(() => controller.abort(reason), 200);
    await expect(source.pull(pullRequest(spec, { waitMs: 30_000 }), controller.signal)).rejects.toBe(reason);
  });

  test('the caps of a consumer on one request are obeyed and filled by further requests', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 100, () => 'x');
    const facts = await source.describe(stream.name);
    const spec = specOf(facts, uniqueName('d'), ['>']);
    await stream.jsm.consumers.add(stream.name, {
      durable_name: spec.durable,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      replay_policy: ReplayPolicy.Instant,
      max_batch: 30,
    });
    const pulled = await source.pull(pullRequest(spec, { maxRecords: 90 }), never);
    expect([pulled.end, pulled.records.length]).toEqual(['full', 90]);
  });

  test('more un-ACKed records than allowed end as broken within the silence limit', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 30, () => 'x');
    const facts = await source.describe(stream.name);
    const spec = specOf(facts, uniqueName('d'), ['>'], 20);
    await source.putBack(spec, 1);
    const pulled = await source.pull(pullRequest(spec), never);
    expect([pulled.end, pulled.records.length]).toEqual(['broken', 20]);
  });

  test('a closed connection is unreachable', async () => {
    const stream = await makeStream(nc);
    const other = await connectTestNats();
    const closing = createSource(other);
    const spec = await ready(closing, stream.name, ['>']);
    const waiting = closing.pull(pullRequest(spec, { waitMs: 30_000 }), never);
    await pause(100);
    await other.close();
    const start = Date.now();
    expect(await waiting).toEqual({ records: [], end: 'broken' });
    expect(Date.now() - start).toBeLessThan(15_000);
    expect(await faultCode(closing.pull(pullRequest(spec), never))).toBe('nats_unreachable');
    expect(await faultCode(closing.describe(stream.name))).toBe('nats_unreachable');
  });
});

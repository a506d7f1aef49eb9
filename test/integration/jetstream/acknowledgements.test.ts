import { describe, expect, test } from 'vitest';
import { createSource } from '../../../jetstream/source.ts';
import { connectTestNats, uniqueName } from '../../support/servers.ts';
import { fill, makeStream, never, pullRequest, ready, receiptFor } from './streams.ts';

const nc = await connectTestNats();
const source = createSource(nc);

describe('acknowledge', () => {
  test('5,000 at once are confirmed, from another connection than the pull', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 5_000, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const { records } = await source.pull(pullRequest(spec, { maxRecords: 5_000 }), never);
    const other = createSource(await connectTestNats());
    const start = performance.now();
    expect(await other.acknowledge(receiptFor(spec, records), never)).toBe('confirmed');
    expect(performance.now() - start).toBeLessThan(10_000);
    expect(await source.readConsumer(spec.stream, spec.durable)).toMatchObject({ ackFloor: 5_000, ackPending: 0 });
    expect(await other.acknowledge(receiptFor(spec, records), never)).toBe('confirmed');
  });

  test('is confirmed while the next batch is pulled, through filters and gaps', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 100, (i) => ['a', 'b', 'c', 'c'][i % 4]!);
    for (const sequence of [5, 6, 9]) await stream.jsm.streams.deleteMessage(stream.name, sequence);
    const spec = await ready(source, stream.name, [`${stream.root}.a`, `${stream.root}.b`]);
    const one = await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    const two = await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    const receipt = receiptFor(spec, one.records);
    expect(await source.acknowledge(receipt, never)).toBe('confirmed');
    const facts = await source.readConsumer(spec.stream, spec.durable);
    expect(facts!.ackFloor).toBeGreaterThanOrEqual(receipt.lastSequence);
    expect(facts!.ackFloor).toBeLessThan(two.records[0]!.position);
    expect(facts!.ackPending).toBe(10);
    expect(await source.acknowledge(receiptFor(spec, two.records), never)).toBe('confirmed');
  });

  test('is not confirmed while an earlier batch is open, and then settles both', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 20, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const one = await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    const two = await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    const second = source.acknowledge(receiptFor(spec, two.records), never);
    expect(await source.acknowledge(receiptFor(spec, one.records), never)).toBe('confirmed');
    expect(await second).toBe('confirmed');
  });

  test('messages deleted or purged after the pull do not hold it up', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 20, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const { records } = await source.pull(pullRequest(spec, { maxRecords: 15 }), never);
    await stream.jsm.streams.deleteMessage(stream.name, 15);
    await stream.jsm.streams.deleteMessage(stream.name, 3);
    expect(await source.acknowledge(receiptFor(spec, records), never)).toBe('confirmed');
    const rest = await source.pull(pullRequest(spec), never);
    await stream.jsm.streams.purge(stream.name, { seq: 19 });
    expect(await source.acknowledge(receiptFor(spec, rest.records), never)).toBe('confirmed');
  });

  test('is deferred when the durable was put back, is gone, or its stream is', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 20, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const { records } = await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    const receipt = receiptFor(spec, records);
    await source.putBack(spec, 1);
    const start = Date.now();
    expect(await source.acknowledge(receipt, never)).toBe('deferred');
    expect(Date.now() - start).toBeLessThan(5_000);
    expect((await source.readConsumer(spec.stream, spec.durable))!.ackFloor).toBe(0);
    await source.deleteConsumer(spec.stream, spec.durable);
    expect(await source.acknowledge(receipt, never)).toBe('deferred');
    await stream.jsm.streams.delete(stream.name);
    expect(await source.acknowledge(receipt, never)).toBe('deferred');
    // A namesake further on in a new stream confirms nothing of the old one.
    await stream.jsm.streams.add({ name: stream.name, subjects: [`${stream.root}.>`] });
    await fill(nc, stream, 30, () => 'x');
    const anew = await ready(source, stream.name, ['>'], 25);
    expect(await source.acknowledge({ ...receipt, consumer: anew.durable }, never)).toBe('deferred');
    expect(Date.now() - start).toBeLessThan(15_000);
  });

  test('put back above the receipt is confirmed: the floor says so', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 20, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const { records } = await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    await source.putBack(spec, 11);
    expect(await source.acknowledge(receiptFor(spec, records), never)).toBe('confirmed');
  });

  test('one record that cannot be had back is deferred, never claimed, and within seconds', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 10, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const { records } = await source.pull(pullRequest(spec), never);
    const holed = receiptFor(
      spec,
      records.filter(({ position }) => position !== 4),
    );
    const start = Date.now();
    expect(await source.acknowledge(holed, never)).toBe('deferred');
    expect(Date.now() - start).toBeLessThan(30_000);
    expect((await source.readConsumer(spec.stream, spec.durable))!.ackFloor).toBe(3);
  });

  test('abort ends it with its reason', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 10, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const { records } = await source.pull(pullRequest(spec), never);
    const holed = receiptFor(spec, records.slice(1));
    const controller = new AbortController();
    const reason = new Error(uniqueName('enough'));
    setTimeout(() => controller.abort(reason), 300);
    await expect(source.acknowledge(holed, controller.signal)).rejects.toBe(reason);
  });
});

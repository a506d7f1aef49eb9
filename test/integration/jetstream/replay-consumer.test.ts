import { describe, expect, test } from 'vitest';
import { createSource } from '../../../jetstream/source.ts';
import { connectTestNats, uniqueName } from '../../support/servers.ts';
import { faultCode, fill, makeStream, never, owner, pullRequest, ready, receiptFor, specOf } from './streams.ts';

const nc = await connectTestNats();
const source = createSource(nc);

describe('the durable', () => {
  test('is put back at the cursor, with its owner, and everything below acknowledged', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 20, (i) => ['a', 'b'][i % 2]!);
    const spec = specOf(await source.describe(stream.name), uniqueName('d'), [`${stream.root}.a`, `${stream.root}.b`]);
    expect(await source.readConsumer(spec.stream, spec.durable)).toBeNull();
    await source.putBack(spec, 5);
    expect(await source.readConsumer(spec.stream, spec.durable)).toEqual({
      owner,
      completed: false,
      ackFloor: 4,
      delivered: { stream: 4, consumer: 0 },
      pending: 16,
      ackPending: 0,
      altered: [],
      startSequence: 5,
    });
    await source.pull(pullRequest(spec, { maxRecords: 10 }), never);
    expect(await source.readConsumer(spec.stream, spec.durable)).toMatchObject({ ackPending: 10, delivered: { consumer: 10 } });
    await source.putBack(spec, 7);
    const again = await source.pull(pullRequest(spec), never);
    expect(again.records.map(({ position }) => position)).toEqual(Array.from({ length: 14 }, (_, i) => i + 7));
    expect(again.records[0]).toMatchObject({ consumerSequence: 1, redelivered: false });
    await source.deleteConsumer(spec.stream, spec.durable);
    await source.deleteConsumer(spec.stream, spec.durable);
    expect(await source.readConsumer(spec.stream, spec.durable)).toBeNull();
  });

  test('made by hand is never touched', async () => {
    const stream = await makeStream(nc);
    const spec = specOf(await source.describe(stream.name), uniqueName('d'), ['>']);
    await stream.jsm.consumers.add(stream.name, { durable_name: spec.durable, ack_policy: 'explicit' as never });
    const { created } = await stream.jsm.consumers.info(stream.name, spec.durable);
    expect(await source.readConsumer(spec.stream, spec.durable)).toMatchObject({ owner: null });
    expect(await faultCode(source.putBack(spec, 1))).toBe('consumer_taken');
    expect(await faultCode(source.deleteConsumer(spec.stream, spec.durable))).toBe('consumer_taken');
    expect(await faultCode(source.markCompleted(spec))).toBe('consumer_taken');
    expect((await stream.jsm.consumers.info(stream.name, spec.durable)).created).toBe(created);
  });

  test("another replay's is taken; the same replay's of an earlier run is replaced", async () => {
    const stream = await makeStream(nc);
    const spec = await ready(source, stream.name, ['>']);
    const foreign = (changes: object) => ({ ...spec, owner: { ...owner, ...changes } });
    expect(await faultCode(source.putBack(foreign({ fingerprint: 'other' }), 1))).toBe('consumer_taken');
    expect(await faultCode(source.putBack(foreign({ namespace: 'other' }), 1))).toBe('consumer_taken');
    expect(await faultCode(source.putBack(foreign({ cluster: 'other' }), 1))).toBe('consumer_taken');
    expect((await source.readConsumer(spec.stream, spec.durable))!.owner).toEqual(owner);
    await source.putBack(foreign({ firstRunId: 'run-2', workflowId: 'another' }), 1);
    expect((await source.readConsumer(spec.stream, spec.durable))!.owner).toMatchObject({ firstRunId: 'run-2' });
  });

  test('of two put-backs at once one stands, and it is fresh', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 5, () => 'x');
    const spec = specOf(await source.describe(stream.name), uniqueName('d'), ['>']);
    const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => source.putBack(spec, 3)));
    expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true);
    expect(await source.readConsumer(spec.stream, spec.durable)).toMatchObject({ ackFloor: 2, delivered: { consumer: 0 } });
  });

  test('a recreated stream is noticed and left alone; a missing one is named', async () => {
    const stream = await makeStream(nc);
    const spec = await ready(source, stream.name, ['>']);
    await stream.jsm.streams.delete(stream.name);
    expect(await faultCode(source.putBack(spec, 1))).toBe('stream_missing');
    expect(await faultCode(source.readConsumer(spec.stream, spec.durable))).toBe('stream_missing');
    expect(await faultCode(source.describe(spec.stream))).toBe('stream_missing');
    await stream.jsm.streams.add({ name: stream.name, subjects: [`${stream.root}.>`] });
    expect(await faultCode(source.putBack(spec, 1))).toBe('stream_recreated');
    expect(await source.readConsumer(spec.stream, spec.durable)).toBeNull();
  });

  test('says which limit of the stream refused it', async () => {
    const limited = await makeStream(nc, { consumer_limits: { max_ack_pending: 100, inactive_threshold: 60_000_000_000 } });
    const facts = await source.describe(limited.name);
    expect(facts.consumerLimits).toEqual({ maxAckPending: 100, inactiveThresholdMs: 60_000 });
    await expect(source.putBack(specOf(facts, uniqueName('d'), ['>'], 200), 1)).rejects.toMatchObject({
      code: 'consumer_refused',
      detail: expect.stringContaining('max_ack_pending') as string,
    });
    // The inherited threshold is the stream's own and no alteration.
    const fitting = specOf(facts, uniqueName('d'), ['>'], 100);
    await source.putBack(fitting, 1);
    expect((await source.readConsumer(facts.stream, fitting.durable))!.altered).toEqual([]);

    const single = await makeStream(nc, { max_consumers: 1 });
    await ready(source, single.name, ['>']);
    const second = specOf(await source.describe(single.name), uniqueName('d'), ['>']);
    await expect(source.putBack(second, 1)).rejects.toMatchObject({
      code: 'consumer_refused',
      detail: expect.stringContaining('max_consumers') as string,
    });
  });

  test('tells which of its settings somebody altered', async () => {
    const stream = await makeStream(nc);
    const spec = await ready(source, stream.name, [`${stream.root}.a`, `${stream.root}.b`]);
    await stream.jsm.consumers.update(stream.name, spec.durable, {
      filter_subjects: [`${stream.root}.a`],
      max_ack_pending: 5,
      ack_wait: 30_000_000_000,
    });
    expect((await source.readConsumer(spec.stream, spec.durable))!.altered.toSorted()).toEqual([
      'ack_wait',
      'filter_subjects',
      'max_ack_pending',
    ]);
  });

  test('keeps the word of its completion', async () => {
    const stream = await makeStream(nc);
    await fill(nc, stream, 3, () => 'x');
    const spec = await ready(source, stream.name, ['>']);
    const { records } = await source.pull(pullRequest(spec), never);
    await source.acknowledge(receiptFor(spec, records), never);
    await source.markCompleted(spec);
    await source.markCompleted(spec);
    expect(await source.readConsumer(spec.stream, spec.durable)).toMatchObject({
      completed: true,
      owner,
      ackFloor: 3,
      altered: [],
    });
    await source.putBack(spec, 1);
    expect(await source.readConsumer(spec.stream, spec.durable)).toMatchObject({ completed: false });
    expect(await faultCode(source.markCompleted({ ...spec, durable: uniqueName('gone') }))).toBe('consumer_disturbed');
  });
});

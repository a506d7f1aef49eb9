import { describe, expect, test } from 'vitest';
import { connectNats } from '../../../jetstream/connection.ts';
import { createSource, type Source } from '../../../jetstream/source.ts';
import { startNats, type NatsServer } from '../../../scripts/servers/nats.ts';
import { faultCode, fill, makeStream, never, pause, pullRequest, ready, receiptFor, type TestStream } from './streams.ts';

/** A server of its own, since each of these tests kills it. */
async function withServer(act: (server: NatsServer, source: Source, stream: TestStream) => Promise<void>): Promise<void> {
  const server = await startNats();
  const nc = await connectNats({ servers: [server.url], login: { kind: 'none' }, tls: null });
  try {
    const stream = await makeStream(nc);
    await fill(nc, stream, 2_000, () => 'x');
    await act(server, createSource(nc), stream);
  } finally {
    await nc.close();
    await server.stop();
  }
}

/** Waits until the connection is back. */
async function answered<T>(act: () => Promise<T>): Promise<T> {
  for (let i = 0; i < 100; i++) {
    try {
      return await act();
    } catch (error) {
      if (!['nats_unreachable', 'nats_timeout'].includes((error as { code?: string }).code ?? '')) throw error;
      await pause(100);
    }
  }
  throw new Error('the server did not come back');
}

describe('a server that fails', () => {
  test('killed during a waiting pull: broken at once; requests are unreachable until it is back', async () => {
    await withServer(async (server, source, stream) => {
      const spec = await ready(source, stream.name, ['>'], 2_001);
      const start = Date.now();
      const waiting = source.pull(pullRequest(spec, { waitMs: 30_000 }), never);
      await pause(200);
      await server.kill();
      expect(await waiting).toEqual({ records: [], end: 'broken' });
      expect(Date.now() - start).toBeLessThan(15_000);
      expect(await faultCode(source.describe(stream.name))).toBe('nats_unreachable');
      expect(await faultCode(source.pull(pullRequest(spec), never))).toBe('nats_unreachable');
      await server.restart();
      expect((await answered(() => source.describe(stream.name))).lastSequence).toBe(2_000);
      await source.putBack(spec, 1_991);
      expect((await source.pull(pullRequest(spec), never)).records).toHaveLength(10);
    });
  });

  test('killed while it delivers: whatever came is a clean beginning, and never drained', async () => {
    await withServer(async (server, source, stream) => {
      const spec = await ready(source, stream.name, ['>']);
      const killing = pause(5).then(() => server.kill());
      const { records, end } = await source.pull(pullRequest(spec, { maxRecords: 2_000 }), never);
      await killing;
      expect(records.map((record) => record.position)).toEqual(records.map((_, i) => i + 1));
      expect(end).toBe(records.length === 2_000 ? 'full' : 'broken');
    });
  });

  test('killed before the ACK: deferred, and the put-back settles it', async () => {
    await withServer(async (server, source, stream) => {
      const spec = await ready(source, stream.name, ['>']);
      const { records } = await source.pull(pullRequest(spec, { maxRecords: 1_000 }), never);
      await server.kill();
      const receipt = receiptFor(spec, records);
      expect(await faultCode(source.acknowledge(receipt, never))).toBe('nats_unreachable');
      await server.restart();
      const start = Date.now();
      // It may have written down the deliveries in time; it may not say so when the floor does not.
      const outcome = await answered(() => source.acknowledge(receipt, never));
      const { ackFloor } = (await source.readConsumer(spec.stream, spec.durable))!;
      expect(outcome).toBe(ackFloor >= receipt.lastSequence ? 'confirmed' : 'deferred');
      expect(Date.now() - start).toBeLessThan(60_000);
      await source.putBack(spec, 1_001);
      expect(await source.acknowledge(receipt, never)).toBe('confirmed');
      expect((await source.pull(pullRequest(spec), never)).records[0]!.position).toBe(1_001);
    });
  });

  test('killed right after the ACK was confirmed: the floor may fall, and is told as it is', async () => {
    await withServer(async (server, source, stream) => {
      const spec = await ready(source, stream.name, ['>']);
      const { records } = await source.pull(pullRequest(spec, { maxRecords: 500 }), never);
      const receipt = receiptFor(spec, records);
      expect(await source.acknowledge(receipt, never)).toBe('confirmed');
      await server.kill();
      await server.restart();
      const facts = (await answered(() => source.readConsumer(spec.stream, spec.durable)))!;
      const outcome = await source.acknowledge(receipt, never);
      const after = (await source.readConsumer(spec.stream, spec.durable))!;
      expect(outcome).toBe(after.ackFloor >= receipt.lastSequence ? 'confirmed' : 'deferred');
      expect(facts.ackFloor).toBeLessThanOrEqual(500);
    });
  });

  test('stopped in the middle (SIGSTOP): a waiting pull is broken by silence, not drained', async () => {
    await withServer(async (server, source, stream) => {
      const spec = await ready(source, stream.name, ['>'], 2_001);
      const waiting = source.pull(pullRequest(spec, { waitMs: 60_000 }), never);
      await pause(300);
      server.signal('SIGSTOP');
      const start = Date.now();
      try {
        expect(await waiting).toEqual({ records: [], end: 'broken' });
        expect(Date.now() - start).toBeLessThan(20_000);
      } finally {
        server.signal('SIGCONT');
      }
    });
  });

  test('shut down properly (SIGTERM) during a waiting pull: broken', async () => {
    await withServer(async (server, source, stream) => {
      const spec = await ready(source, stream.name, ['>'], 2_001);
      const waiting = source.pull(pullRequest(spec, { waitMs: 30_000 }), never);
      await pause(200);
      await server.halt();
      expect(await waiting).toEqual({ records: [], end: 'broken' });
    });
  });
});

test('a blocked event loop loses nothing and is not taken for silence', async () => {
  await withServer(async (_, source, stream) => {
    const spec = await ready(source, stream.name, ['>']);
    const pulling = source.pull(pullRequest(spec, { maxRecords: 2_000 }), never);
    await pause(0);
    const end = Date.now() + 6_000;
    while (Date.now() < end) {
      // Busy on purpose.
    }
    const pulled = await pulling;
    expect([pulled.end, pulled.records.length]).toEqual(['full', 2_000]);
  });
});

test('domains and the long form of ACK subjects', async () => {
  const config = 'jetstream { domain: hub }\nfeature_flags { js_ack_fc_v2: true }\n';
  const server = await startNats({ config, minimum: [2, 14, 0] });
  try {
    const nc = await connectNats({ servers: [server.url], login: { kind: 'none' }, tls: null });
    const stream = await makeStream(nc);
    await fill(nc, stream, 20, () => 'x');
    const source = createSource(nc, { domain: 'hub' });
    const spec = await ready(source, stream.name, ['>']);
    const sample = nc.subscribe('probe', { max: 1 });
    nc.publish(`$JS.hub.API.CONSUMER.MSG.NEXT.${stream.name}.${spec.durable}`, '1', { reply: 'probe' });
    for await (const message of sample) expect(message.reply!.split('.').length).toBeGreaterThanOrEqual(11);
    await source.putBack(spec, 1);
    const { records, end } = await source.pull(pullRequest(spec), never);
    expect([records.length, end]).toEqual([20, 'drained']);
    expect(records.at(-1)).toMatchObject({ position: 20, consumerSequence: 20 });
    expect(await source.acknowledge(receiptFor(spec, records), never)).toBe('confirmed');
    expect(await faultCode(createSource(nc, { domain: 'elsewhere' }).describe(stream.name))).toBe('nats_timeout');
    await nc.close();
  } finally {
    await server.stop();
  }
});

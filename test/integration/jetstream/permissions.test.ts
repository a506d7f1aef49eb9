import { readFile } from 'node:fs/promises';
import { connect } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectNats, readNatsSettings } from '../../../jetstream/connection.ts';
import { createSource, type Source } from '../../../jetstream/source.ts';
import { startNats, type NatsServer } from '../../../scripts/servers/nats.ts';
import { faultCode, never, pause, pullRequest, receiptFor, specOf } from './streams.ts';

/** The very block of the documentation, with a second user who makes the streams. */
async function documentedConfig(changes: (text: string) => string = (text) => text): Promise<string> {
  const page = await readFile(new URL('../../../docs/permissions.md', import.meta.url), 'utf8');
  const block = /```conf\n([\s\S]*?)```/.exec(page)![1]!;
  const admin = '    { user: "admin", password: "admin" }\n  ]\n}\n';
  return changes(block.replace('$REPLAY_NATS_PASSWORD', '"secret"').replace(/ {2}\]\n\}\n$/, admin));
}

let server: NatsServer;
beforeAll(async () => {
  server = await startNats({ config: await documentedConfig(), login: { user: 'admin', pass: 'admin' } });
  const admin = await connect({ servers: server.url, user: 'admin', pass: 'admin' });
  const jsm = await admin.jetstreamManager();
  await jsm.streams.add({ name: 'ORDERS', subjects: ['orders.>'], allow_direct: true });
  await jsm.streams.add({ name: 'DLQ', subjects: ['dlq.>'] });
  await jsm.streams.add({ name: 'OTHER', subjects: ['other.>'], allow_direct: true });
  await jsm.consumers.add('ORDERS', { durable_name: 'victim', ack_policy: 'explicit' as never });
  for (let i = 0; i < 100; i++) await admin.jetstream().publish(`orders.${['created', 'updated'][i % 2]!}`, `body-${i}`);
  await admin.close();
});
afterAll(() => server.stop());

async function withReplayUser<T>(act: (source: Source, settings: Record<string, string>) => Promise<T>): Promise<T> {
  const env = { NATS_URL: server.url, NATS_USER: 'replay', NATS_PASSWORD: 'secret', NATS_INBOX_PREFIX: '_INBOX_replay' };
  const settings = readNatsSettings(env);
  if (!settings.ok) throw new Error(JSON.stringify(settings.problems));
  const nc = await connectNats(settings.value);
  try {
    return await act(createSource(nc, settings.value), env);
  } finally {
    await nc.close();
  }
}

describe('the documented user', () => {
  test('can do all that a replay does', async () => {
    await withReplayUser(async (source) => {
      const facts = await source.describe('ORDERS');
      const filters = ['orders.created', 'orders.updated'];
      expect(await source.count(facts, { filters, first: 1, last: 100 })).toMatchObject({
        messages: 100,
        exact: { messages: true },
      });
      expect(await source.sequenceAt(facts, 0n)).toBe(1);
      expect(await source.sequenceAt({ ...facts, allowDirect: false }, 0n)).toBe(1);
      expect(await source.timesRise(facts, 1, 100)).toBe(true);
      expect(await source.isBound('dlq.orders')).toBe(true);
      expect(await source.duplicateWindowMs('dlq.orders')).toBeNull();
      const spec = specOf(facts, 'orders-replay', filters);
      expect(await source.readConsumer('ORDERS', 'orders-replay')).toBeNull();
      await source.putBack(spec, 1);
      await source.putBack(spec, 11);
      const pulled = await source.pull(pullRequest(spec), never);
      expect([pulled.records.length, pulled.end]).toEqual([90, 'drained']);
      const { position, timeNanos } = pulled.records[3]!;
      const letter = {
        subject: 'dlq.orders',
        source: { stream: 'ORDERS', incarnation: facts.incarnation },
        reject: { sequence: position, time: timeNanos.toString(), code: 'value_too_long' as const },
        replayId: 'replay-id',
        plan: 'orders-replay',
        run: 'run',
        attempt: 1,
      };
      expect(await source.publishDeadLetter(letter, never)).toEqual({ duplicate: false, body: 'kept' });
      expect(await source.acknowledge(receiptFor(spec, pulled.records), never)).toBe('confirmed');
      await source.markCompleted(spec);
      expect(await source.readConsumer('ORDERS', 'orders-replay')).toMatchObject({ completed: true, ackFloor: 100 });
      await source.deleteConsumer('ORDERS', 'orders-replay');
    });
  });

  test('is denied everything else, quickly and by name', async () => {
    await withReplayUser(async (source) => {
      const facts = await source.describe('ORDERS');
      const other = { ...facts, stream: 'OTHER' };
      const spec = specOf(facts, 'victim', ['>']);
      const letter = {
        subject: 'dlq.other',
        source: { stream: 'ORDERS', incarnation: facts.incarnation },
        reject: { sequence: 1, time: '1', code: 'value_too_long' as const },
        replayId: 'replay-id',
        plan: 'p',
        run: 'r',
        attempt: 1,
      };
      const receipt = {
        stream: 'ORDERS',
        consumer: 'victim',
        incarnation: facts.incarnation,
        runs: [1, 1],
        count: 1,
        firstSequence: 1,
        lastSequence: 1,
        lastConsumerSequence: 1,
      };
      const denied: Record<string, () => Promise<unknown>> = {
        describe: () => source.describe('OTHER'),
        sequenceAt: () => source.sequenceAt(other, 0n),
        count: () => source.count(other, { filters: ['>'], first: 1, last: 10 }),
        readConsumer: () => source.readConsumer('ORDERS', 'victim'),
        putBack: () => source.putBack(spec, 1),
        deleteConsumer: () => source.deleteConsumer('ORDERS', 'victim'),
        markCompleted: () => source.markCompleted(spec),
        pull: () => source.pull(pullRequest(spec, { waitMs: 20_000 }), never),
        acknowledge: () => source.acknowledge(receipt, never),
        publishDeadLetter: () => source.publishDeadLetter(letter, never),
        isBound: () => source.isBound('dlq.other'),
        publish: () => source.isBound('orders.created'),
      };
      const start = Date.now();
      for (const [name, act] of Object.entries(denied)) expect([name, await faultCode(act())]).toEqual([name, 'nats_denied']);
      expect(Date.now() - start).toBeLessThan(10_000);
    });
  });

  test('a refused ACK is denied, not waited for', async () => {
    const config = await documentedConfig((text) => text.replace('"$JS.ACK.ORDERS.orders-replay.>"', ''));
    const strict = await startNats({ config, login: { user: 'admin', pass: 'admin' } });
    try {
      const admin = await connect({ servers: strict.url, user: 'admin', pass: 'admin' });
      await (await admin.jetstreamManager()).streams.add({ name: 'ORDERS', subjects: ['orders.>'] });
      await admin.jetstream().publish('orders.created', 'x');
      await admin.close();
      const nc = await connect({ servers: strict.url, user: 'replay', pass: 'secret', inboxPrefix: '_INBOX_replay' });
      const source = createSource(nc, { inboxPrefix: '_INBOX_replay' });
      const spec = specOf(await source.describe('ORDERS'), 'orders-replay', ['>']);
      await source.putBack(spec, 1);
      const { records } = await source.pull(pullRequest(spec), never);
      await expect(source.acknowledge(receiptFor(spec, records), never)).rejects.toMatchObject({
        code: 'nats_denied',
        detail: 'publishing is not allowed: $JS.ACK',
      });
      await nc.close();
    } finally {
      await strict.stop();
    }
  });

  test('an inbox that may not be subscribed to is denied', async () => {
    const nc = await connect({ servers: server.url, user: 'replay', pass: 'secret' });
    const source = createSource(nc);
    expect(await faultCode(source.describe('ORDERS'))).toBe('nats_denied');
    const request = { stream: 'ORDERS', incarnation: '', durable: 'orders-replay', maxRecords: 1, maxBytes: 1_000, waitMs: 0 };
    expect(await faultCode(source.pull(request, never))).toBe('nats_denied');
    await nc.close();
  });

  test('a wrong password is denied, and says nothing of it', async () => {
    const settings = readNatsSettings({ NATS_URL: server.url, NATS_USER: 'replay', NATS_PASSWORD: 'hunter2' });
    const refused = settings.ok ? connectNats(settings.value) : Promise.resolve();
    const error = await refused.then(
      () => null,
      (fault: Error) => fault,
    );
    expect(error).toMatchObject({ code: 'nats_denied' });
    expect(`${error!.message} ${String(error!.cause)}`).not.toMatch(/hunter2|replay_|127\.0\.0\.1/);
  });
});

test('a login refused on reconnecting is denied, and mends itself', async () => {
  const configOf = (password: string) => `authorization { users = [{ user: "u", password: "${password}" }] }\n`;
  const login = (pass: string) => ({ user: 'u', pass });
  let server = await startNats({ config: configOf('one'), login: login('one') });
  const { port } = server;
  const env = { NATS_URL: server.url, NATS_USER: 'u', NATS_PASSWORD: 'one' };
  const settings = readNatsSettings(env);
  if (!settings.ok) throw new Error('refused');
  const nc = await connectNats(settings.value);
  const source = createSource(nc);
  const until = async (wanted: string) => {
    for (let i = 0; i < 100 && (await faultCode(source.describe('NONE'))) !== wanted; i++) await pause(100);
    expect(await faultCode(source.describe('NONE'))).toBe(wanted);
  };
  try {
    await until('stream_missing');
    await server.stop();
    await until('nats_unreachable');
    server = await startNats({ port, config: configOf('two'), login: login('two') });
    await until('nats_denied');
    await server.stop();
    server = await startNats({ port, config: configOf('one'), login: login('one') });
    await until('stream_missing');
  } finally {
    await nc.close();
    await server.stop();
  }
});

test('a server that is not there, files that are not there: named without addresses', async () => {
  const connecting = (env: Record<string, string>) => {
    const settings = readNatsSettings(env);
    return settings.ok ? connectNats(settings.value) : Promise.reject(new Error('refused'));
  };
  await expect(connecting({ NATS_URL: 'nats://127.0.0.1:1' })).rejects.toMatchObject({ code: 'nats_unreachable' });
  await expect(connecting({ NATS_URL: 'nats://no-such-host.invalid' })).rejects.toMatchObject({ code: 'nats_unreachable' });
  for (const name of ['NATS_CREDS', 'NATS_NKEY', 'NATS_CA']) {
    const fault = connecting({ NATS_URL: server.url, [name]: '/no/such/file' });
    await expect(fault).rejects.toMatchObject({ code: 'nats_denied', detail: `the file that ${name} names cannot be read` });
  }
});

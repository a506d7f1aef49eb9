import { createHash } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import type { JetStreamManager, NatsConnection } from 'nats';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Progress } from '../../../core/progress.ts';
import type { Report } from '../../../core/report.ts';
import type { ReplayRequest } from '../../../core/steps.ts';
import { atFileEnd } from '../../support/file-end.ts';
import type { Listener } from '../../support/oracle-wire/listener.ts';
import { testOracle, withoutWire, type TestUser } from '../../support/oracle.ts';
import { requestInto } from '../../support/request.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../../support/servers.ts';
import { addStream, mixedMessages, publishAll, type TestMessage, type TestStream } from '../../support/streams.ts';
import { startWorker, type TestWorker } from '../../support/worker.ts';

const SECRET = 'REPLAY_SECRET_ORACLE';

let nats: NatsConnection;
let manager: JetStreamManager;
let client: Client;
let listener: Listener;
let user: TestUser;
let worker: TestWorker;

describe.skipIf(withoutWire)('a replay into Oracle', () => {
  beforeAll(async () => {
    const oracle = await testOracle();
    listener = oracle.listener!;
    user = await oracle.addUser();
    nats = await connectTestNats();
    manager = await nats.jetstreamManager();
    const connection = await Connection.connect({ address: temporalAddress() });
    atFileEnd(() => connection.close());
    client = new Client({ connection });
    worker = await startWorker({ [SECRET]: user.password });
  }, 180_000);
  afterEach(() => {
    for (const place of ['statement', 'commit', 'connect'] as const) listener.inject(place, null);
    delete listener.accounts.get(user.service)!.refuse;
  });
  afterAll(() => user.drop());

  test(
    '2,000 mixed bodies land exactly; again under another durable they are 2,000 duplicates',
    { timeout: 180_000 },
    async () => {
      const stream = await filled(mixedMessages, 2_000);
      const input = request(stream, { table: 'mixed', create_table: true });
      const report = (await (await start(input)).result()) as Report;
      expect(report.counts).toMatchObject({ written: 2_000, duplicate: 0, rejected: 0, acked: 2_000 });
      const stored = await user.query('SELECT STREAM_SEQUENCE N, SUBJECT, PAYLOAD FROM MIXED ORDER BY STREAM_SEQUENCE');
      const rows = stored.map(({ N: n, SUBJECT: subject, PAYLOAD: payload }) => [Number(n), subject, md5(payload as Buffer)]);
      expect(rows).toEqual([...mixedMessages(stream.prefix, 2_000)].map(({ subject, body }, i) => [i + 1, subject, md5(body)]));
      const again = (await (await start(request(stream, { table: 'mixed' }))).result()) as Report;
      expect(again.counts).toMatchObject({ written: 0, duplicate: 2_000, acked: 2_000 });
      expect(await countRows('MIXED')).toBe(2_000);
    },
  );

  test('4 of 2,000 records too long: 1,996 rows, exactly 4 dead letters', { timeout: 120_000 }, async () => {
    const stream = await filled(function* (prefix, count) {
      for (let i = 0; i < count; i++) {
        const name = i % 500 === 250 ? 'x'.repeat(101) : `customer ${i}`;
        yield { subject: `${prefix}.created`, body: new TextEncoder().encode(JSON.stringify({ id: i, name })) };
      }
    }, 2_000);
    await user.query('CREATE TABLE LONG_NAMES (ID NUMBER PRIMARY KEY, NAME VARCHAR2(100 CHAR), SEQ NUMBER, INC VARCHAR2(40))');
    const columns = {
      id: { payload: '/id' },
      name: { payload: '/name' },
      seq: { field: 'sequence' },
      inc: { field: 'incarnation' },
    };
    const { plan, target } = request(stream, { table: 'long_names', columns });
    const keyed = { ...(target as object), idempotency: { key: 'payload_field', field: '/id' } };
    const report = (await (await start({ plan, target: keyed })).result()) as Report;
    expect(report.counts).toMatchObject({ written: 1_996, rejected: 4, dead_lettered: 4, acked: 2_000 });
    expect(report.rejects[0]).toMatchObject({ code: 'value_too_long', field: 'NAME', sequence: 251 });
    expect(await countRows('LONG_NAMES')).toBe(1_996);
    expect((await manager.streams.info(stream.deadLetterStream)).state.messages).toBe(4);
  });

  test('a wrong password blocks, writes no dead letter, and the run goes on after the mend and resume', async () => {
    const stream = await filled(mixedMessages, 200);
    const account = listener.accounts.get(user.service)!;
    account.refuse = { number: 1017, message: 'x' };
    const handle = await start(request(stream, { table: 'login', create_table: true }));
    expect((await until(handle.workflowId, ({ state }) => state === 'blocked')).problem?.code).toBe('sink_login');
    delete account.refuse;
    await handle.signal('resume');
    expect(((await handle.result()) as Report).counts).toMatchObject({ written: 200, dead_lettered: 0, acked: 200 });
  });

  test(
    'a full tablespace blocks; a lost commit and a dropped line are tried again: nothing lost, nothing twice',
    { timeout: 180_000 },
    async () => {
      const stream = await filled(mixedMessages, 2_000);
      listener.inject('statement', { number: 1653, message: 'x' }, { only: /^INSERT/ });
      const handle = await start(
        request(stream, { table: 'faulty', create_table: true }, { batch_size: 100, rate_limit_per_second: 1_000 }),
      );
      const blocked = await until(handle.workflowId, ({ state }) => state === 'blocked');
      expect(blocked.problem?.code).toBe('sink_full');
      expect(blocked.counts).toMatchObject({ written: 0, dead_lettered: 0, acked: 0 });
      listener.inject('statement', null);
      await handle.signal('resume');
      await until(handle.workflowId, ({ counts }) => counts.written >= 200);
      // From now on answers to commits are lost, until one was.
      listener.inject('commit', 'drop after');
      const before = listener.calls.commit;
      while (listener.calls.commit === before) await new Promise((resolve) => setTimeout(resolve, 10));
      listener.inject('commit', null);
      listener.drop();
      const { counts } = (await handle.result()) as Report;
      expect(counts).toMatchObject({ rejected: 0, dead_lettered: 0, acked: 2_000 });
      expect(counts.written + counts.duplicate).toBe(2_000);
      expect(counts.duplicate).toBeGreaterThan(0);
      const [row] = await user.query(
        'SELECT COUNT(*) N, COUNT(DISTINCT STREAM_SEQUENCE) D, MAX(STREAM_SEQUENCE) M FROM FAULTY',
      );
      expect(row).toEqual({ N: '2000', D: '2000', M: '2000' });
    },
  );

  test('no log line holds a secret, an address or what was stored', () => {
    for (const secret of [user.password, user.user, user.service, 'customer 1']) expect(worker.log()).not.toContain(secret);
  });
});

type Messages = (prefix: string, count: number) => Iterable<TestMessage>;

async function filled(messages: Messages, count: number): Promise<TestStream> {
  const stream = await addStream(manager);
  await publishAll(nats, messages(stream.prefix, count));
  return stream;
}

function request(stream: TestStream, sink: object, plan: Readonly<Record<string, unknown>> = {}): ReplayRequest {
  return requestInto({ type: 'oracle', ...user.place, password: { env: SECRET }, ...sink }, stream, plan);
}

async function start(input: ReplayRequest) {
  const options = { taskQueue: 'durable-replay', workflowId: uniqueName('oracle'), workflowTaskTimeout: '5s', args: [input] };
  return await client.workflow.start('replayPlan', options);
}

async function until(workflowId: string, wanted: (progress: Progress) => boolean): Promise<Progress> {
  const deadline = Date.now() + 50_000;
  for (;;) {
    const progress = await client.workflow.getHandle(workflowId).query<Progress>('progress');
    if (wanted(progress)) return progress;
    const over = ['completed', 'canceled', 'refused'].includes(progress.state);
    if (over || Date.now() > deadline) throw new Error(`not reached; last: ${JSON.stringify(progress)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function md5(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}

async function countRows(table: string): Promise<number> {
  return Number((await user.query(`SELECT COUNT(*) N FROM ${table}`))[0]!['N']);
}

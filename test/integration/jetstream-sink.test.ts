import { headers as natsHeaders } from 'nats';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { newPlace, openBench, startLocalWorker, startRun, until, type Bench, type Place } from '../support/fault-bench.ts';
import { requestOf } from '../support/request.ts';
import { connectTestNats, uniqueName } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll, type TestMessage, type TestStream } from '../support/streams.ts';

let bench: Bench;
let place: Place;
beforeAll(async () => {
  bench = await openBench();
  place = await newPlace();
  await startLocalWorker(bench, place);
}, 120_000);

interface Destination {
  readonly name: string;
  readonly sink: Record<string, unknown>;
}

async function addDestination(config: Record<string, unknown> = {}): Promise<Destination> {
  const name = uniqueName('COPY');
  await bench.manager.streams.add({ name, subjects: [`${name}.>`], allow_direct: true, ...config });
  return { name, sink: { type: 'jetstream', stream: name, subject_prefix: name } };
}

async function filled(messages: (prefix: string) => Iterable<TestMessage>): Promise<TestStream> {
  const stream = await addStream(bench.manager);
  await publishAll(bench.nats, messages(stream.prefix));
  return stream;
}

async function replay(
  stream: TestStream,
  sink: Record<string, unknown>,
  target: Record<string, unknown> = {},
): Promise<Report> {
  const request = withSink(stream, sink, target);
  return await (await startRun(bench.client, place, request)).result();
}

function withSink(stream: TestStream, sink: Record<string, unknown>, target: Record<string, unknown> = {}) {
  const { plan } = requestOf(stream);
  return { plan, target: { sink, dead_letter: { subject: stream.deadLetterSubject }, ...target } };
}

interface Copy {
  readonly subject: string;
  readonly body: string;
  readonly id: string;
}

async function copies(name: string): Promise<Copy[]> {
  const { state } = await bench.manager.streams.info(name);
  const found: Copy[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq++) {
    const { subject, data, header } = await bench.manager.streams.getMessage(name, { seq });
    found.push({ subject, body: Buffer.from(data).toString('base64'), id: header.get('Nats-Msg-Id') });
  }
  return found;
}

describe('a replay into another stream', () => {
  test('copies bodies of every kind in order; the same again writes nothing, within the duplicate window and beyond it', async () => {
    const count = 1_500;
    const stream = await filled((prefix) => mixedMessages(prefix, count));
    const { name, sink } = await addDestination({ duplicate_window: 100_000_000 });
    expect((await replay(stream, sink)).counts).toMatchObject({ written: count, duplicate: 0, rejected: 0, acked: count });
    const sent = [...mixedMessages(stream.prefix, count)].map(({ subject, body }) => [
      `${name}.${subject}`,
      Buffer.from(body).toString('base64'),
    ]);
    const stored = await copies(name);
    expect(stored.map(({ subject, body }) => [subject, body])).toEqual(sent);

    await windowOver(name, stored[0]!.id);
    const again = await replay(stream, sink);
    expect(again.counts).toMatchObject({ written: 0, duplicate: count, acked: count });
    expect((await bench.manager.streams.info(name)).state.messages).toBe(count + 1);
  });

  test('two records of one message id are two; with the key message_id they are one, and one without an id is refused', async () => {
    const id = (text: string) => {
      const header = natsHeaders();
      header.set('Nats-Msg-Id', text);
      return header;
    };
    const stream = await addStream(bench.manager, { duplicate_window: 100_000_000 });
    const body = new TextEncoder().encode('{}');
    const subject = `${stream.prefix}.a`;
    await publishAll(bench.nats, [{ subject, body, headers: id('one') }]);
    await windowOver(stream.name, 'one', subject);
    await publishAll(bench.nats, [{ subject, body }]);

    const bySequence = await addDestination();
    expect((await replay(stream, bySequence.sink)).counts).toMatchObject({ written: 3, duplicate: 0 });
    const ids = (await copies(bySequence.name)).map((copy) => copy.id);
    expect(ids.filter((found) => found === 'one')).toHaveLength(1);
    expect(new Set(ids).size).toBe(3);

    const byId = await addDestination();
    const keyed = await replay(stream, byId.sink, { idempotency: { key: 'message_id' } });
    expect(keyed.counts).toMatchObject({ written: 1, duplicate: 1, rejected: 1, dead_lettered: 1 });
    expect(keyed.rejects).toMatchObject([{ sequence: 3, code: 'key_missing' }]);
  });

  test('a full destination blocks the plan, dead-letters nothing, and is filled exactly once there is room', async () => {
    const stream = await filled((prefix) => mixedMessages(prefix, 100));
    const { name, sink } = await addDestination({ max_msgs: 60, discard: 'new' });
    const run = await startRun(bench.client, place, withSink(stream, sink));
    await until(bench.client, run.workflowId, ({ state, problem }) => state === 'blocked' && problem?.code === 'sink_full');
    const { config } = await bench.manager.streams.info(name);
    await bench.manager.streams.update(name, { ...config, max_msgs: -1 });
    await run.signal('resume');
    const report = await run.result();
    expect(report.counts).toMatchObject({ rejected: 0, dead_lettered: 0, acked: 100 });
    expect(report.counts.written + report.counts.duplicate).toBe(100);
    const bodies = [...mixedMessages(stream.prefix, 100)].map((message) => Buffer.from(message.body).toString('base64'));
    expect((await copies(name)).map((copy) => copy.body)).toEqual(bodies);
  });

  test('refuses loops: into the stream it reads, and into one that the server copies into it', async () => {
    const stream = await filled((prefix) => mixedMessages(prefix, 10));
    await expect(replay(stream, { type: 'jetstream', stream: stream.name, subject_prefix: 'x' })).rejects.toMatchObject({
      cause: { message: expect.stringContaining('sink.stream: ') },
    });
    const { name, sink } = await addDestination();
    const { config } = await bench.manager.streams.info(stream.name);
    await bench.manager.streams.update(stream.name, { ...config, sources: [{ name }] });
    await expect(replay(stream, sink)).rejects.toMatchObject({
      cause: { message: expect.stringContaining('would feed itself') },
    });
  });

  test.each([
    ['a stream that is not there', 'sink_missing', () => ({ type: 'jetstream', stream: uniqueName('NONE') })],
    ['no prefix, so that the source takes the subjects', 'sink_unfit', (name: string) => ({ type: 'jetstream', stream: name })],
    [
      'a prefix that no stream takes',
      'sink_unfit',
      (name: string) => ({ type: 'jetstream', stream: name, subject_prefix: 'nobody' }),
    ],
  ])('%s: blocked with %s, nothing stored', async (_, code, sinkOf) => {
    const stream = await filled((prefix) => mixedMessages(prefix, 10));
    const { name } = await addDestination();
    const run = await startRun(bench.client, place, withSink(stream, sinkOf(name)));
    const blocked = await until(bench.client, run.workflowId, ({ state }) => state === 'blocked');
    expect(blocked.problem?.code).toBe(code);
    await run.cancel();
    await expect(run.result()).rejects.toThrow();
    expect((await bench.manager.streams.info(name)).state.messages).toBe(0);
    expect((await bench.manager.streams.info(stream.name)).state.messages).toBe(10);
  });
});

/** Waits until the stream takes the id once more: one message more is there then. */
async function windowOver(stream: string, id: string, subject = `${stream}.window`): Promise<void> {
  const js = (await connectTestNats()).jetstream();
  for (;;) {
    const ack = await js.publish(subject, '{}', { msgID: id });
    expect(ack.stream).toBe(stream);
    if (!ack.duplicate) return;
  }
}

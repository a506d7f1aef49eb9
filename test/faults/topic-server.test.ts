import { expect, test, vi } from 'vitest';
import { connectTopics, type PushGroup, type TopicHandle, type Topics } from '../../client/topics.ts';
import { topicsNatsMinimum } from '../../scripts/servers/locate.ts';
import { startNats, type NatsServer } from '../../scripts/servers/nats.ts';
import { keyed, offsetsOf, payloadsOf } from '../integration/topics/topics.ts';
import { atFileEnd } from '../support/file-end.ts';

/** Many calls to a real server, on a machine that may be slow. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const first = { partition: 0 };

async function ownServer(): Promise<{ server: NatsServer; topics: Topics; topic: TopicHandle }> {
  const server = await startNats({ minimum: topicsNatsMinimum });
  atFileEnd(() => server.stop());
  const topics = await clientOf(server);
  return { server, topics, topic: await topics.create('orders', { partitions: 1 }) };
}

async function clientOf(server: NatsServer): Promise<Topics> {
  const topics = await connectTopics({ env: { NATS_URL: server.url } });
  atFileEnd(() => topics.close());
  return topics;
}

/** Again and again, as a producer does that may lose nothing. */
async function accepted(push: () => Promise<PushGroup[]>): Promise<readonly number[]> {
  for (;;) {
    const groups = await push();
    if (groups.every(({ status }) => status === 'accepted')) return offsetsOf(groups);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test('a server that is silent: uncertain; the late batch and the same push again end with the same offsets', async () => {
  const { server, topic } = await ownServer();
  // Its size is known, so that the next push goes out at once.
  expect(offsetsOf(await topic.push(keyed('a')))).toEqual([0]);
  server.signal('SIGSTOP');
  const silent = await topic.push(keyed('b', 'c'));
  server.signal('SIGCONT');
  expect(silent).toMatchObject([{ status: 'uncertain', error: { code: expect.stringMatching(/^nats_/) as unknown } }]);
  const other = await (await clientOf(server)).open('orders');
  const answers = await Promise.all([accepted(() => topic.push(keyed('b', 'c'))), accepted(() => other.push(keyed('b', 'c')))]);
  expect(answers).toEqual([
    [1, 2],
    [1, 2],
  ]);
  expect(payloadsOf(await topic.read({ ...first, from: 0 }))).toEqual(['a', 'b', 'c']);
});

test('a server that was killed: keys, offsets and leases are what they were', async () => {
  const { server, topics, topic } = await ownServer();
  expect(offsetsOf(await topic.push(keyed('a', 'b')))).toEqual([0, 1]);
  const lease = await topic.group('g').lease({ ...first, limit: 1 });
  await server.kill();
  const refused = await topic.push(keyed('c'));
  expect(['rejected', 'uncertain']).toContain(refused[0]!.status);
  await server.restart();
  expect(await accepted(() => topic.push(keyed('b', 'c', 'a')))).toEqual([1, 2, 0]);
  const again = (await topics.open('orders')).group('g');
  expect(await again.lease(first)).toBeNull();
  expect(await lease!.commit()).toEqual({ result: 'advanced', cursor: 1 });
});

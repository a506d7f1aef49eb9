import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { NatsConnection } from 'nats';
import { openLink, type Link } from '../../jetstream/link.ts';
import { deleteGroups } from '../../jetstream/topics/group-store.ts';
import { ConsumerGroup } from '../../jetstream/topics/group.ts';
import { TopicLog } from '../../jetstream/topics/log.ts';
import { createTopic, deleteTopic, openTopic } from '../../jetstream/topics/registry.ts';
import type { TopicHandle, Topics } from '../../client/topics.ts';
import { addTopic, errorOf, keyed, offsetsOf, openTestTopics, payloadsOf } from '../integration/topics/topics.ts';
import { crashingConnection } from '../support/crashing-connection.ts';
import { connectTestNats, uniqueName } from '../support/servers.ts';

/** Many calls to a real server, on a machine that may be slow. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

/** A client is lost before and after each message that it sends; another one finds nothing lost, doubled or stuck. */

let topics: Topics;
let nats: NatsConnection;
let link: Link;

beforeAll(async () => {
  topics = await openTestTopics();
  nats = await connectTestNats();
  link = openLink(nats);
});

const moments = ['before', 'after'] as const;
const first = { partition: 0 };
/** More than any of the calls below sends. */
const pointsMax = 40;

interface Crash {
  readonly point: number;
  readonly when: 'before' | 'after';
}

/** Runs `prepare`, crashes `act` at each of its points, and has `recover` look at what is left. Returns the number of points. */
async function crashEverywhere<T>(
  prepare: () => Promise<T>,
  act: (link: Link, on: T) => Promise<unknown>,
  recover: (on: T, crash: Crash) => Promise<void>,
): Promise<number> {
  for (let point = 0; point < pointsMax; point++) {
    for (const when of moments) {
      const on = await prepare();
      const { nc, crashed, sent } = crashingConnection(nats, point, when);
      const done = act(openLink(nc), on).then(() => 'done' as const);
      const ended = await Promise.race([done, crashed.then(() => 'crashed' as const)]);
      // The last message of a call may be lost and the call be done: then its effects are all there.
      if (ended === 'done' && sent() <= point) return point;
      await recover(on, { point, when });
    }
  }
  throw new Error(`more than ${pointsMax} points`);
}

async function logOf(on: Link, topic: TopicHandle): Promise<TopicLog> {
  return new TopicLog(on, await openTopic(link, topic.topic.name), {});
}

async function groupOf(on: Link, topic: TopicHandle): Promise<ConsumerGroup> {
  return new ConsumerGroup(on, await logOf(on, topic), 'g', {});
}

describe('push', () => {
  test('of new records: all or none, and the same push again ends with the same offsets', async () => {
    const points = await crashEverywhere(
      () => addTopic(topics),
      async (on, topic) => (await logOf(on, topic)).push(keyed('a', 'b', 'c')),
      async (topic, { point, when }) => {
        const stored = (await topic.bounds())[0]!.next;
        expect(stored).toBe(point === 3 && when === 'after' ? 3 : 0);
        expect(offsetsOf(await topic.push(keyed('a', 'b', 'c')))).toEqual([0, 1, 2]);
        expect(payloadsOf(await topic.read({ ...first, from: 0 }))).toEqual(['a', 'b', 'c']);
      },
    );
    // The size of the partition, then the three records.
    expect(points).toBe(4);
  });

  test('of records that are there in part', async () => {
    const points = await crashEverywhere(
      async () => {
        const topic = await addTopic(topics);
        await topic.push(keyed('b'));
        return topic;
      },
      async (on, topic) => (await logOf(on, topic)).push(keyed('a', 'b', 'c')),
      async (topic) => {
        expect([1, 3]).toContain((await topic.bounds())[0]!.next);
        expect(offsetsOf(await topic.push(keyed('a', 'b', 'c')))).toEqual([1, 0, 2]);
        expect(payloadsOf(await topic.read({ ...first, from: 0 }))).toEqual(['b', 'a', 'c']);
      },
    );
    expect(points).toBeGreaterThan(3);
  });
});

describe('consumer groups', () => {
  const filled = async (): Promise<TopicHandle> => {
    const topic = await addTopic(topics);
    await topic.push(keyed('a', 'b', 'c'));
    return topic;
  };

  /** Settles what is left, and says what came. */
  async function drain(topic: TopicHandle): Promise<unknown[]> {
    const seen: unknown[] = [];
    const group = topic.group('g');
    while ((await group.positions())[0]!.lag > 0) {
      const lease = await group.lease({ ...first, limit: 2 });
      if (lease === null) continue;
      seen.push(...payloadsOf(lease));
      expect(await lease.commit()).toMatchObject({ result: 'advanced' });
    }
    expect(await group.positions()).toMatchObject([{ cursor: 3, lag: 0 }]);
    return seen;
  }

  test('a lease: once it ran out, its records go to another', async () => {
    const points = await crashEverywhere(
      filled,
      async (on, topic) => (await groupOf(on, topic)).lease({ ...first, leaseMs: 1 }),
      async (topic) => expect(await drain(topic)).toEqual(['a', 'b', 'c']),
    );
    expect(points).toBeGreaterThan(3);
  });

  test('a commit: it counts as a whole or not at all', async () => {
    const points = await crashEverywhere(
      filled,
      async (on, topic) => (await groupOf(on, topic)).commit({ ...first, nextOffset: 2 }),
      async (topic) => expect([['a', 'b', 'c'], ['c']]).toContainEqual(await drain(topic)),
    );
    expect(points).toBeGreaterThan(2);
  });

  test('the commit and the release of a lease', async () => {
    for (const end of ['commit', 'release'] as const) {
      const points = await crashEverywhere(
        filled,
        async (on, topic) => {
          const lease = await (await groupOf(on, topic)).lease({ ...first, limit: 2, leaseMs: 100 });
          await lease![end]();
        },
        async (topic) => expect([['a', 'b', 'c'], ['c']]).toContainEqual(await drain(topic)),
      );
      expect(points).toBeGreaterThan(5);
    }
  });

  test('a record that nobody can settle: one dead letter, and the group goes on', async () => {
    const points = await crashEverywhere(
      async () => {
        const topic = await filled();
        const lease = await topic.group('g').lease({ ...first, limit: 1, attemptsMax: 1 });
        await lease!.release();
        return topic;
      },
      async (on, topic) => (await groupOf(on, topic)).lease({ ...first, limit: 1, attemptsMax: 1 }),
      async (topic) => {
        const group = topic.group('g');
        let seen: unknown[] = [];
        while ((await group.positions())[0]!.lag > 0) {
          const lease = await group.lease({ ...first, attemptsMax: 1 });
          if (lease === null) continue;
          seen = [...seen, ...payloadsOf(lease)];
          await lease.commit();
        }
        expect(seen).toEqual(['b', 'c']);
        const manager = await nats.jetstreamManager();
        expect((await manager.streams.info(`REPLAY-TOPIC-${topic.topic.id}-DEAD`)).state.messages).toBe(1);
      },
    );
    expect(points).toBeGreaterThan(3);
  });

  test('a reset of two partitions: done again, it is done', async () => {
    const points = await crashEverywhere(
      async () => {
        const topic = await addTopic(topics, { partitions: 2 });
        await topic.push(['a', 'b'].map((partitionKey) => ({ partitionKey, payload: partitionKey })));
        return topic;
      },
      async (on, topic) => (await groupOf(on, topic)).reset({ to: 'latest' }, { by: 'test' }),
      async (topic) => {
        await topic.group('g').reset({ to: 'latest' }, { by: 'again' });
        expect((await topic.group('g').positions()).map(({ lag }) => lag)).toEqual([0, 0]);
      },
    );
    expect(points).toBeGreaterThan(5);
  });
});

describe('registry', () => {
  test('create: the topic is there as a whole or not at all', async () => {
    const points = await crashEverywhere(
      () => Promise.resolve(uniqueName('made')),
      (on, name) => createTopic(on, name, { partitions: 2 }),
      async (name) => {
        const topic = await topics.open(name).catch(async () => {
          expect((await errorOf(topics.open(name))).code).toBe('topic_missing');
          return await topics.create(name, { partitions: 2 });
        });
        expect((await topic.bounds()).map(({ next }) => next)).toEqual([0, 0]);
        await topics.delete(name);
      },
    );
    expect(points).toBeGreaterThan(3);
  });

  test('delete: once it began the topic is not there, and deleting again ends it', async () => {
    const points = await crashEverywhere(
      async () => {
        const topic = await topics.create(uniqueName('gone'), { partitions: 2 });
        await topic.group('g').commit({ ...first, nextOffset: 0 });
        return topic.topic;
      },
      (on, { name }) => deleteTopic(on, name, (topic) => deleteGroups(on, topic, null)),
      async ({ name }) => {
        await topics.delete(name).catch((error: unknown) => expect(error).toMatchObject({ code: 'topic_missing' }));
        expect((await errorOf(topics.open(name))).code).toBe('topic_missing');
        const again = await topics.create(name, { partitions: 1 });
        expect(await again.groups()).toEqual([]);
        await topics.delete(name);
      },
    );
    expect(points).toBeGreaterThan(3);
  });
});

import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { TopicHandle, Topics } from '../../../client/topics.ts';
import { addTopic, errorOf, keyed, offsetsOf, openTestTopics, payloadsOf, records } from './topics.ts';
import { connectTestNats, uniqueName } from '../../support/servers.ts';

/** Many calls to a real server, on a machine that may be slow. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let topics: Topics;
let topic: TopicHandle;

beforeAll(async () => {
  topics = await openTestTopics();
});

const at = (from: number, limit = 100) => ({ partition: 0, from, limit });

describe('append', () => {
  test('offsets are contiguous from 0, in order of acceptance; bounds and reads agree', async () => {
    topic = await addTopic(topics);
    expect(await topic.bounds()).toMatchObject([{ partition: 0, oldest: 0, hot: 0, next: 0 }]);
    expect(offsetsOf(await topic.push(records('a', 'b')))).toEqual([0, 1]);
    expect(offsetsOf(await topic.push(records('c')))).toEqual([2]);
    const page = await topic.read(at(0));
    expect(page.records.map(({ offset, payload }) => [offset, payload])).toEqual([
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
    ]);
    expect(page).toMatchObject({ nextOffset: 3, lag: 0 });
    expect(await topic.bounds()).toMatchObject([{ partition: 0, oldest: 0, hot: 0, next: 3 }]);
  });

  test('a push without records throws before anything is written', async () => {
    topic = await addTopic(topics);
    expect((await errorOf(topic.push([]))).code).toBe('push_empty');
    expect(await topic.bounds()).toMatchObject([{ oldest: 0, hot: 0, next: 0 }]);
  });

  test('101 records of one partition are rejected; the other partitions are not touched by that', async () => {
    topic = await addTopic(topics, { partitions: 8 });
    const many = Array.from({ length: 101 }, (_, i) => ({ partitionKey: 'a', payload: i }));
    const groups = await topic.push([...many, { partitionKey: 'b', payload: 'b' }]);
    expect(groups).toMatchObject([
      { partition: 4, status: 'rejected', error: { code: 'too_many_records' } },
      { partition: 3, status: 'accepted', offsets: [0] },
    ]);
    expect((await topic.bounds()).map(({ next }) => next)).toEqual([0, 0, 0, 1, 0, 0, 0, 0]);
  });

  test.each<[string, object, string]>([
    ['an empty deduplication key', { deduplicationKey: '' }, 'deduplication_key_invalid'],
    ['half of a surrogate pair as a key', { deduplicationKey: '\ud800' }, 'deduplication_key_invalid'],
    ['a partition key that is too long', { partitionKey: 'k'.repeat(1_025) }, 'partition_key_invalid'],
    ['a partition key that is no string', { partitionKey: 7 }, 'partition_key_invalid'],
    ['a payload that JSON cannot hold', { payload: 1n }, 'payload_invalid'],
    ['no payload', { payload: undefined }, 'payload_invalid'],
    ['a circle', { payload: circle() }, 'payload_invalid'],
    ['JSON text with a key twice', { payload: undefined, payloadJson: '{"a":1,"a":2}' }, 'payload_invalid'],
    ['a record beyond the limit', { payload: 'x'.repeat(101) }, 'record_too_large'],
  ])('%s: its group is rejected, nothing of it is stored', async (_, change, code) => {
    topic = await addTopic(topics, { quota: { maxRecordBytes: 100 } });
    const bad = { partitionKey: 'k', payload: 1, ...change };
    expect(await topic.push([...records('good'), bad as never])).toMatchObject([{ status: 'rejected', error: { code } }]);
    expect(await topic.bounds()).toMatchObject([{ next: 0 }]);
  });

  test('two pushes of 50 at once: 0 to 99, each contiguous', async () => {
    topic = await addTopic(topics);
    const fifty = (name: string) => topic.push(records(...Array.from({ length: 50 }, (_, i) => `${name}${i}`)));
    const [a, b] = (await Promise.all([fifty('a'), fifty('b')])).map(offsetsOf);
    expect([...a!, ...b!].sort((x, y) => x - y)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    for (const offsets of [a!, b!]) expect(offsets.map((offset) => offset - offsets[0]!)).toEqual([...offsets.keys()]);
  });

  test('keys and payloads come back exactly', async () => {
    topic = await addTopic(topics);
    const odd = [
      '',
      ' ',
      'a b',
      ' lead',
      'trail ',
      '"quoted"',
      'é😀日本',
      'a\r\nX-Evil: 1',
      '\u007f\u0000',
      'a:b.c*d>e',
      '{"a":1}',
    ];
    const pushed = odd.map((key) => ({ partitionKey: key, deduplicationKey: `${key}!`, payload: { key } }));
    pushed.push(
      ...odd.filter((key) => key !== '').map((key) => ({ partitionKey: 'k', deduplicationKey: key, payload: { key } })),
    );
    await topic.push(pushed);
    const { records: read } = await topic.read(at(0));
    expect(read.map(({ partitionKey, deduplicationKey, payload }) => ({ partitionKey, deduplicationKey, payload }))).toEqual(
      pushed,
    );
    expect(read[0]!.appendedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
    await topic.push([{ partitionKey: 'k', payloadJson: ' {"id": 7088992364139642880, "price": 1.10}' }]);
    const last = (await topic.read(at(pushed.length))).records[0]!;
    expect(Buffer.from(last.payloadBytes).toString()).toBe(' {"id": 7088992364139642880, "price": 1.10}');
  });
});

describe('deduplication', () => {
  test('a key that is there answers with its offset; new ones beside it are stored', async () => {
    topic = await addTopic(topics);
    expect(offsetsOf(await topic.push(keyed('one', 'two')))).toEqual([0, 1]);
    expect(offsetsOf(await topic.push(keyed('two', 'three')))).toEqual([1, 2]);
    expect(offsetsOf(await topic.push(keyed('new', 'one', 'newer', 'three')))).toEqual([3, 0, 4, 2]);
    expect(payloadsOf(await topic.read(at(0)))).toEqual(['one', 'two', 'three', 'new', 'newer']);
  });

  test('the same key twice in a push: one record, the first body', async () => {
    topic = await addTopic(topics);
    const pair = [
      { partitionKey: 'k', deduplicationKey: 'same', payload: 'first' },
      { partitionKey: 'k', deduplicationKey: 'same', payload: 'second' },
    ];
    expect(offsetsOf(await topic.push(pair))).toEqual([0, 0]);
    expect(offsetsOf(await topic.push([{ partitionKey: 'k', deduplicationKey: 'same', payload: 'third' }]))).toEqual([0]);
    expect(payloadsOf(await topic.read(at(0)))).toEqual(['first']);
    expect(await topic.bounds()).toMatchObject([{ next: 1 }]);
  });

  test('the same key in two partitions is two records', async () => {
    topic = await addTopic(topics, { partitions: 8 });
    const both = ['a', 'b'].map((partitionKey) => ({ partitionKey, deduplicationKey: 'same', payload: partitionKey }));
    expect(await topic.push(both)).toMatchObject([
      { partition: 4, offsets: [0] },
      { partition: 3, offsets: [0] },
    ]);
  });

  test('a key whose record left the hot window is new again, and offsets go on', async () => {
    topic = await addTopic(topics);
    await topic.push(keyed('one', 'two'));
    await purge(topic, 3);
    expect(await topic.bounds()).toMatchObject([{ oldest: 2, hot: 2, next: 2 }]);
    expect(offsetsOf(await topic.push(keyed('one')))).toEqual([2]);
  });

  test('40 pushes of one key at once, from four clients: one record, one offset', async () => {
    topic = await addTopic(topics);
    const name = topic.topic.name;
    const clients = await Promise.all(Array.from({ length: 4 }, async () => (await openTestTopics()).open(name)));
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => clients[i % 4]!.push([{ partitionKey: 'k', deduplicationKey: 'one', payload: i }])),
    );
    expect(new Set(answers.map((groups) => offsetsOf(groups)[0]))).toEqual(new Set([0]));
    expect(await topic.bounds()).toMatchObject([{ next: 1 }]);
  });

  test('40 pushes at once that overlap in part: every key once, every answer right', async () => {
    topic = await addTopic(topics);
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const keys = Array.from({ length: 10 }, (_unused, j) => `k${(i * 3 + j) % 60}`);
        return { keys, offsets: offsetsOf(await topic.push(keyed(...keys))) };
      }),
    );
    const { records: stored } = await topic.read(at(0));
    const offsetByKey = new Map(stored.map(({ deduplicationKey, offset }) => [deduplicationKey, offset]));
    expect(stored).toHaveLength(60);
    for (const { keys, offsets } of answers) expect(offsets).toEqual(keys.map((key) => offsetByKey.get(key)));
  });
});

describe('read', () => {
  test('pages', async () => {
    topic = await addTopic(topics);
    await topic.push(records('a', 'b', 'c', 'd'));
    const first = await topic.read(at(0, 2));
    expect(payloadsOf(first)).toEqual(['a', 'b']);
    expect(first).toMatchObject({ nextOffset: 2, lag: 2 });
    const second = await topic.read(at(2, 2));
    expect(payloadsOf(second)).toEqual(['c', 'd']);
    expect(second).toMatchObject({ nextOffset: 4, lag: 0 });
    expect(await topic.read(at(4))).toEqual({ records: [], nextOffset: 4, lag: 0 });
  });

  test('at most 100 records a page, whatever is asked', async () => {
    topic = await addTopic(topics);
    await topic.push(records(...Array.from({ length: 100 }, (_, i) => i)));
    await topic.push(records(...Array.from({ length: 50 }, (_, i) => 100 + i)));
    const page = await topic.read(at(0, 1_000));
    expect(payloadsOf(page)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(page).toMatchObject({ nextOffset: 100, lag: 50 });
  });

  test.each([
    [-1, 10],
    [1.5, 10],
    [0, 0],
    [0, -1],
    [0, 1.5],
    [Number.NaN, 1],
  ])('from %d limit %d is refused', async (from, limit) => {
    topic = await addTopic(topics);
    expect((await errorOf(topic.read(at(from, limit)))).code).toBe('setting_invalid');
  });

  test('an unknown partition is refused', async () => {
    topic = await addTopic(topics);
    expect((await errorOf(topic.read({ partition: 1, from: 0 }))).code).toBe('setting_invalid');
  });

  test('beyond the end: out_of_range; below the oldest: truncated, naming the next readable offset', async () => {
    topic = await addTopic(topics);
    await topic.push(records('a', 'b', 'c', 'd'));
    expect((await errorOf(topic.read(at(10)))).code).toBe('out_of_range');
    await purge(topic, 3);
    for (const limit of [1, 2, 100]) {
      expect(await errorOf(topic.read(at(0, limit)))).toMatchObject({ code: 'truncated', nextReadable: 2 });
    }
    expect(payloadsOf(await topic.read(at(2)))).toEqual(['c', 'd']);
    await purge(topic, 5);
    expect(await errorOf(topic.read(at(3)))).toMatchObject({ code: 'truncated', nextReadable: 4 });
    expect(await topic.read(at(4))).toMatchObject({ records: [], nextOffset: 4 });
  });

  test('a hole in the log is a named gap: a page ends before it', async () => {
    topic = await addTopic(topics);
    await topic.push(records('a', 'b', 'c', 'd'));
    await deleteOffsets(topic, [1, 2]);
    const page = await topic.read(at(0));
    expect(payloadsOf(page)).toEqual(['a']);
    expect(page).toMatchObject({ nextOffset: 1, lag: 3 });
    expect(await errorOf(topic.read(at(1)))).toMatchObject({ code: 'gap', nextReadable: 3 });
    expect(await errorOf(topic.read(at(2)))).toMatchObject({ code: 'gap', nextReadable: 3 });
    expect(payloadsOf(await topic.read(at(3)))).toEqual(['d']);
  });

  test('a page of large records is full all the same', async () => {
    topic = await addTopic(topics);
    const large = 'x'.repeat(700_000);
    for (let i = 0; i < 4; i++) await topic.push(records(...Array.from({ length: 20 }, (_, j) => `${i * 20 + j}${large}`)));
    const page = await topic.read(at(0));
    expect(page.records.map(({ payload }) => parseInt(payload as string, 10))).toEqual(Array.from({ length: 80 }, (_, i) => i));
  });
});

describe('hard limit', () => {
  test('beyond it a push is rejected as a whole, and nothing is evicted', async () => {
    topic = await addTopic(topics);
    await limitStream(topic, { max_msgs: 2 });
    expect(await topic.push(records('a', 'b', 'c'))).toMatchObject([{ status: 'rejected', error: { code: 'partition_full' } }]);
    expect(await topic.bounds()).toMatchObject([{ next: 0 }]);
    expect(offsetsOf(await topic.push(records('a', 'b')))).toEqual([0, 1]);
    expect(await topic.push(records('c'))).toMatchObject([{ status: 'rejected', error: { code: 'partition_full' } }]);
    expect(payloadsOf(await topic.read(at(0)))).toEqual(['a', 'b']);
  });

  test('by bytes: twice the payload that may stay hot', async () => {
    topic = await addTopic(topics, { hot: { maxBytes: 10_000 } });
    const ten = () => topic.push(records(...Array.from({ length: 10 }, () => 'x'.repeat(1_000))));
    const statuses: string[] = [];
    // The size that a push goes by may be a second old.
    while (statuses.at(-1) !== 'rejected' && statuses.length < 1_000) statuses.push((await ten())[0]!.status);
    expect(statuses.length).toBeGreaterThan(2);
    expect(await ten()).toMatchObject([{ status: 'rejected', error: { code: 'partition_full' } }]);
    const stored = (await topic.bounds())[0]!.next;
    expect(stored).toBe(10 * (statuses.length - 1));
  });

  test('what was stored before is accepted again, full or not; beside it nothing new is', async () => {
    topic = await addTopic(topics);
    await topic.push(keyed('a', 'b'));
    await limitStream(topic, { max_msgs: 2 });
    expect(offsetsOf(await topic.push(keyed('b', 'a')))).toEqual([1, 0]);
    expect(await topic.push(keyed('a', 'new'))).toMatchObject([{ status: 'rejected', error: { code: 'partition_full' } }]);
    expect(await topic.bounds()).toMatchObject([{ next: 2 }]);
  });
});

describe('registry', () => {
  test('names of every kind; a topic is there once', async () => {
    const name = `${uniqueName('x')} tenant/acme: *.> 日本`;
    const made = await topics.create(name, { partitions: 2, hot: { maxRecords: 10 } });
    expect((await errorOf(topics.create(name))).code).toBe('topic_exists');
    expect((await topics.list()).map((one) => one.name)).toContain(name);
    const again = await topics.open(name);
    expect(again.topic).toEqual(made.topic);
    expect(again.topic).toMatchObject({
      partitions: 2,
      hashVersion: 'fnv1a-utf16-v1',
      hot: { maxRecords: 10, maxAgeSeconds: 604_800 },
    });
    await topics.delete(name);
    expect((await errorOf(topics.open(name))).code).toBe('topic_missing');
    expect((await errorOf(topics.delete(name))).code).toBe('topic_missing');
  });

  test('two creates at once: one topic, and no stream of the other is left', async () => {
    const name = uniqueName('race');
    const nc = await connectTestNats();
    const other = await openTestTopics();
    const results = await Promise.allSettled([topics.create(name, { partitions: 2 }), other.create(name, { partitions: 2 })]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const manager = await nc.jetstreamManager();
    const found = (await manager.streams.list().next()).filter(({ config }) => config.metadata?.['replay.topic.name'] === name);
    expect(found).toHaveLength(2);
    await topics.delete(name);
  });

  test('a deleted topic that is created again is a new log', async () => {
    const name = uniqueName('again');
    const first = await topics.create(name, { partitions: 1 });
    await first.push(keyed('one', 'two'));
    await first.group('g').commit({ partition: 0, nextOffset: 2 });
    await topics.delete(name);
    const second = await topics.create(name, { partitions: 1 });
    expect(offsetsOf(await second.push(keyed('two')))).toEqual([0]);
    expect(await second.groups()).toEqual([]);
    await topics.delete(name);
  });

  test('a stream that was made anew under a topic is noticed, not given out as the old log', async () => {
    topic = await addTopic(topics);
    await topic.push(records('a'));
    const manager = await (await connectTestNats()).jetstreamManager();
    const { config } = await manager.streams.info(streamOf(topic));
    await manager.streams.delete(streamOf(topic));
    expect((await errorOf(topics.open(topic.topic.name))).code).toBe('topic_broken');
    await manager.streams.add(config);
    expect((await errorOf(topics.open(topic.topic.name))).code).toBe('topic_broken');
  });
});

function circle(): object {
  const one: Record<string, unknown> = {};
  one['self'] = one;
  return one;
}

function streamOf({ topic: { id } }: TopicHandle): string {
  return `REPLAY-TOPIC-${id}-0`;
}

/** As a sweep does it: all before this sequence are gone. */
async function purge(of: TopicHandle, sequence: number): Promise<void> {
  const manager = await (await connectTestNats()).jetstreamManager();
  await manager.streams.purge(streamOf(of), { seq: sequence });
}

async function limitStream(of: TopicHandle, limits: { max_msgs: number }): Promise<void> {
  const manager = await (await connectTestNats()).jetstreamManager();
  await manager.streams.update(streamOf(of), limits);
}

/** What nobody may do: the stream of a partition denies it. */
async function deleteOffsets(of: TopicHandle, offsets: readonly number[]): Promise<void> {
  const nc = await connectTestNats();
  const manager = await nc.jetstreamManager();
  const { records: all } = await of.read(at(0));
  for (const offset of offsets) {
    const subject = (await manager.streams.getMessage(streamOf(of), { seq: offset + 1 })).subject;
    await manager.streams.purge(streamOf(of), { filter: subject });
  }
  expect(all.length).toBeGreaterThan(offsets.length);
}

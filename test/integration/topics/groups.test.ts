import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { TopicEvent, TopicHandle, Topics } from '../../../client/topics.ts';
import { connectTestNats } from '../../support/servers.ts';
import { addTopic, errorOf, openTestTopics, payloadsOf, records } from './topics.ts';

/** Many calls to a real server, on a machine that may be slow. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let topics: Topics;

beforeAll(async () => {
  topics = await openTestTopics();
});

async function topicWith(...payloads: readonly unknown[]): Promise<TopicHandle> {
  const topic = await addTopic(topics);
  await topic.push(records(...payloads));
  return topic;
}

const first = { partition: 0 };

describe('cursors', () => {
  test('groups are independent; the log stays', async () => {
    const topic = await topicWith('a', 'b');
    expect(await topic.group('search').commit({ ...first, nextOffset: 2 })).toEqual({ result: 'advanced', cursor: 2 });
    expect(await topic.group('billing').commit({ ...first, nextOffset: 1 })).toEqual({ result: 'advanced', cursor: 1 });
    expect(await topic.groups()).toEqual(['billing', 'search']);
    expect(payloadsOf(await topic.group('billing').consume(first))).toEqual(['b']);
    expect(payloadsOf(await topic.group('search').consume(first))).toEqual([]);
    expect(payloadsOf(await topic.read({ ...first, from: 0 }))).toEqual(['a', 'b']);
  });

  test('forward only, never past the end', async () => {
    const topic = await topicWith('a', 'b', 'c', 'd');
    const group = topic.group('g');
    expect(await group.commit({ ...first, nextOffset: 3 })).toEqual({ result: 'advanced', cursor: 3 });
    expect(await group.commit({ ...first, nextOffset: 1 })).toEqual({ result: 'ignored', cursor: 3 });
    expect(await group.commit({ ...first, nextOffset: 5 })).toEqual({ result: 'out_of_range', cursor: 3 });
    expect((await errorOf(group.commit({ ...first, nextOffset: -1 }))).code).toBe('setting_invalid');
    expect((await errorOf(group.commit({ ...first, nextOffset: 4, handle: 'what' }))).code).toBe('setting_invalid');
  });

  test('a crash between consume and commit: the same page again', async () => {
    const topic = await topicWith('a', 'b');
    const once = await topic.group('g').consume({ ...first, limit: 1 });
    const again = await topic.group('g').consume({ ...first, limit: 1 });
    expect(payloadsOf(again)).toEqual(payloadsOf(once));
    expect(await topic.group('g').commit({ ...first, nextOffset: once.nextOffset, handle: once.handle })).toMatchObject({
      result: 'advanced',
    });
    expect(payloadsOf(await topic.group('g').consume(first))).toEqual(['b']);
  });

  test('a cursor below the oldest: truncated on every consume until a reset, or a recorded gap', async () => {
    const topic = await topicWith('a', 'b', 'c', 'd');
    const group = topic.group('g');
    await group.commit({ ...first, nextOffset: 1 });
    await purgeTo(topic, 3);
    for (let i = 0; i < 2; i++)
      expect(await errorOf(group.consume(first))).toMatchObject({ code: 'truncated', nextReadable: 3 });
    expect((await errorOf(group.lease(first))).code).toBe('truncated');
    const page = await group.consume({ ...first, onTruncated: 'earliest' });
    expect(payloadsOf(page)).toEqual(['d']);
    expect(page.gap).toEqual({ first: 1, next: 3 });
    await group.commit({ ...first, nextOffset: 4, handle: page.handle });
    expect(await group.positions()).toMatchObject([{ cursor: 4, lag: 0, gaps: [{ first: 1, next: 3 }] }]);
  });

  test('a first consume begins at the oldest', async () => {
    const topic = await topicWith('a', 'b', 'c');
    await purgeTo(topic, 2);
    expect(payloadsOf(await topic.group('g').consume(first))).toEqual(['c']);
    const lease = await topic.group('h').lease(first);
    expect(await lease!.commit()).toEqual({ result: 'advanced', cursor: 3 });
  });
});

describe('leases', () => {
  test('one at a time; settled: the next range', async () => {
    const topic = await topicWith('a', 'b', 'c', 'd');
    const group = topic.group('g');
    const one = await group.lease({ ...first, limit: 2 });
    expect(payloadsOf(one!)).toEqual(['a', 'b']);
    expect(await group.lease({ ...first, limit: 2 })).toBeNull();
    expect(await one!.commit()).toEqual({ result: 'advanced', cursor: 2 });
    const two = await group.lease({ ...first, limit: 2 });
    expect(payloadsOf(two!)).toEqual(['c', 'd']);
    expect(two!.handle).not.toBe(one!.handle);
    expect(await one!.commit()).toMatchObject({ result: 'fenced' });
    expect(await one!.release()).toBe(false);
    expect(await two!.renew()).toBe(true);
  });

  test('another client, started later, finds it held; given back, it goes to that one at the next attempt', async () => {
    const topic = await topicWith('a');
    const one = await topic.group('g').lease(first);
    const later = (await (await openTestTopics()).open(topic.topic.name)).group('g');
    expect(await later.lease(first)).toBeNull();
    expect(await later.commit({ ...first, nextOffset: 1 })).toMatchObject({ result: 'fenced' });
    expect(await one!.release()).toBe(true);
    const two = await later.lease(first);
    expect(two).toMatchObject({ attempt: 2, nextOffset: 1 });
    expect(await one!.commit()).toMatchObject({ result: 'fenced' });
    expect(await two!.commit()).toMatchObject({ result: 'advanced', cursor: 1 });
  });

  test('a lease that ran out is taken over, and its late commit is fenced', async () => {
    const topic = await topicWith('a');
    const group = topic.group('g');
    const one = await group.lease({ ...first, leaseMs: 1 });
    const two = await until(() => group.lease(first));
    expect(two).toMatchObject({ attempt: 2 });
    expect(await one!.commit()).toMatchObject({ result: 'fenced', cursor: 0 });
    expect(await one!.renew()).toBe(false);
    expect(await two.commit()).toMatchObject({ result: 'advanced', cursor: 1 });
  });

  test('two at a time: the cursor waits for the first', async () => {
    const topic = await topicWith('a', 'b');
    const group = topic.group('g');
    const options = { ...first, limit: 1, parallel: 2 };
    const [one, two] = [await group.lease(options), await group.lease(options)];
    expect(await two!.commit()).toEqual({ result: 'advanced', cursor: 0 });
    expect(await one!.commit()).toEqual({ result: 'advanced', cursor: 2 });
  });

  test('two pollers at once never get the same records', async () => {
    const topic = await topicWith(...Array.from({ length: 60 }, (_, i) => i));
    const name = topic.topic.name;
    const seen: unknown[] = [];
    const poll = async () => {
      const group = (await (await openTestTopics()).open(name)).group('g');
      for (let idle = 0; idle < 1_000; idle++) {
        const lease = await group.lease({ ...first, limit: 7, parallel: 2 });
        if (lease !== null) {
          seen.push(...payloadsOf(lease));
          expect((await lease.commit()).result).toBe('advanced');
        } else if ((await group.positions())[0]!.lag === 0) return;
      }
      throw new Error('never done');
    };
    await Promise.all([poll(), poll(), poll()]);
    expect(seen.sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 60 }, (_, i) => i));
  });
});

describe('poison', () => {
  test('after the last attempt the record is stored as a dead letter, and the group goes on', async () => {
    const topic = await topicWith({ bad: true }, 'good');
    const group = topic.group('g: 1');
    const options = { ...first, limit: 1, attemptsMax: 2 };
    for (let attempt = 1; attempt <= 2; attempt++) {
      const lease = await group.lease(options);
      expect(lease).toMatchObject({ attempt, nextOffset: 1 });
      await lease!.release();
    }
    expect(await group.lease(options)).toBeNull();
    const next = await group.lease(options);
    expect(payloadsOf(next!)).toEqual(['good']);
    expect(await next!.commit()).toMatchObject({ cursor: 2 });
    const letters = await deadLetters(topic);
    expect(letters.map(({ subject }) => subject.split('.').slice(2))).toEqual([['dead', 'g=3A=201', '0', '0']]);
    expect(letters[0]).toMatchObject({ data: '{"bad":true}', attempts: '2' });
  });

  test('crashed after the dead letter was stored, before the position was: one letter', async () => {
    const topic = await topicWith('bad');
    const options = { ...first, attemptsMax: 1 };
    await (await topic.group('g').lease(options))!.release();
    // Two pollers decide the same at once; the loser of the compare-and-set has stored the letter all the same.
    const other = (await (await openTestTopics()).open(topic.topic.name)).group('g');
    expect(await Promise.all([topic.group('g').lease(options), other.lease(options)])).toEqual([null, null]);
    expect(await deadLetters(topic)).toHaveLength(1);
    expect(await topic.group('g').positions()).toMatchObject([{ cursor: 1, lag: 0 }]);
  });
});

describe('reset', () => {
  test('to earliest, latest, an offset, a time: fences, and leaves an audit line', async () => {
    const topic = await topicWith('a', 'b');
    const group = topic.group('g');
    await topic.push(records('c'));
    const all = (await topic.read({ ...first, from: 0 })).records;
    const lease = await group.lease(first);
    expect(await group.reset({ to: 'latest' }, { by: 'ops' })).toEqual(new Map([[0, 3]]));
    expect(await lease!.commit()).toMatchObject({ result: 'fenced', cursor: 3 });
    await group.reset({ to: 'time', timeNanos: nanos(all[2]!.appendedAt) }, { by: 'ops', partition: 0 });
    expect(payloadsOf(await group.consume(first))).toEqual(['c']);
    await group.reset({ to: 'offset', offset: 1 }, { by: 'ops' });
    expect(payloadsOf(await group.consume(first))).toEqual(['b', 'c']);
    const page = await group.consume(first);
    await group.reset({ to: 'earliest' }, { by: 'ops' });
    expect(await group.commit({ ...first, nextOffset: 3, handle: page.handle })).toMatchObject({ result: 'fenced', cursor: 0 });
    const [position] = await group.positions();
    expect(position!.resets.map(({ by, from, to }) => [by, from, to])).toEqual([
      ['ops', 0, 3],
      ['ops', 3, 2],
      ['ops', 2, 1],
      ['ops', 1, 0],
    ]);
    expect((await errorOf(group.reset({ to: 'offset', offset: 4 }, { by: 'ops' }))).code).toBe('out_of_range');
  });
});

describe('lag', () => {
  test('in records and in seconds, with a forecast of truncation', async () => {
    const topic = await topicWith('a', 'b', 'c');
    const group = topic.group('g');
    expect(await group.positions()).toMatchObject([{ cursor: null, lag: 3, cursorAgeSeconds: null, held: 0 }]);
    await group.commit({ ...first, nextOffset: 1 });
    const [position] = await group.positions();
    expect(position).toMatchObject({ cursor: 1, lag: 2 });
    expect(position!.lagSeconds).toBeLessThan(120);
    expect(position!.cursorAgeSeconds).toBeLessThan(120);
    expect(position!.truncatesInSeconds).toBeGreaterThan(0);
    expect(position!.truncatesInSeconds).toBeLessThanOrEqual(7 * 86_400);
    await group.commit({ ...first, nextOffset: 3 });
    expect(await group.positions()).toMatchObject([{ lag: 0, lagSeconds: null, truncatesInSeconds: null }]);
  });
});

describe('hooks and quotas', () => {
  test('who may not is refused before anything happens', async () => {
    const topic = await topicWith('a');
    const asked: string[] = [];
    const guarded = await openTestTopics({
      authorize: ({ action, group }) => {
        asked.push(action);
        return action === 'describe' || (action === 'consume' && group === 'mine');
      },
    });
    const handle = await guarded.open(topic.topic.name);
    expect(payloadsOf(await handle.group('mine').consume(first))).toEqual(['a']);
    expect((await errorOf(handle.group('other').consume(first))).code).toBe('denied');
    expect((await errorOf(handle.push(records('b')))).code).toBe('denied');
    expect((await errorOf(handle.group('mine').commit({ ...first, nextOffset: 1 }))).code).toBe('denied');
    expect((await errorOf(guarded.create('never'))).code).toBe('denied');
    expect((await errorOf(guarded.delete(topic.topic.name))).code).toBe('denied');
    expect(asked).toEqual(['describe', 'consume', 'consume', 'push', 'commit', 'create', 'delete']);
    expect(await topic.bounds()).toMatchObject([{ next: 1 }]);
  });

  test('a schema refuses the whole group of a record; what happens is told without keys or payloads', async () => {
    const events: TopicEvent[] = [];
    const strict = await openTestTopics({
      checkSchema: (_, payload) => (typeof payload === 'number' ? null : 'a number is expected'),
      observe: (event) => events.push(event),
    });
    const topic = await addTopic(strict);
    expect(await topic.push(records(1, 'SECRET'))).toMatchObject([{ status: 'rejected', error: { code: 'schema_refused' } }]);
    expect(await topic.push(records(1, 2))).toMatchObject([{ status: 'accepted' }]);
    await topic.group('g').commit({ ...first, nextOffset: 1 });
    expect(events).toMatchObject([
      { kind: 'push', status: 'rejected', records: 2, code: 'schema_refused' },
      { kind: 'push', status: 'accepted', records: 2, duplicates: 0, code: null },
      { kind: 'commit', group: 'g', result: 'advanced' },
    ]);
    expect(JSON.stringify(events)).not.toContain('SECRET');
  });

  test('records a second, and groups of a topic', async () => {
    const topic = await addTopic(topics, { quota: { recordsPerSecond: 3, maxGroups: 1, maxPushBytes: 400 } });
    const answers = [await topic.push(records('a', 'b')), await topic.push(records('c', 'd', 'e', 'f'))];
    expect(answers).toMatchObject([[{ status: 'accepted' }], [{ status: 'rejected', error: { code: 'quota_exceeded' } }]]);
    expect(await topic.push(records('x'.repeat(400), 'y'))).toMatchObject([{ error: { code: 'push_too_large' } }]);
    await topic.group('one').commit({ ...first, nextOffset: 1 });
    expect((await errorOf(topic.group('two').commit({ ...first, nextOffset: 1 }))).code).toBe('group_quota');
    await topic.group('one').delete();
    expect(await topic.group('two').commit({ ...first, nextOffset: 1 })).toMatchObject({ result: 'advanced' });
  });
});

async function purgeTo(topic: TopicHandle, offset: number): Promise<void> {
  const manager = await (await connectTestNats()).jetstreamManager();
  await manager.streams.purge(`REPLAY-TOPIC-${topic.topic.id}-0`, { seq: offset + 1 });
}

async function deadLetters(topic: TopicHandle): Promise<{ subject: string; data: string; attempts: string }[]> {
  const manager = await (await connectTestNats()).jetstreamManager();
  const stream = `REPLAY-TOPIC-${topic.topic.id}-DEAD`;
  const { state } = await manager.streams.info(stream);
  const letters = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await manager.streams.getMessage(stream, { seq });
    letters.push({ subject: message.subject, data: message.string(), attempts: message.header.get('Topic-Attempts') });
  }
  return letters;
}

function nanos(time: string): bigint {
  const [whole, fraction] = time.slice(0, -1).split('.');
  return BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(fraction!);
}

async function until<T>(act: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const answer = await act();
    if (answer !== null) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

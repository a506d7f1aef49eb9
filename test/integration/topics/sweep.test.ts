import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createFileStore } from '../../../cold/file.ts';
import { encodeSegment, segmentName } from '../../../cold/segment.ts';
import { createColdStores } from '../../../cold/stores.ts';
import type { TopicHandle, Topics } from '../../../client/topics.ts';
import type { Intent } from '../../../core/manifest.ts';
import { openLink } from '../../../jetstream/link.ts';
import { createTopicSource, type TopicSource } from '../../../jetstream/topics/sweep-source.ts';
import { tempDir } from '../../support/file-end.ts';
import { seaweedEnv, seaweedSettings } from '../../support/seaweed.ts';
import { connectTestNats, natsUrl, uniqueName } from '../../support/servers.ts';
import { startWorker } from '../../support/worker.ts';
import { command } from '../cli/command-line.ts';
import { addTopic, errorOf, offsetsOf, openTestTopics, payloadsOf, records } from './topics.ts';

/** Many calls to a real server, on a machine that may be slow. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const never = new AbortController().signal;
const upload = 'feedbeef';

let coldRoot: string;
let topics: Topics;
let source: TopicSource;

beforeAll(async () => {
  coldRoot = await tempDir();
  topics = await openTestTopics({ env: { NATS_URL: natsUrl(), REPLAY_COLD_ROOT: coldRoot } });
  source = createTopicSource(openLink(await connectTestNats()));
});

const at = (from: number, limit = 100) => ({ partition: 0, from, limit });

interface Fixture {
  readonly topic: TopicHandle;
  /** The steps of a sweep, one at a time. `nowMs` later than now makes records old. */
  readonly sweep: (laterMs?: number) => Promise<number>;
  readonly claim: () => Promise<Intent>;
  readonly store: (intent: Intent) => Promise<'stored' | 'exists'>;
  readonly record: (intent: Intent) => Promise<void>;
  readonly purge: (before: number) => Promise<number>;
}

async function fixture(
  hot: { maxRecords?: number; maxBytes?: number; maxAgeSeconds?: number },
  cold: 'file' | null = 'file',
): Promise<Fixture> {
  const topic = await addTopic(topics, { hot, cold });
  const partition = (await source.open(topic.topic.name)).partitions[0]!;
  const store_ = createFileStore(coldRoot);
  const nameOf = (span: { first: number; next: number }, epoch: number) =>
    segmentName({ topic: topic.topic.id, partition: 0, ...span }, epoch, upload);
  const next = (laterMs = 0) => source.next(partition, Date.now() + laterMs, nameOf);
  const read = (intent: Intent) => source.readHot(partition, intent, never);
  const store = async (intent: Intent) => {
    const place = { topic: topic.topic.id, partition: 0, first: intent.first, next: intent.next };
    return await store_.put(intent.name, encodeSegment(place, await read(intent)), never);
  };
  const record = async (intent: Intent) => {
    const lastTime = (await read(intent)).at(-1)!.appendedAt;
    await source.record(partition, intent, { bytes: 1, lastTime });
  };
  const purge = (before: number) => source.purge(partition, before);
  return {
    topic,
    store,
    record,
    purge,
    async claim() {
      const step = await next();
      if (step.kind !== 'flush') throw new Error(step.kind);
      return step.intent;
    },
    async sweep(laterMs) {
      let gone = 0;
      for (let step = await next(laterMs); step.kind !== 'nothing'; step = await next(laterMs)) {
        if (step.kind === 'flush') {
          await store(step.intent);
          await record(step.intent);
        }
        if (step.kind !== 'flush' && step.kind !== 'purge') throw new Error(step.kind);
        gone += await purge(step.kind === 'flush' ? step.intent.next : step.before);
      }
      return gone;
    },
  };
}

describe('without a cold store', () => {
  test('by number: what is too much is gone, and said to be', async () => {
    const { topic, sweep } = await fixture({ maxRecords: 2 }, null);
    await topic.push(records('a', 'b', 'c', 'd'));
    expect(await sweep()).toBe(2);
    expect(await topic.bounds()).toMatchObject([{ oldest: 2, hot: 2, next: 4 }]);
    expect(payloadsOf(await topic.read(at(2)))).toEqual(['c', 'd']);
    expect(await errorOf(topic.read(at(0)))).toMatchObject({ code: 'truncated', nextReadable: 2 });
    expect(await sweep()).toBe(0);
  });

  test('by age, and by payload', async () => {
    const aged = await fixture({ maxAgeSeconds: 3_600 }, null);
    await aged.topic.push(records('a', 'b'));
    expect(await aged.sweep()).toBe(0);
    expect(await aged.sweep(7_200_000)).toBe(2);
    expect(await aged.topic.bounds()).toMatchObject([{ oldest: 2, hot: 2, next: 2 }]);
    expect(offsetsOf(await aged.topic.push(records('c')))).toEqual([2]);
    const large = await fixture({ maxBytes: 60 }, null);
    await large.topic.push(records(...Array.from({ length: 4 }, () => 'x'.repeat(28))));
    expect(await large.sweep()).toBe(2);
  });
});

describe('with a cold store', () => {
  test('cold and hot are one log: pages go across segments and the border', async () => {
    const { topic, sweep } = await fixture({ maxRecords: 30 });
    for (let i = 0; i < 5; i++) {
      await topic.push(records(...Array.from({ length: 40 }, (_, j) => i * 40 + j)));
      await sweep();
    }
    expect(await topic.bounds()).toMatchObject([{ oldest: 0, hot: 170, next: 200 }]);
    const numbers = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);
    const page = await topic.read(at(0));
    expect(payloadsOf(page)).toEqual(numbers(0, 100));
    expect(page).toMatchObject({ nextOffset: 100, lag: 100 });
    const across = await topic.read(at(105));
    expect(payloadsOf(across)).toEqual(numbers(105, 95));
    expect(across).toMatchObject({ nextOffset: 200, lag: 0 });
    expect(across.records.map(({ offset, partitionKey }) => [offset, partitionKey])).toEqual(
      numbers(105, 95).map((n) => [n, 'k']),
    );
    expect(payloadsOf(await topic.group('g').consume({ partition: 0, limit: 3 }))).toEqual([0, 1, 2]);
    const lease = await topic.group('h').lease({ partition: 0, limit: 100 });
    expect(payloadsOf(lease!)).toEqual(numbers(0, 100));
    expect(await lease!.commit()).toMatchObject({ cursor: 100 });
    const rest = await topic.group('h').lease({ partition: 0, limit: 100 });
    expect(payloadsOf(rest!)).toEqual(numbers(100, 100));
  });

  test('lost after the object was stored, and more is due: the same range again, nothing lost or doubled', async () => {
    const { topic, sweep, claim, store, record } = await fixture({ maxRecords: 1 });
    await topic.push(records(0, 1, 2));
    const intent = await claim();
    expect(intent).toMatchObject({ first: 0, next: 2 });
    expect(await store(intent)).toBe('stored');
    await topic.push(records(...Array.from({ length: 40 }, (_, i) => 3 + i)));
    expect(await claim()).toEqual(intent);
    expect(await store(intent)).toBe('exists');
    await record(intent);
    await sweep();
    expect(await topic.bounds()).toMatchObject([{ oldest: 0, hot: 42, next: 43 }]);
    expect(payloadsOf(await topic.read(at(0)))).toEqual(Array.from({ length: 43 }, (_, i) => i));
  });

  test('lost after it was recorded, before the purge: read once, and the next sweep purges', async () => {
    const { topic, sweep, claim, store, record } = await fixture({ maxRecords: 1 });
    await topic.push(records('a', 'b', 'c'));
    const intent = await claim();
    await store(intent);
    await record(intent);
    await record(intent);
    expect(payloadsOf(await topic.read(at(0)))).toEqual(['a', 'b', 'c']);
    expect(await sweep()).toBe(2);
    expect(payloadsOf(await topic.read(at(0)))).toEqual(['a', 'b', 'c']);
    expect(await sweep()).toBe(0);
  });

  test('what is not cold cannot be purged, nor what is beyond the end', async () => {
    const { topic, purge } = await fixture({ maxRecords: 1 });
    await topic.push(records('a', 'b', 'c'));
    await expect(purge(2)).rejects.toThrow(/not cold/);
    await expect(purge(9)).rejects.toMatchObject({ code: 'out_of_range' });
    expect(await topic.bounds()).toMatchObject([{ hot: 0, next: 3 }]);
  });

  test('a lost object is named, and what comes after it can be read', async () => {
    const { topic, sweep } = await fixture({ maxRecords: 1 });
    await topic.push(records('a', 'b'));
    await sweep();
    await topic.push(records('c', 'd'));
    await sweep();
    const folder = join(coldRoot, topic.topic.id, '0000');
    const [first, second] = (await readdir(folder)).sort();
    await rm(join(folder, second!));
    const fresh = await openTestTopics({ env: { NATS_URL: natsUrl(), REPLAY_COLD_ROOT: coldRoot } });
    const handle = await fresh.open(topic.topic.name);
    expect(payloadsOf(await handle.read(at(0)))).toEqual(['a']);
    expect(await errorOf(handle.read(at(1)))).toMatchObject({ code: 'gap', nextReadable: 3 });
    expect(payloadsOf(await handle.read(at(3)))).toEqual(['d']);
    await rm(join(folder, first!));
    const again = await (
      await openTestTopics({ env: { NATS_URL: natsUrl(), REPLAY_COLD_ROOT: coldRoot } })
    ).open(topic.topic.name);
    expect(await errorOf(again.read(at(0)))).toMatchObject({ code: 'gap', nextReadable: 1 });
  });

  test('a reset to a time finds it in the cold part', async () => {
    const { topic, sweep } = await fixture({ maxRecords: 1 });
    await topic.push(records('a'));
    await topic.push(records('b'));
    await topic.push(records('c'));
    const [, b] = (await topic.read(at(0))).records;
    await sweep();
    const [whole, fraction] = b!.appendedAt.slice(0, -1).split('.');
    const timeNanos = BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(fraction!);
    expect(await topic.group('g').reset({ to: 'time', timeNanos }, { by: 'test' })).toEqual(new Map([[0, 1]]));
  });
});

describe('replay-stream topic sweep', () => {
  test.each(['file', 's3'] as const)('a worker does it, two at once do it once: %s', { timeout: 600_000 }, async (cold) => {
    const settings = cold === 's3' ? await seaweedSettings() : null;
    const stores = { REPLAY_COLD_ROOT: coldRoot, ...(settings === null ? {} : seaweedEnv(settings)) };
    const env = { NATS_URL: natsUrl(), ...stores };
    const store = createColdStores(stores)(cold);
    const worker = await startWorker(stores);
    const name = uniqueName('swept');
    const make = ['topic', 'create', name, '--partitions', '2', '--max-records', '5', '--cold', cold];
    expect(await command(make, env)).toMatchObject({ status: 0 });
    const topic = await (await openTestTopics({ env })).open(name);
    await topic.push(Array.from({ length: 20 }, (_, i) => ({ partitionKey: `user-${i}`, payload: i })));
    const counts = (await topic.bounds()).map(({ next }) => next);
    const sweeps = await Promise.all([1, 2].map(() => command(['topic', 'sweep', name, '--json'], env)));
    for (const { status } of sweeps) expect(status).toBe(0);
    expect(await topic.bounds()).toMatchObject(counts.map((next) => ({ oldest: 0, hot: Math.max(0, next - 5), next })));
    for (const partition of [0, 1]) {
      expect((await topic.read({ partition, from: 0 })).records).toHaveLength(counts[partition]!);
      expect(await store.list(`${topic.topic.id}/000${partition}/`, never)).toHaveLength(1);
    }
    const missing = await command(['topic', 'sweep', 'nowhere'], env);
    expect(missing).toMatchObject({ status: 2, stdout: '' });
    await topics.delete(name);
    await worker.stop();
  });
});

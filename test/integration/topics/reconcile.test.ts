import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { NatsConnection } from 'nats';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { reconcilePartition } from '../../../activities/reconcile-partition.ts';
import { createFileStore } from '../../../cold/file.ts';
import { decodeSegment, encodeSegment, parseSegmentName, segmentName } from '../../../cold/segment.ts';
import { reconcile, sweepTopic } from '../../../client/sweeps.ts';
import type { TopicHandle } from '../../../client/topics.ts';
import { newGroup } from '../../../core/group.ts';
import { openLink } from '../../../jetstream/link.ts';
import { createTopicSource } from '../../../jetstream/topics/sweep-source.ts';
import { atFileEnd, tempDir } from '../../support/file-end.ts';
import { connectTestNats, natsUrl, temporalAddress, uniqueName } from '../../support/servers.ts';
import { startWorker } from '../../support/worker.ts';
import { command } from '../cli/command-line.ts';
import { errorOf, openTestTopics, payloadsOf, records } from './topics.ts';

/** A worker and many calls to real servers, on a machine that may be slow. */
vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 });

const never = new AbortController().signal;
const at = (from: number) => ({ partition: 0, from });

let coldRoot: string;
let env: Record<string, string>;
let nats: NatsConnection;
let temporal: Client;

beforeAll(async () => {
  coldRoot = await tempDir();
  env = { NATS_URL: natsUrl(), REPLAY_COLD_ROOT: coldRoot };
  nats = await connectTestNats();
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  temporal = new Client({ connection });
  await startWorker({ REPLAY_COLD_ROOT: coldRoot });
});

/** Readers keep segments: a new one sees what is there now. */
const open = async (name: string): Promise<TopicHandle> => await (await openTestTopics({ env })).open(name);

/** Records 0 to 4; the first four are cold, one segment each. */
async function swept(): Promise<TopicHandle> {
  const name = uniqueName('mended');
  const topic = await (await openTestTopics({ env })).create(name, { partitions: 1, hot: { maxRecords: 1 }, cold: 'file' });
  for (let i = 0; i < 5; i++) {
    await topic.push(records(i));
    await sweepTopic(temporal, name);
  }
  expect(await topic.bounds()).toMatchObject([{ oldest: 0, hot: 4, next: 5 }]);
  return topic;
}

async function objectsOf({ topic }: TopicHandle): Promise<string[]> {
  return [...(await createFileStore(coldRoot).list(`${topic.id}/`, never))];
}

const reconciled = async ({ topic }: TopicHandle) => await reconcile(temporal, topic.name);

describe('topic expire-cold', () => {
  test('by offset and by time: gone from sight at once, whole segments only; objects stay for a grace', async () => {
    const topic = await swept();
    const { name } = topic.topic;
    const by = await command(['topic', 'expire-cold', name, '--before', '1', '--json'], env);
    expect(JSON.parse(by.stdout)).toEqual({ partition: 0, segments: 1, records: 1, oldest: 1 });
    expect(await errorOf((await open(name)).read(at(0)))).toMatchObject({ code: 'truncated', nextReadable: 1 });
    const time = (await topic.read(at(3))).records[0]!.appendedAt;
    const older = await command(['topic', 'expire-cold', name, '--before', time, '--json'], env);
    expect(JSON.parse(older.stdout)).toMatchObject({ segments: 2, oldest: 3 });
    expect(payloadsOf(await (await open(name)).read(at(3)))).toEqual([3, 4]);
    expect(await objectsOf(topic)).toHaveLength(4);
    expect(await reconciled(topic)).toMatchObject({ repairs: {}, unrepaired: [] });
    expect(await objectsOf(topic)).toHaveLength(4);
    expect(await command(['topic', 'expire-cold', name, '--before', 'soon'], env)).toMatchObject({ status: 2 });
  });
});

describe('topic reconcile', () => {
  test('a lost object is told as a hole, and adopted when it is back; a second pass repairs nothing', async () => {
    const topic = await swept();
    const lost = join(coldRoot, (await objectsOf(topic))[1]!);
    const bytes = await readFile(lost);
    await rm(lost);
    await writeFile(join(lost, '../notes.txt'), 'x');
    const hole = { kind: 'hole', first: 1, next: 2, partition: 0 };
    const told = await command(['topic', 'reconcile', topic.topic.name, '--json'], env);
    expect(told.status).toBe(3);
    expect(JSON.parse(told.stdout)).toMatchObject({
      topics: 1,
      repairs: { entry_without_object: 1 },
      unrepaired: [hole, { kind: 'foreign_object' }],
    });
    expect(await errorOf((await open(topic.topic.name)).read(at(1)))).toMatchObject({ code: 'gap', nextReadable: 2 });
    await writeFile(lost, bytes);
    await rm(join(lost, '../notes.txt'));
    expect(await reconciled(topic)).toMatchObject({ repairs: { orphan_adopted: 1 }, unrepaired: [] });
    expect(payloadsOf(await (await open(topic.topic.name)).read(at(0)))).toEqual([0, 1, 2, 3, 4]);
    expect((await reconciled(topic)).repairs).toEqual({});
  });

  test('a lost manifest comes back from the objects; an object that holds nothing of its own goes', async () => {
    const topic = await swept();
    const [first] = await objectsOf(topic);
    const jetstream = await nats.jetstreamManager();
    await jetstream.streams.purge('KV_replay-topic-manifests', { filter: `$KV.replay-topic-manifests.${topic.topic.id}.0` });
    expect(await reconciled(topic)).toMatchObject({ repairs: { orphan_adopted: 4 } });
    expect(payloadsOf(await (await open(topic.topic.name)).read(at(0)))).toEqual([0, 1, 2, 3, 4]);
    const copy = first!.replace(/-\w+\.jsonl$/, '-other.jsonl');
    await writeFile(join(coldRoot, copy), await readFile(join(coldRoot, first!)));
    expect(await reconciled(topic)).toMatchObject({ repairs: { orphan_removed: 1 } });
    expect(await objectsOf(topic)).toHaveLength(4);
  });

  test('a position beyond the end is set to the end, with an audit line', async () => {
    const topic = await swept();
    const key = `$KV.replay-topic-groups.${topic.topic.id}.0.g`;
    await topic.group('g').commit({ partition: 0, nextOffset: 1 });
    await nats.jetstream().publish(key, JSON.stringify({ ...newGroup, format: 1, writes: [], cursor: 99 }));
    expect(await reconciled(topic)).toMatchObject({ repairs: { cursor_beyond_end: 1 } });
    const [position] = await topic.group('g').positions([0]);
    expect(position).toMatchObject({ cursor: 5, resets: [{ by: 'reconcile', from: 99, to: 5 }] });
    expect((await reconciled(topic)).repairs).toEqual({});
  });

  test('a worker with another cold root changes nothing', async () => {
    const topic = await swept();
    const topics = createTopicSource(openLink(nats));
    const { partitions } = await topics.open(topic.topic.name);
    const store = createFileStore(await tempDir());
    const segments = { name: segmentName, parse: parseSegmentName, encode: encodeSegment, decode: decodeSegment };
    const wrong = { topics, segments, cold: () => store };
    await expect(reconcilePartition(wrong, partitions[0]!, Date.now(), never)).rejects.toMatchObject({ code: 'cold_missing' });
    expect(payloadsOf(await (await open(topic.topic.name)).read(at(0)))).toEqual([0, 1, 2, 3, 4]);
  });

  test('as a Schedule', async () => {
    const name = uniqueName('repairs');
    const create = ['schedule', 'create', name, '--reconcile', '--every', '1h', '--paused'];
    expect(await command([...create, '--json'], env)).toMatchObject({ status: 0 });
    const listed = await command(['schedule', 'list', '--json'], env);
    expect(listed.stdout).toContain(name);
    expect(await command(['schedule', 'delete', name], env)).toMatchObject({ status: 0 });
    expect(await command(['schedule', 'create', name, 'plan.json', '--every', '1h'], env)).toMatchObject({ status: 2 });
  });
});

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { WorkflowFailedError } from '@temporalio/client';
import type { JetStreamManager } from 'nats';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { TopicHandle, TopicRecord } from '../../../client/topics.ts';
import { readRecords, type StoredRecord } from '../../support/records.ts';
import { connectTestNats, uniqueName } from '../../support/servers.ts';
import { addSweptTopic, fill, startReplayedTopics, topicRequest, type ReplayedTopics, type TopicRequest } from './replayed.ts';
import { addTopic } from './topics.ts';

/** Many calls to real servers, on a machine that may be slow. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let world: ReplayedTopics;
let manager: JetStreamManager;

beforeAll(async () => {
  world = await startReplayedTopics();
  manager = await (await connectTestNats()).jetstreamManager();
});

const outOf = (input: TopicRequest): string =>
  join(world.worker.dataRoot, (input.target['sink'] as { directory: string }).directory);

async function stored(input: TopicRequest): Promise<readonly (StoredRecord & { readonly stream: string })[]> {
  return (await readRecords(outOf(input))) as (StoredRecord & { stream: string })[];
}

/** By partition, all that the log holds. */
async function logOf(topic: TopicHandle): Promise<TopicRecord[][]> {
  const logs: TopicRecord[][] = [];
  for (const { partition, oldest, next } of await topic.bounds()) {
    const log: TopicRecord[] = [];
    for (let from = oldest; from < next;) {
      const page = await topic.read({ partition, from });
      log.push(...page.records);
      from = page.nextOffset;
    }
    logs.push(log);
  }
  return logs;
}

/** Offsets by partition, in write order. */
function offsetsByLane(
  records: readonly { readonly stream: string; readonly sequence: number }[],
  partitions: number,
): number[][] {
  const lanes: number[][] = Array.from({ length: partitions }, () => []);
  for (const { stream, sequence } of records) lanes[Number(stream.split('-').at(-1))]!.push(sequence - 1);
  return lanes;
}

async function refusal(input: TopicRequest): Promise<string[]> {
  try {
    await world.replay(input);
  } catch (error) {
    if (error instanceof WorkflowFailedError && error.cause instanceof Error) return error.cause.message.split('\n');
    throw error;
  }
  throw new Error('the plan was not refused');
}

const durables = async (topic: TopicHandle): Promise<string[]> => {
  const names: string[] = [];
  for (let partition = 0; partition < topic.topic.partitions; partition++) {
    for (const { name } of await manager.consumers.list(`REPLAY-TOPIC-${topic.topic.id}-${partition}`).next()) names.push(name);
  }
  return names;
};

describe('cold and hot history', () => {
  const count = 1_000;
  let topic: TopicHandle;
  let logs: TopicRecord[][];

  beforeAll(async () => {
    topic = await addSweptTopic(world, { count });
    logs = await logOf(topic);
  });

  test('is mostly cold', async () => {
    for (const { hot, next, oldest } of await topic.bounds()) expect([oldest, next - hot]).toEqual([0, 20]);
  });

  test('a dry run counts it and makes nothing', async () => {
    const input = topicRequest(world, topic, { dry_run: true });
    const report = await world.replay(input);
    expect(report).toMatchObject({
      state: 'rehearsed',
      plan: { stream: `topic:${topic.topic.name}` },
      range: { count, count_exact: true, not_reached: null },
      counts: { gaps: 0 },
      warnings: [expect.stringContaining('no end')],
    });
    expect(report.lanes).toEqual(
      logs.map((log, partition) => ({ partition, first: 0, cursor: 0, end: null, next: log.length })),
    );
    expect(await durables(topic)).toEqual([]);
  });

  test('lands exactly, in the order of each partition, once; again under another durable it is all duplicates', async () => {
    const input = topicRequest(world, topic, { batch_size: 100 });
    const report = await world.replay(input);
    expect(report).toMatchObject({
      state: 'completed',
      stop_reason: 'drained',
      counts: { pulled: count, written: count, duplicate: 0, rejected: 0, acked: count, vanished: 0, gaps: 0 },
      range: { cursor: count + 1, not_reached: 0 },
    });
    expect(report.lanes).toEqual(
      logs.map((log, partition) => ({ partition, first: 0, cursor: log.length, end: null, next: log.length })),
    );
    const records = await stored(input);
    expect(offsetsByLane(records, 3)).toEqual(logs.map((log) => log.map(({ offset }) => offset)));
    const first = records.find(({ sequence, stream }) => sequence === 1 && stream.endsWith('-0'))!;
    const original = logs[0]![0]!;
    expect(JSON.parse(first.line)).toMatchObject({
      time: original.appendedAt,
      message_id: original.deduplicationKey,
      headers: {
        'Topic-Partition-Key': [original.partitionKey],
        'Topic-Deduplication-Key': [original.deduplicationKey],
      },
      payload: original.payload,
    });
    expect(await durables(topic)).toEqual([]);

    const again = topicRequest(world, topic, {}, input.target['sink'] as Record<string, unknown>);
    expect((await world.replay(again)).counts).toMatchObject({ written: 0, duplicate: count, acked: count });
    expect(await stored(again)).toHaveLength(count);
  });

  test('a record is the same whether it was read hot or cold', async () => {
    const fresh = await addTopic(world.topics, { partitions: 1, hot: { maxRecords: 1 }, cold: 'file' });
    await fresh.push([
      { partitionKey: 'ключ\n', deduplicationKey: ' a"b ', payload: { text: 'line\nbreak', n: 1 } },
      { partitionKey: '', deduplicationKey: 'plain', payload: [1.5, null] },
    ]);
    const hot = topicRequest(world, fresh);
    await world.replay(hot);
    await world.sweep(fresh);
    expect(await fresh.bounds()).toMatchObject([{ hot: 1, next: 2 }]);
    const cold = topicRequest(world, fresh);
    await world.replay(cold);
    const bare = async (input: TopicRequest) =>
      (await stored(input)).map(({ line }) => ({ ...(JSON.parse(line) as object), plan: '', run: '' }));
    expect(await bare(cold)).toEqual(await bare(hot));
  });

  test('from a time, to a time: the records of that time alone', async () => {
    const all = logs.flat();
    const times = all.map(({ appendedAt }) => appendedAt).toSorted();
    const [from, end_time] = [times[300]!, times[900]!];
    const expected = logs.map((log) => log.filter((one) => one.appendedAt >= from && one.appendedAt < end_time));
    const input = topicRequest(world, topic, { from, end_time });
    const report = await world.replay(input);
    const records = expected.flat().length;
    expect(report).toMatchObject({ stop_reason: 'end_of_range', counts: { pulled: records, written: records, vanished: 0 } });
    expect(report.range).toMatchObject({ count: records, last: records });
    expect(offsetsByLane(await stored(input), 3)).toEqual(expected.map((log) => log.map(({ offset }) => offset)));
  });

  test('from offsets: partitions that are not named are left out', async () => {
    const [first, , third] = logs;
    const from = { '0': 250, '2': third!.length };
    const input = topicRequest(world, topic, { from });
    const report = await world.replay(input);
    expect(report.counts).toMatchObject({ written: first!.length - 250, acked: first!.length - 250 });
    expect(report.lanes).toMatchObject([
      { partition: 0, first: 250 },
      { partition: 2, first: third!.length },
    ]);
    expect(report.warnings).toContainEqual(expect.stringContaining('1 of 3 partitions are not named'));
    expect(offsetsByLane(await stored(input), 3)[0]).toEqual(first!.slice(250).map(({ offset }) => offset));
  });

  test('max_messages bounds all partitions together', async () => {
    const input = topicRequest(world, topic, { max_messages: 150, batch_size: 40 });
    const report = await world.replay(input);
    expect(report).toMatchObject({
      stop_reason: 'max_messages',
      counts: { written: 150 },
      range: { not_reached: count - 150 },
    });
  });

  test('all that is wrong is said at once, and nothing is made', async () => {
    const input = topicRequest(world, topic, { from: { '0': 100_000, '7': 0 } });
    const problems = await refusal({ ...input, target: { ...input.target, dead_letter: { subject: uniqueName('nobody') } } });
    expect(problems).toEqual([
      expect.stringMatching(/^dead_letter\.subject: no stream takes/),
      expect.stringMatching(/^replay\.from\["7"\]: no such partition; this topic has 0 to 2/),
      expect.stringMatching(/^replay\.from\["0"\]: 100000 is past the end; partition 0 ends at \d+/),
    ]);
    expect(await refusal(topicRequest(world, topic, { topic: 'nowhere-to-be-found' }))).toEqual([
      expect.stringMatching(/^replay\.topic: There is no topic of this name\./),
    ]);
    expect(await refusal(topicRequest(world, topic, { from: '2031-01-01T00:00:00Z' }))).toEqual([
      expect.stringMatching(/^replay\.from: .*is in the future/),
    ]);
    expect(await durables(topic)).toEqual([]);
  });
});

describe('in the middle of a run', () => {
  const slow = { batch_size: 20, rate_limit_per_second: 40 };

  test('pause, resume, rate; canceled, the same plan goes on where it stopped, partition by partition', async () => {
    const topic = await addSweptTopic(world, { count: 400 });
    const input = topicRequest(world, topic, slow);
    const run = await world.start(input);
    await run.signal('pause');
    await run.until(({ state }) => state === 'paused');
    await run.update('setRate', { perSecond: 60 });
    await run.signal('resume');
    await run.until(({ counts }) => counts.written >= 100);
    await run.cancel();
    await expect(run.result()).rejects.toThrow();
    const canceled = await run.report();
    expect(canceled).toMatchObject({ state: 'canceled', stop_reason: 'canceled' });
    const { written, acked } = canceled.counts;
    expect(acked).toBe(written);
    expect(canceled.range.not_reached).toBe(400 - written);
    expect(await durables(topic)).toHaveLength(3);

    const rest = await world.replay({ ...input, plan: { replay: { ...input.plan.replay, rate_limit_per_second: null } } });
    expect(rest.plan.resumed).toBe(true);
    expect(rest.counts).toMatchObject({ written: 400 - written, duplicate: 0, acked: 400 - written });
    expect(offsetsByLane(await stored(input), 3)).toEqual((await logOf(topic)).map((log) => log.map(({ offset }) => offset)));
    expect(await durables(topic)).toEqual([]);
  });

  test('a second run under the same durable is refused, also with another plan', async () => {
    const topic = await addSweptTopic(world, { count: 200 });
    const input = topicRequest(world, topic, slow);
    const run = await world.start(input);
    await run.until(({ counts }) => counts.written >= 60);
    const problems = await refusal(input);
    expect(problems).toHaveLength(3);
    expect(problems[0]).toMatch(/^replay\.durable_consumer: ".*-p0" of partition 0 belongs to the running replay/);
    await run.cancel();
    await expect(run.result()).rejects.toThrow();
    const other = { ...input, plan: { replay: { ...input.plan.replay, from: { '0': 0 } } } };
    expect(await refusal(other)).toEqual([expect.stringContaining('unfinished replay of another plan')]);
  });

  test('a sweep takes the records away under it: it goes on cold', async () => {
    const topic = await addTopic(world.topics, { partitions: 3, hot: { maxRecords: 5 }, cold: 'file' });
    await fill(topic, { count: 300 });
    const input = topicRequest(world, topic, slow);
    const run = await world.start(input);
    await run.until(({ counts }) => counts.written >= 20);
    await world.sweep(topic);
    for (const { hot, next } of await topic.bounds()) expect(next - hot).toBe(5);
    await run.update('setRate', { perSecond: null });
    const report = await run.result();
    expect(report.counts).toMatchObject({ pulled: 300, written: 300, vanished: 0, gaps: 0 });
    expect(report.warnings).toEqual([expect.stringContaining('no end')]);
    expect(offsetsByLane(await stored(input), 3)).toEqual((await logOf(topic)).map((log) => log.map(({ offset }) => offset)));
  });

  test('records that are pushed while it runs come too', async () => {
    const topic = await addSweptTopic(world, { count: 150 });
    const input = topicRequest(world, topic, { ...slow, stop_after_idle_seconds: 5 });
    const run = await world.start(input);
    await run.until(({ counts }) => counts.written >= 20);
    await fill(topic, { from: 150, count: 60 });
    await run.update('setRate', { perSecond: null });
    expect((await run.result()).counts).toMatchObject({ written: 210, acked: 210, vanished: 0 });
  });
});

describe('what is gone', () => {
  test('a lost object is a gap that the report names; the rest arrives', async () => {
    const topic = await addSweptTopic(world, { count: 300, partitions: 1 });
    const folder = join(world.coldRoot, topic.topic.id, '0000');
    const [first] = (await readdir(folder)).toSorted();
    const [from, to] = /(\d{16})-(\d{16})/.exec(first!)!.slice(1).map(Number) as [number, number];
    await rm(join(folder, first!));
    const input = topicRequest(world, topic, { batch_size: 40 });
    const report = await world.replay(input);
    const lost = to - from + 1;
    expect(report.counts).toMatchObject({ pulled: 300 - lost, written: 300 - lost, vanished: lost, gaps: 0 });
    expect(report.warnings).toContain(
      `Partition 0: offsets ${from} to ${to} are gone from the log, hot and cold; not replayed.`,
    );
    expect(offsetsByLane(await stored(input), 1)).toEqual([Array.from({ length: 300 - lost }, (_, i) => to + 1 + i)]);
  });

  test('what was gone before it began is a gap that describing counts', async () => {
    const topic = await addTopic(world.topics, { partitions: 1, hot: { maxRecords: 10 } });
    await fill(topic, { count: 50 });
    await world.sweep(topic);
    const report = await world.replay(topicRequest(world, topic, { from: { '0': 5 } }));
    expect(report.counts).toMatchObject({ written: 10, vanished: 0, gaps: 35 });
    expect(report.warnings).toContain('The range is partly gone: 35 offsets are neither hot nor cold.');
    expect(report.warnings).toContainEqual(expect.stringContaining('Partition 0: offsets 5 to 39 are gone'));
  });

  test('a topic that was created anew under it blocks it', async () => {
    const name = uniqueName('renewed');
    const topic = await world.topics.create(name, { partitions: 1 });
    await fill(topic, { count: 100 });
    const run = await world.start(topicRequest(world, topic, { batch_size: 20, rate_limit_per_second: 20 }));
    await run.until(({ counts }) => counts.written >= 20);
    await run.signal('pause');
    await run.until(({ state }) => state === 'paused');
    await world.topics.delete(name);
    const anew = await world.topics.create(name, { partitions: 1 });
    await fill(anew, { count: 10 });
    await run.signal('resume');
    expect((await run.until(({ state }) => state === 'blocked')).problem?.code).toBe('stream_recreated');
    await run.cancel();
    await expect(run.result()).rejects.toThrow();
    await world.topics.delete(name);
  });
});

describe('poison', () => {
  test('becomes a dead letter with its body, cold or hot; the others arrive', async () => {
    const name = (id: number): string => (id % 50 === 7 ? 'x'.repeat(200) : `customer ${id}`);
    const topic = await addSweptTopic(world, { count: 300, name });
    const before = (await manager.streams.info(world.deadLetterStream)).state.messages;
    const input = topicRequest(
      world,
      topic,
      { batch_size: 50 },
      { type: 'file', directory: uniqueName('out'), max_record_bytes: 100 },
    );
    const report = await world.replay(input);
    expect(report.counts).toMatchObject({ written: 294, rejected: 6, dead_lettered: 6, lost_body: 0, acked: 300 });
    expect(report.rejects).toHaveLength(6);
    for (const { partition } of report.rejects) expect([0, 1, 2]).toContain(partition);
    const dead = await manager.streams.info(world.deadLetterStream);
    expect(dead.state.messages - before).toBe(6);
    const letter = await manager.streams.getMessage(world.deadLetterStream, { seq: dead.state.last_seq });
    expect(letter.json<{ name: string }>().name).toBe('x'.repeat(200));
    expect(letter.header.get('Topic-Partition-Key')).toMatch(/^user-\d+$/);
    expect(letter.header.get('Replay-Source-Stream')).toMatch(`REPLAY-TOPIC-${topic.topic.id}-`);
  });

  test('over the budget it blocks, and one decision settles that batch', async () => {
    const topic = await addSweptTopic(world, { count: 120, name: (id) => (id === 60 ? 'x'.repeat(200) : 'y') });
    const input = topicRequest(
      world,
      topic,
      { max_rejects: 0 },
      { type: 'file', directory: uniqueName('out'), max_record_bytes: 100 },
    );
    const run = await world.start(input);
    const { problem, rejects } = await run.until(({ state }) => state === 'blocked');
    expect(problem?.code).toBe('reject_budget');
    expect(rejects).toMatchObject([{ code: 'too_large', partition: expect.any(Number) }]);
    await run.update('decide', { decision: 'skip' });
    const { counts } = await run.result();
    expect(counts).toMatchObject({ pulled: 120, rejected: 1, dead_lettered: 0, acked: 120 });
    // Written before the decision, and found again after it.
    expect(counts.written + counts.duplicate).toBe(119);
  });
});

import { setTimeout as sleep } from 'node:timers/promises';
import { connectTopics, type GroupHandle, type PushRecord, type TopicHandle } from '../../client/topics.ts';

/** A process that pushes or consumes until it is done, and may be killed at any moment. */
export type ClientOrder = { readonly natsUrl: string; readonly topic: string } & (
  | { readonly kind: 'push'; readonly name: string; readonly pushes: number; readonly recordsPerPush: number }
  | { readonly kind: 'consume'; readonly leaseMs: number }
);

export type ClientReport =
  | {
      readonly kind: 'accepted';
      readonly partition: number;
      readonly keys: readonly string[];
      readonly offsets: readonly number[];
    }
  | { readonly kind: 'settled'; readonly partition: number; readonly first: number; readonly next: number }
  | { readonly kind: 'fenced' }
  | { readonly kind: 'done' };

const group = 'storm';
const pauseMs = 20;

process.once('message', (order: ClientOrder) => void run(order));
report({ kind: 'done' });

async function run(order: ClientOrder): Promise<void> {
  const topics = await connectTopics({ env: { NATS_URL: order.natsUrl } });
  const topic = await patiently(() => topics.open(order.topic));
  if (order.kind === 'consume') await consume(topic, order.leaseMs);
  else {
    await Promise.all(Array.from({ length: order.pushes }, (_, i) => pushOne(topic, recordsOf(order, i))));
    report({ kind: 'done' });
  }
}

function recordsOf(order: ClientOrder & { kind: 'push' }, push: number): PushRecord[] {
  return Array.from({ length: order.recordsPerPush }, (_, i) => {
    const key = `${order.name}-${push}-${i}`;
    return { partitionKey: `user-${(push * 7 + i) % 50}`, deduplicationKey: key, payload: key };
  });
}

/** Until every group is accepted, as a producer does that may not lose anything. */
async function pushOne(topic: TopicHandle, records: readonly PushRecord[]): Promise<void> {
  for (let left = records; left.length > 0; await sleep(pauseMs)) {
    const again: PushRecord[] = [];
    for (const answer of await topic.push(left)) {
      const group_ = answer.indexes.map((index) => left[index]!);
      if (answer.status !== 'accepted') again.push(...group_);
      else {
        const keys = group_.map(({ deduplicationKey }) => deduplicationKey!);
        report({ kind: 'accepted', partition: answer.partition, keys, offsets: answer.offsets });
      }
    }
    left = again;
  }
}

async function consume(topic: TopicHandle, leaseMs: number): Promise<never> {
  const consumer = topic.group(group);
  for (let turn = 0; ; turn++) {
    for (let partition = 0; partition < topic.topic.partitions; partition++) {
      // Every fifth turn commits late, when its records may belong to another.
      const lateMs = turn % 5 === 4 ? leaseMs : 0;
      const result = await patiently(() => settleOne(consumer, partition, { leaseMs, lateMs }));
      // On a slow machine a short lease would run out for ever.
      if (result === 'fenced' && lateMs === 0) leaseMs *= 2;
    }
    await sleep(pauseMs);
  }
}

async function settleOne(consumer: GroupHandle, partition: number, { leaseMs, lateMs }: { leaseMs: number; lateMs: number }) {
  const lease = await consumer.lease({ partition, limit: 20, leaseMs, parallel: 2 });
  if (lease === null) return null;
  await sleep(lateMs);
  const { result } = await lease.commit();
  if (result === 'advanced') report({ kind: 'settled', partition, first: lease.records[0]!.offset, next: lease.nextOffset });
  else report({ kind: 'fenced' });
  return result;
}

/** Servers come back. */
async function patiently<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      const { code } = error as { code?: string };
      if (!['nats_unreachable', 'nats_timeout', 'group_uncertain', 'group_contended', 'stream_missing'].includes(code ?? ''))
        throw error;
      await sleep(pauseMs);
    }
  }
}

function report(one: ClientReport): void {
  process.send?.(one);
}

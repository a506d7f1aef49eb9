/**
 * Orders go into a topic; a consumer group adds them up. Run it against a NATS server with JetStream (NATS_URL):
 *
 *     npx tsx examples/topic.ts
 */
import { connectTopics, type GroupHandle, type PushRecord, type TopicHandle, type Topics } from '../client/topics.ts';

interface Order {
  readonly id: string;
  readonly customer: string;
  readonly cents: number;
}

const orders: readonly Order[] = Array.from({ length: 200 }, (_, i) => ({
  id: `o-${i}`,
  customer: `customer-${i % 20}`,
  cents: 100 + i,
}));

const topics = await connectTopics();
try {
  const topic = await createOrOpen(topics, process.argv[2] ?? 'example-orders');
  const stored = await produce(topic, orders);
  print(`pushed ${orders.length} orders, ${stored} of them new`);
  const cents = await consumeAll(topic, topic.group('revenue'));
  print(`revenue ${cents} cents, lag ${await lagOf(topic.group('revenue'))}`);
} finally {
  await topics.close();
}

async function createOrOpen(from: Topics, name: string): Promise<TopicHandle> {
  const exists = (await from.list()).some((topic) => topic.name === name);
  return exists ? await from.open(name) : await from.create(name);
}

/** With deduplication keys the same push can be made again until every group of it is accepted. */
async function produce(topic: TopicHandle, list: readonly Order[]): Promise<number> {
  const before = await sizeOf(topic);
  let left: PushRecord[] = list.map((order) => ({ partitionKey: order.customer, deduplicationKey: order.id, payload: order }));
  for (let attempt = 1; left.length > 0; attempt++) {
    const groups = await topic.push(left);
    const refused = groups.find(({ status }) => status === 'rejected');
    if (refused?.status === 'rejected') throw refused.error;
    if (attempt === 5) throw new Error('the push stays uncertain');
    left = groups.filter(({ status }) => status === 'uncertain').flatMap(({ indexes }) => indexes.map((index) => left[index]!));
  }
  return (await sizeOf(topic)) - before;
}

async function sizeOf(topic: TopicHandle): Promise<number> {
  return (await topic.bounds()).reduce((sum, { oldest, next }) => sum + next - oldest, 0);
}

/** A lease gives a range of records to this process alone; what it does not settle in time goes to somebody else. */
async function consumeAll(topic: TopicHandle, group: GroupHandle): Promise<number> {
  let cents = 0;
  for (let partition = 0; partition < topic.topic.partitions; partition++) {
    for (let lease = await group.lease({ partition }); lease !== null; lease = await group.lease({ partition })) {
      const sum = lease.records.reduce((total, { payload }) => total + (payload as Order).cents, 0);
      const { result } = await lease.commit();
      // Fenced: somebody else has these records now, and counts them.
      if (result === 'advanced') cents += sum;
    }
  }
  return cents;
}

async function lagOf(group: GroupHandle): Promise<number> {
  return (await group.positions()).reduce((sum, { lag }) => sum + lag, 0);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

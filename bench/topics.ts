/**
 * What a topic costs above bare JetStream, as ratios in one run: pushes of 100 records into one partition against publishing 100
 * messages and awaiting each PubAck (the same durability), and hot reads in pages of 100 against `consumer.fetch` of 100.
 * npx tsx bench/topics.ts [records=20000]; uses NATS_URL or starts a server of its own.
 */
import { AckPolicy, connect, type NatsConnection } from 'nats';
import { connectTopics, type TopicHandle } from '../client/topics.ts';
import { startNats } from '../scripts/servers/nats.ts';

const bodyBytes = 288;
const rounds = 5;
const batch = 100;
const records = Number(process.argv[2] ?? 20_000);
const given = process.env['NATS_URL'];
const body = JSON.stringify('x'.repeat(bodyBytes - 2));

const server = given === undefined || given === '' ? await startNats() : null;
const url = server?.url ?? given!;
const nc = await connect({ servers: url });
const topics = await connectTopics({ env: { ...process.env, NATS_URL: url } });
try {
  for (const inFlight of [1, 8]) await compare(inFlight);
} finally {
  await topics.close();
  await nc.close();
  await server?.stop();
}

async function compare(inFlight: number): Promise<void> {
  const ratios = { push: [] as number[], read: [] as number[] };
  for (let round = 0; round <= rounds; round++) {
    const name = `bench-${process.pid}-${inFlight}-${round}`;
    const bare = await withStream(nc, `BENCH_${name}`, async () => ({
      push: await timed((at) => publishBare(name, at), inFlight),
      read: await readBare(`BENCH_${name}`),
    }));
    const topic = await topics.create(name, { partitions: 1 });
    const ours = { push: await timed((at) => pushOnce(topic, at), inFlight), read: await readTopic(topic) };
    await topics.delete(name);
    // The first round warms up.
    if (round === 0) continue;
    print(`push, ${inFlight} at a time: bare ${rate(bare.push)}, topic ${rate(ours.push)} records/s`);
    print(`read: bare ${rate(bare.read)}, topic ${rate(ours.read)} records/s`);
    ratios.push.push(ours.push / bare.push);
    ratios.read.push(ours.read / bare.read);
  }
  print(
    `${inFlight} at a time: push / bare publish ${median(ratios.push).toFixed(2)}, read / fetch ${median(ratios.read).toFixed(2)}`,
  );
}

async function withStream<T>(on: NatsConnection, name: string, act: () => Promise<T>): Promise<T> {
  const manager = await on.jetstreamManager();
  await manager.streams.add({ name, subjects: [`${name.slice('BENCH_'.length)}.>`], allow_direct: true });
  try {
    return await act();
  } finally {
    await manager.streams.delete(name);
  }
}

/** Records a second of so many batches, `inFlight` of them at a time. */
async function timed(send: (batch: number) => Promise<void>, inFlight: number): Promise<number> {
  let next = 0;
  const start = performance.now();
  const lane = async (): Promise<void> => {
    while (next < records / batch) await send(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return (records / (performance.now() - start)) * 1_000;
}

async function publishBare(subject: string, at: number): Promise<void> {
  const stream = nc.jetstream();
  await Promise.all(Array.from({ length: batch }, (_, i) => stream.publish(`${subject}.${at}`, body, { msgID: `${at}-${i}` })));
}

async function pushOnce(topic: TopicHandle, at: number): Promise<void> {
  const some = Array.from({ length: batch }, (_, i) => ({
    partitionKey: 'k',
    deduplicationKey: `${at}-${i}`,
    payloadJson: body,
  }));
  const [group] = await topic.push(some);
  if (group?.status !== 'accepted') throw new Error('a push was not accepted');
}

async function readBare(stream: string): Promise<number> {
  const manager = await nc.jetstreamManager();
  await manager.consumers.add(stream, { durable_name: 'bare', ack_policy: AckPolicy.None });
  const consumer = await nc.jetstream().consumers.get(stream, 'bare');
  const start = performance.now();
  let bytes = 0;
  let last = 0;
  while (last < records) {
    for await (const message of await consumer.fetch({ max_messages: batch })) {
      bytes += message.data.length;
      last = message.seq;
    }
  }
  if (bytes !== records * bodyBytes) throw new Error('bytes are missing');
  return (records / (performance.now() - start)) * 1_000;
}

async function readTopic(topic: TopicHandle): Promise<number> {
  const start = performance.now();
  let bytes = 0;
  for (let from = 0; from < records;) {
    const page = await topic.read({ partition: 0, from });
    for (const { payloadBytes } of page.records) bytes += payloadBytes.length;
    from = page.nextOffset;
  }
  if (bytes !== records * bodyBytes) throw new Error('bytes are missing');
  return (records / (performance.now() - start)) * 1_000;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

function rate(perSecond: number): string {
  return Math.round(perSecond).toLocaleString('en');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/**
 * How fast `pull` reads, as a ratio to the client's own `consumer.fetch` in the same run, and how long an ACK of a batch takes.
 * npx tsx bench/pull.ts [messages=100000] [batch=5000]; uses NATS_URL or starts a server of its own.
 */
import { connect, headers, type MsgHdrs, type NatsConnection } from 'nats';
import { receiptOf } from '../core/batch.ts';
import { createSource, type ConsumerSpec } from '../jetstream/source.ts';
import { startNats } from '../scripts/servers/nats.ts';
import { publishAll, repeat } from '../test/support/streams.ts';
import { median } from './plot.ts';

const bodyBytes = 288;
const rounds = 5;
const messages = Number(process.argv[2] ?? 100_000);
const batch = Number(process.argv[3] ?? 5_000);
const never = new AbortController().signal;
const given = process.env['NATS_URL'];

const server = given === undefined || given === '' ? await startNats() : null;
const nc = await connect({ servers: server?.url ?? given! });
try {
  for (const withHeaders of [false, true]) await compare(nc, withHeaders);
} finally {
  await nc.close();
  await server?.stop();
}

async function compare(nc: NatsConnection, withHeaders: boolean): Promise<void> {
  const stream = `BENCH_PULL_${process.pid}_${withHeaders ? 'H' : 'P'}`;
  const jsm = await nc.jetstreamManager();
  await jsm.streams.add({ name: stream, subjects: [`${stream}.>`], allow_direct: true });
  try {
    await fill(nc, stream, withHeaders);
    const ratios: number[] = [];
    const acks: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const fetched = await readWithFetch(nc, stream);
      const pulled = await readWithPull(nc, stream);
      ratios.push(pulled.perSecond / fetched);
      acks.push(pulled.ackMs);
      print(`${withHeaders ? 'one header' : 'no headers'}: fetch ${rate(fetched)}, pull ${rate(pulled.perSecond)} msg/s`);
    }
    const label = withHeaders ? 'one header' : 'no headers';
    print(`${label}: pull / fetch, median ${median(ratios).toFixed(2)}; ACK of ${batch}, median ${median(acks).toFixed(1)} ms`);
  } finally {
    await jsm.streams.delete(stream);
  }
}

async function fill(nc: NatsConnection, stream: string, withHeaders: boolean): Promise<void> {
  const body = Buffer.alloc(bodyBytes, 'x');
  await publishAll(
    nc,
    repeat(messages, (i) => ({
      subject: `${stream}.family.${i % 10}`,
      body,
      ...(withHeaders ? { headers: withMessageId(i) } : {}),
    })),
  );
}

function withMessageId(i: number): MsgHdrs {
  const made = headers();
  made.set('Nats-Msg-Id', `message-${i}`);
  return made;
}

/** Messages per second; each with its sequence read, as a replay must. */
async function readWithFetch(nc: NatsConnection, stream: string): Promise<number> {
  const jsm = await nc.jetstreamManager();
  await jsm.consumers.add(stream, { durable_name: 'fetch', ack_policy: 'explicit' as never, max_ack_pending: messages });
  const consumer = await nc.jetstream().consumers.get(stream, 'fetch');
  const start = performance.now();
  let last = 0;
  for (let got = 0; got < messages;) {
    for await (const message of await consumer.fetch({ max_messages: batch, expires: 5_000 })) {
      last = message.seq;
      got++;
    }
  }
  const seconds = (performance.now() - start) / 1000;
  if (last !== messages) throw new Error('fetch did not reach the end');
  await jsm.consumers.delete(stream, 'fetch');
  return messages / seconds;
}

async function readWithPull(nc: NatsConnection, stream: string): Promise<{ perSecond: number; ackMs: number }> {
  const source = createSource(nc);
  const { incarnation } = await source.describe(stream);
  const owner = { cluster: 'bench', namespace: 'bench', workflowId: 'bench', firstRunId: 'bench', fingerprint: 'bench' };
  const spec: ConsumerSpec = { stream, incarnation, durable: 'pull', filters: ['>'], maxAckPending: messages, owner };
  await source.putBack(spec, 1);
  const limits = { stream, incarnation, durable: 'pull', maxRecords: batch, maxBytes: 64 * 1024 * 1024, waitMs: 0 };
  const start = performance.now();
  let last = 0;
  for (let got = 0; got < messages;) {
    const pulled = await source.pull(limits, never);
    if (pulled.records.length === 0) throw new Error(`pull ended: ${pulled.end}`);
    got += pulled.records.length;
    last = pulled.records.at(-1)!.position;
  }
  const seconds = (performance.now() - start) / 1000;
  if (last !== messages) throw new Error('pull did not reach the end');
  await source.putBack(spec, 1);
  const { records } = await source.pull(limits, never);
  const acking = performance.now();
  const outcome = await source.acknowledge(receiptOf(spec, records)!, never);
  const ackMs = performance.now() - acking;
  if (outcome !== 'confirmed') throw new Error('the ACK was deferred');
  await source.deleteConsumer(stream, 'pull');
  return { perSecond: messages / seconds, ackMs };
}

function rate(perSecond: number): string {
  return Math.round(perSecond).toLocaleString('en');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

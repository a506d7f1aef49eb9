/**
 * Records a second into an encrypted spool, each batch synced; how long it takes to open it again with all of them in, and the
 * batch after that; and how long to read them all out.
 *
 *   node --import tsx bench/spool.ts [DIRECTORY]
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReplayRecord } from '../core/record.ts';
import { spoolConfigSchema } from '../sinks/spool/config.ts';
import { createSpoolDrain } from '../sinks/spool/drain.ts';
import { createSpoolSink } from '../sinks/spool/sink.ts';

const RECORDS = 200_000;
const BODY_BYTES = 300;
const BATCH_SIZES = [100, 1_000];
const DRAIN_RECORDS = 5_000;

const folder = await mkdtemp(join(process.argv[2] ?? tmpdir(), 'durable-replay-bench-'));
const key = randomBytes(32).toString('base64');
const silent = { info: () => undefined, warn: () => undefined };
const context = { dataRoot: folder, plan: 'bench', run: 'run', begun: false, secret: () => key, log: silent };
const { signal } = new AbortController();
try {
  for (const batchSize of BATCH_SIZES) await measure(batchSize);
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function measure(batchSize: number): Promise<void> {
  const encryption = { key_id: 'k', key: { env: 'REPLAY_SECRET_BENCH' } };
  const config = spoolConfigSchema.parse({ type: 'spool', directory: `spool-${batchSize}`, encryption });
  const sink = createSpoolSink(config, context);
  const writing = await timed(async () => {
    for (let first = 1; first <= RECORDS; first += batchSize) await sink.write(makeBatch(first, batchSize), signal);
  });
  await sink.close();
  const again = createSpoolSink(config, context);
  const opening = await timed(() => again.open(signal));
  const next = await timed(() => again.write(makeBatch(RECORDS + 1, batchSize), signal));
  await again.close();
  const drain = createSpoolDrain(config, context);
  const taking = await timed(async () => {
    for (let left = RECORDS; left > 0;) {
      const { packs, records } = await drain.take(DRAIN_RECORDS, signal);
      await drain.remove(packs);
      left -= records.length;
    }
  });
  process.stdout.write(
    `batches of ${batchSize}: ${Math.round(RECORDS / writing)} records/s in; opened with ${RECORDS} in ${opening.toFixed(2)} s, ` +
      `the next batch ${next.toFixed(2)} s; ${Math.round(RECORDS / taking)} records/s out\n`,
  );
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

function makeBatch(first: number, count: number): ReplayRecord[] {
  return Array.from({ length: count }, (_, i) => ({
    stream: 'ORDERS',
    incarnation: '2026-05-01T10:00:00.000000001Z',
    sequence: BigInt(first + i),
    subject: 'orders.created',
    timeNanos: 1_777_629_600_000_000_000n + BigInt(first + i),
    messageId: `order-${first + i}`,
    headers: new Map([['Nats-Msg-Id', [`order-${first + i}`]]]),
    payload: Buffer.alloc(BODY_BYTES, 0x61),
    redelivered: false,
  }));
}

/**
 * How much of the disk the file sink leaves to its records: records a second through the sink (each batch synced), and as a
 * ratio to a bare loop that only appends and syncs the same bytes. Rounds of both alternate, so that they share the machine's mood.
 *
 *   node --import tsx bench/file-sink.ts [DIRECTORY]
 */
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReplayRecord } from '../core/record.ts';
import { fileConfigSchema } from '../sinks/file/config.ts';
import { formatLines, formRecord } from '../sinks/file/format.ts';
import { createFileSink } from '../sinks/file/sink.ts';
import { median } from './plot.ts';

const BODY_BYTES = 288;
const RECORDS = 100_000;
const ROUNDS = 5;
const BATCH_SIZES = [1_000, 5_000];
const context = { plan: 'bench', begun: false, run: '0198f6b2-6a1e-7d3f-8a53-0f0e4d1c2b3a' };

let directories = 0;
const folder = await mkdtemp(join(process.argv[2] ?? tmpdir(), 'durable-replay-bench-'));
try {
  const records = Array.from({ length: RECORDS }, (_, i) => makeRecord(i + 1));
  for (const batchSize of BATCH_SIZES) await compare(records, batchSize);
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function compare(records: readonly ReplayRecord[], batchSize: number): Promise<void> {
  const batches = Array.from({ length: RECORDS / batchSize }, (_, i) => records.slice(i * batchSize, (i + 1) * batchSize));
  const bytes = batches.map((batch) => formatLines(batch.map(formRecord), context));
  const seconds = { sink: [] as number[], bare: [] as number[] };
  for (let round = 0; round <= ROUNDS; round++) {
    const [bare, sink] = [await timed(() => writeBare(bytes)), await timed(() => writeThroughSink(batches))];
    // The first round warms up.
    if (round === 0) continue;
    seconds.bare.push(bare);
    seconds.sink.push(sink);
  }
  const [bare, sink] = [RECORDS / median(seconds.bare), RECORDS / median(seconds.sink)];
  process.stdout.write(
    `batches of ${batchSize}: file sink ${Math.round(sink)} records/s, bare append and sync ${Math.round(bare)} records/s, ` +
      `ratio ${(sink / bare).toFixed(2)}\n`,
  );
}

async function writeBare(batches: readonly Buffer[]): Promise<void> {
  const handle = await open(join(folder, 'bare'), 'w');
  for (const bytes of batches) {
    await handle.write(bytes);
    await handle.datasync();
  }
  await handle.close();
}

async function writeThroughSink(batches: readonly (readonly ReplayRecord[])[]): Promise<void> {
  const config = fileConfigSchema.parse({ type: 'file', directory: `d${++directories}` });
  const log = { info: () => undefined, warn: () => undefined };
  const sink = createFileSink(config, { dataRoot: folder, ...context, secret: () => '', log });
  const { signal } = new AbortController();
  await sink.open(signal);
  for (const batch of batches) await sink.write(batch, signal);
  await sink.close();
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

function makeRecord(sequence: number): ReplayRecord {
  const body = {
    order_id: `order-${sequence}`,
    customer: { id: sequence % 977 },
    items: [{ sku: 'A-1', quantity: 2, price: 19.5 }],
    note: '',
  };
  body.note = 'x'.repeat(BODY_BYTES - JSON.stringify(body).length);
  return {
    stream: 'ORDERS',
    incarnation: '2026-05-01T10:00:00.000000001Z',
    sequence: BigInt(sequence),
    subject: 'orders.created',
    timeNanos: 1_777_629_600_000_000_000n + BigInt(sequence) * 1_000_000n,
    messageId: `order-${sequence}`,
    headers: new Map([['Nats-Msg-Id', [`order-${sequence}`]]]),
    payload: Buffer.from(JSON.stringify(body)),
    redelivered: false,
  };
}

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { beforeAll, expect, test } from 'vitest';
import { startNats, type NatsServer } from '../../scripts/servers/nats.ts';
import { startTemporal } from '../../scripts/servers/temporal.ts';
import type { Deps } from '../../activities/deps.ts';
import { expectAccounted, fillWithBad, recordBytesMax } from '../support/accounts.ts';
import { newPlace, openBench, startLocalWorker, startRun, until, type Bench } from '../support/fault-bench.ts';
import { requestOf } from '../support/request.ts';
import { atFileEnd } from '../support/file-end.ts';
import { connectTestNats } from '../support/servers.ts';
import { addStream } from '../support/streams.ts';
import { startWorker } from '../support/worker.ts';

/** Servers of our own, killed (SIGKILL) while a run needs them. */

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});

const long = process.env['REPLAY_TEST_LONG'] === '1';
const delaysMs = long ? [0, 10, 30, 60, 100] : [0, 60];

/** A server that forgets what it has not flushed yet: kills come within the 100 ms in which it does. */
async function ownNats(): Promise<NatsServer> {
  const server = await startNats();
  atFileEnd(async () => {
    await server.stop();
    await rm(server.storeDir, { recursive: true, force: true });
  });
  return server;
}

/** Kills and restarts the server once, so many milliseconds after the n-th time that a step of this name was done. */
function killAfter(server: NatsServer, step: 'pull' | 'acknowledge', at: number, delayMs: number) {
  let done = 0;
  let restarted: Promise<void> | undefined;
  const fell = async (): Promise<void> => {
    await sleep(delayMs);
    await server.kill();
    await server.restart();
  };
  const wrapDeps = (deps: Deps): Deps => ({
    ...deps,
    source: {
      ...deps.source,
      async pull(request, signal) {
        const pulled = await deps.source.pull(request, signal);
        if (step === 'pull' && ++done === at) restarted = fell();
        return pulled;
      },
      async acknowledge(receipt, signal) {
        const answer = await deps.source.acknowledge(receipt, signal);
        if (step === 'acknowledge' && ++done === at) restarted = fell();
        return answer;
      },
    },
  });
  return { wrapDeps, restarted: () => restarted };
}

const kills = delaysMs.flatMap((delayMs) => (['pull', 'acknowledge'] as const).map((step) => ({ step, delayMs })));

test.each(kills)('nats-server killed $delayMs ms after a $step', { timeout: 90_000 }, async ({ step, delayMs }) => {
  const server = await ownNats();
  const nats = await connectTestNats({ servers: server.url, maxReconnectAttempts: -1 });
  const manager = await nats.jetstreamManager();
  const [place, stream] = [await newPlace(), await addStream(manager)];
  const content = await fillWithBad(nats, stream, 200);
  const kill = killAfter(server, step, 7, delayMs);
  const worker = await startLocalWorker(bench, place, { env: { NATS_URL: server.url }, wrapDeps: kill.wrapDeps });
  const plan = { batch_size: 10, end_sequence: 200 };
  const run = await startRun(bench.client, place, requestOf(stream, plan, { max_record_bytes: recordBytesMax }));
  const report = await run.result();
  expect(kill.restarted()).toBeDefined();
  await kill.restarted();
  await worker.stop();
  await expectAccounted(manager, stream, { content, directory: join(place.dataRoot, stream.name), report });
});

test('Temporal killed and restarted with its database: the run goes on', { timeout: 120_000 }, async () => {
  const temporal = await startTemporal();
  atFileEnd(() => temporal.stop());
  const connection = await Connection.connect({ address: temporal.address });
  atFileEnd(() => connection.close());
  const client = new Client({ connection });
  const [place, stream] = [await newPlace(), await addStream(bench.manager)];
  const content = await fillWithBad(bench.nats, stream, 200);
  const worker = await startLocalWorker(bench, place, { temporal: temporal.address });
  const plan = { batch_size: 10, end_sequence: 200, rate_limit_per_second: 50 };
  const request = requestOf(stream, plan, { max_record_bytes: recordBytesMax });
  const run = await startRun(client, place, request);
  await until(client, run.workflowId, (progress) => progress.counts.written >= 20);
  await temporal.kill();
  await sleep(1_000);
  await temporal.restart();
  const report = await run.result();
  await worker.stop();
  await expectAccounted(bench.manager, stream, { content, directory: join(place.dataRoot, stream.name), report });
});

test.each(['Temporal', 'NATS'])(
  'SIGTERM while %s is gone: the worker ends all the same',
  { timeout: 120_000 },
  async (gone) => {
    const temporal = await startTemporal();
    atFileEnd(() => temporal.stop());
    const nats = await ownNats();
    const worker = await startWorker({ TEMPORAL_ADDRESS: temporal.address, NATS_URL: nats.url });
    await (gone === 'NATS' ? nats : temporal).kill();
    expect(await worker.stop()).toBe(0);
  },
);

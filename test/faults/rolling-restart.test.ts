import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { replayHandle, startReplay } from '../../client/replays.ts';
import { locateTemporal } from '../../scripts/servers/locate.ts';
import { runProgram } from '../../scripts/servers/run-program.ts';
import { newPlace, openBench, startLocalWorker, type Bench } from '../support/fault-bench.ts';
import { tempDir } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll } from '../support/streams.ts';
import { startWorker } from '../support/worker.ts';

/** A deploy under running plans. */

const plans = 10;
const records = 1_000;

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
}, 120_000);

async function filled() {
  const stream = await addStream(bench.manager);
  await publishAll(bench.nats, mixedMessages(stream.prefix, records));
  return stream;
}

function requestFor(stream: Awaited<ReturnType<typeof filled>>, directory: string) {
  const replay = {
    stream: stream.name,
    subject_filter: `${stream.prefix}.>`,
    durable_consumer: directory,
    start_sequence: 1,
    end_sequence: records,
    max_messages: records,
    batch_size: 50,
    rate_limit_per_second: 50,
    dry_run: false,
  };
  return {
    plan: { replay },
    target: { sink: { type: 'file', directory }, dead_letter: { subject: stream.deadLetterSubject } },
  };
}

async function expectWhole(directory: string): Promise<void> {
  const sequences = (await readRecords(directory)).map(({ sequence }) => sequence);
  expect(sequences).toEqual(Array.from({ length: records }, (_, i) => i + 1));
}

test('two workers restarted one after the other during ten plans: no plan fails, nothing is lost or doubled', async () => {
  const { client } = bench;
  const folder = await tempDir();
  const roots = { REPLAY_DATA_ROOT: join(folder, 'data'), REPLAY_REPORT_ROOT: join(folder, 'reports') };
  const before = [await startWorker(roots), await startWorker(roots)];
  const stream = await filled();
  const directories = Array.from({ length: plans }, () => uniqueName('rolling'));
  const handles = await Promise.all(directories.map((directory) => startReplay(client, requestFor(stream, directory))));
  const pulled = async (id: string) => (await replayHandle(client, id).progress()).counts.pulled;
  for (const { id } of handles) await expect.poll(() => pulled(id), { timeout: 120_000 }).toBeGreaterThan(0);

  for (const worker of before) {
    expect(await worker.stop()).toBe(0);
    await startWorker(roots);
  }

  for (const { id } of handles) {
    const { open } = await replayHandle(client, id).facts();
    if (open)
      await replayHandle(client, id)
        .setRate(null)
        .catch(() => undefined);
  }
  for (const [index, handle] of handles.entries()) {
    const { state, report } = await handle.result();
    expect({ state, acked: report?.counts.acked }, handle.id).toEqual({ state: 'completed', acked: report?.counts.pulled });
    await expectWhole(join(roots.REPLAY_DATA_ROOT, directories[index]!));
  }
}, 600_000);

test('a plan goes on under the next version once that is the current one', async () => {
  const { client } = bench;
  const place = await newPlace();
  const stream = await filled();
  const directory = uniqueName('versioned');
  const buildIds = [uniqueName('build'), uniqueName('build')] as const;
  const program = await locateTemporal(process.env, () => undefined);
  const setCurrent = async (buildId: string): Promise<void> => {
    const words = ['worker', 'deployment', 'set-current-version', '--deployment-name', 'durable-replay', '--build-id', buildId];
    const set = async () => (await runProgram(program, [...words, '--yes', '--address', temporalAddress()], 30_000)).status;
    // The server hears of a version from its first poll.
    await expect.poll(set, { timeout: 60_000, interval: 500 }).toBe(0);
  };
  const first = await startLocalWorker(bench, place, { env: { REPLAY_BUILD_ID: buildIds[0] } });
  await setCurrent(buildIds[0]);
  const workflowId = uniqueName('versioned');
  const handle = await client.workflow.start('replayPlan', {
    taskQueue: place.taskQueue,
    workflowId,
    workflowTaskTimeout: '5s',
    args: [requestFor(stream, directory)],
  });
  const replay = replayHandle(client, workflowId);
  await expect.poll(async () => (await replay.progress()).counts.pulled, { timeout: 60_000 }).toBeGreaterThan(0);
  await replay.pause();
  const second = await startLocalWorker(bench, place, { env: { REPLAY_BUILD_ID: buildIds[1] } });
  await setCurrent(buildIds[1]);
  await first.stop();
  await replay.resume();
  await replay.setRate(null);
  expect(await handle.result()).toMatchObject({ state: 'completed' });
  await expectWhole(join(place.dataRoot, directory));
  await second.stop();
}, 600_000);

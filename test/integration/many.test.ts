import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { atFileEnd } from '../support/file-end.ts';
import { requestOf } from '../support/request.ts';
import { readRecords } from '../support/records.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll } from '../support/streams.ts';
import { startWorker } from '../support/worker.ts';

const long = process.env['REPLAY_TEST_LONG'] === '1';
const plans = long ? 50 : 12;
const records = 2_000;

/** Nobody starves. Measured by `npm run test:long`: the slowest of 50 equal plans takes at most twice the median. */
const slowestMax = 2;

test(`${plans} plans at once on two workers: each of them exact`, { timeout: long ? 900_000 : 180_000 }, async () => {
  const nats = await connectTestNats();
  const stream = await addStream(await nats.jetstreamManager());
  await publishAll(nats, mixedMessages(stream.prefix, records));
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  const { workflow } = new Client({ connection });
  const first = await startWorker();
  await startWorker({ REPLAY_DATA_ROOT: first.dataRoot, REPLAY_REPORT_ROOT: first.reportRoot });
  const directories = Array.from({ length: plans }, () => uniqueName('many'));
  const reports = await Promise.all(
    directories.map(async (directory) => {
      const request = requestOf(stream, { batch_size: 100, end_sequence: records }, { directory });
      const options = { taskQueue: 'durable-replay', workflowId: directory, args: [request] };
      return (await workflow.execute('replayPlan', options)) as Report;
    }),
  );
  if (long) expect(slowestOverMedian(reports)).toBeLessThanOrEqual(slowestMax);
  const all = Array.from({ length: records }, (_, i) => i + 1);
  for (const [index, { counts }] of reports.entries()) {
    const rows = await readRecords(join(first.dataRoot, directories[index]!));
    expect(rows.map(({ sequence }) => sequence)).toEqual(all);
    expect(counts.written + counts.duplicate).toBe(records);
    expect(counts.acked).toBe(counts.pulled);
  }
});

function slowestOverMedian(reports: readonly Report[]): number {
  const seconds = reports.map(({ timings }) => timings.total_seconds).toSorted((a, b) => a - b);
  return seconds.at(-1)! / seconds[Math.floor(seconds.length / 2)]!;
}

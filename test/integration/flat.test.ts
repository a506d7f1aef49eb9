import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { atFileEnd } from '../support/file-end.ts';
import { requestOf } from '../support/request.ts';
import { countLines } from '../support/records.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, publishAll, repeat } from '../support/streams.ts';
import { startWorker } from '../support/worker.ts';

/** However long a run is, it costs the same: the worker's memory, and what Temporal keeps of a batch. */
const long = process.env['REPLAY_TEST_LONG'] === '1';
const messages = long ? 1_000_000 : 30_000;
const batchRecords = 1_000;
const bytesPerBatchMax = 8_192;
const megabytesMax = 350;
/** Running from source holds the TypeScript loader and the bundler of the workflows, which a built worker does not have. */
const megabytesOfLoader = 150;

test(`${messages} messages: memory and history stay flat`, { timeout: long ? 1_800_000 : 120_000 }, async () => {
  const nats = await connectTestNats();
  const stream = await addStream(await nats.jetstreamManager());
  const body = Buffer.alloc(288, 'x');
  await publishAll(
    nats,
    repeat(messages, (i) => ({ subject: `${stream.prefix}.${i % 10}`, body })),
  );
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  const { workflow } = new Client({ connection });
  const worker = await startWorker();
  const workflowId = uniqueName('flat');
  const plan = { batch_size: batchRecords, end_sequence: messages };
  const options = { taskQueue: 'durable-replay', workflowId, args: [requestOf(stream, plan)] };
  const report = (await workflow.execute('replayPlan', options)) as Report;

  expect(report.counts).toMatchObject({ pulled: messages, written: messages, acked: messages, duplicate: 0 });
  expect(await countLines(join(worker.dataRoot, stream.name))).toBe(messages);
  const { raw } = await workflow.getHandle(workflowId).describe();
  // Of the last link alone, whose share of the batches is not known: the bound for all of them holds for it all the more.
  expect(Number(raw.workflowExecutionInfo?.historySizeBytes)).toBeLessThan((messages / batchRecords) * bytesPerBatchMax);
  expect(await peakMegabytes(worker.pid)).toBeLessThan(megabytesMax + megabytesOfLoader);
});

/** 0 where the system does not tell. */
async function peakMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
}

import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { beforeAll, describe, expect, test } from 'vitest';
import { reportMarkdown } from '../../core/report-markdown.ts';
import { exitOfReport } from '../../client/exit.ts';
import { deadLetters, expectAccounted, fillWithBad, recordBytesMax } from '../support/accounts.ts';
import { newPlace, openBench, startLocalWorker, startRun, until, type Bench } from '../support/fault-bench.ts';
import { requestOf } from '../support/request.ts';
import { readRecords } from '../support/records.ts';
import { addStream } from '../support/streams.ts';

/** What an operator may decide about refused records that block the plan: update `decide`. */

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});

const records = 40;

/** Two of ten records are refused; with the budget of one, the first batch of ten blocks. */
async function blockedByRecords(options: { readonly deadLetter: boolean; readonly maxRejects?: number }) {
  const [place, stream] = [await newPlace(), await addStream(bench.manager)];
  const content = await fillWithBad(bench.nats, stream, records);
  const plan = { batch_size: 10, end_sequence: records, max_rejects: options.maxRejects ?? 1 };
  const { plan: wrapped, target } = requestOf(stream, plan, { max_record_bytes: recordBytesMax });
  const request = { plan: wrapped, target: options.deadLetter ? target : { ...(target as object), dead_letter: undefined } };
  const worker = await startLocalWorker(bench, place);
  const run = await startRun(bench.client, place, request);
  const directory = join(place.dataRoot, stream.name);
  const blockedAt = async (cursor: number, code: string): Promise<void> => {
    const { problem } = await until(bench.client, run.workflowId, (at) => at.state === 'blocked' && at.cursor === cursor);
    expect(problem!.code).toBe(code);
  };
  const decide = (decision: string) => run.executeUpdate('decide', { args: [{ decision }] });
  return { stream, content, worker, run, directory, blockedAt, decide };
}

/** What Temporal's UI shows of a run. */
async function currentDetails(run: WorkflowHandle): Promise<string> {
  const { currentDetails: shown } = await run.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
  return shown ?? '';
}

describe.concurrent('decide', { timeout: 300_000 }, () => {
  test('dead-letter settles the records of this batch, and the next one blocks again', async () => {
    const at = await blockedByRecords({ deadLetter: true });
    for (const cursor of [1, 11, 21, 31]) {
      await at.blockedAt(cursor, 'reject_budget');
      expect((await deadLetters(bench.manager, at.stream)).length).toBe(((cursor - 1) / 10) * 2);
      expect(await at.decide('dead-letter')).toEqual({ decision: 'dead-letter' });
    }
    const report = await at.run.result();
    await at.worker.stop();
    await expectAccounted(bench.manager, at.stream, { ...at, report });
  });

  test('skip leaves them out: acknowledged, listed, counted as rejected and not as dead-lettered, exit status 3', async () => {
    const at = await blockedByRecords({ deadLetter: false });
    await at.blockedAt(1, 'dead_letter_not_configured');
    await expect(at.decide('dead-letter')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('names no dead-letter subject') },
    });
    await expect(at.decide('nonsense')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('expected dead-letter') },
    });
    for (const cursor of [1, 11, 21, 31]) {
      await at.blockedAt(cursor, 'dead_letter_not_configured');
      await at.decide('skip');
    }
    const report = await at.run.result();
    await at.worker.stop();
    expect(report.counts).toMatchObject({ pulled: records, rejected: 8, dead_lettered: 0, acked: records });
    expect(report.counts.written + report.counts.duplicate).toBe(records - 8);
    expect(report.rejects.map(({ sequence, decision }) => [sequence, decision])).toEqual(
      at.content.bad.map((sequence) => [sequence, 'skip']),
    );
    expect(report.warnings.filter((warning) => warning.startsWith('Skipped by an operator'))).toHaveLength(4);
    expect(reportMarkdown(report)).toContain('too_large (skipped)');
    expect(exitOfReport(report)).toBe(3);
    const rows = (await readRecords(at.directory)).map(({ sequence }) => sequence);
    expect(rows).toHaveLength(records - 8);
    expect(await deadLetters(bench.manager, at.stream)).toEqual([]);
  });

  test('retry writes the batch again and grants nothing; resume grants one more budget', async () => {
    const at = await blockedByRecords({ deadLetter: true });
    await at.blockedAt(1, 'reject_budget');
    await expect
      .poll(() => currentDetails(at.run), { timeout: 60_000 })
      .toMatch(/blocked.*More records were refused.*since 20.*"decision":"skip"/s);
    await at.decide('retry');
    await at.blockedAt(1, 'reject_budget');
    await at.run.signal('resume');
    await at.blockedAt(11, 'reject_budget');
    expect(await deadLetters(bench.manager, at.stream)).toEqual([4, 8]);
    await at.run.cancel();
    await expect(at.run.result()).rejects.toThrow();
    await at.worker.stop();
  });

  test('while no record blocks the plan there is nothing to decide', async () => {
    const at = await blockedByRecords({ deadLetter: true, maxRejects: 100 });
    await at.run.signal('pause');
    await expect(at.decide('skip')).rejects.toThrow();
    await at.run.signal('resume');
    const report = await at.run.result();
    await at.worker.stop();
    await expectAccounted(bench.manager, at.stream, { ...at, report });
  });
});

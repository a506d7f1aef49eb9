import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JetStreamManager, NatsConnection } from 'nats';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Progress } from '../../core/progress.ts';
import type { Report } from '../../core/report.ts';
import { locateTemporal } from '../../scripts/servers/locate.ts';
import { runProgram } from '../../scripts/servers/run-program.ts';
import { tempDir } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll } from '../support/streams.ts';
import { startWorker, type TestWorker } from '../support/worker.ts';

/** Everything with Temporal's own command, as docs/temporal.md says. */

const commandMsMax = 30_000;
let program: string;
let folder: string;
let nats: NatsConnection;
let manager: JetStreamManager;
let worker: TestWorker;

beforeAll(async () => {
  program = await locateTemporal(process.env, () => undefined);
  folder = await tempDir();
  nats = await connectTestNats();
  manager = await nats.jetstreamManager();
  worker = await startWorker();
}, 120_000);

async function temporal(
  ...args: string[]
): Promise<{ readonly status: number | null; readonly output: string; readonly errors: string }> {
  const { status, stdout, stderr } = await runProgram(program, [...args, '--address', temporalAddress()], commandMsMax);
  return { status, output: stdout, errors: stderr };
}

async function startRun(
  plan: Record<string, unknown>,
  records: number,
): Promise<{ readonly id: string; readonly stream: string }> {
  const stream = await addStream(manager);
  await publishAll(nats, mixedMessages(stream.prefix, records));
  const request = {
    plan: {
      replay: {
        stream: stream.name,
        subject_filter: `${stream.prefix}.>`,
        durable_consumer: 'by-command',
        start_sequence: 1,
        end_sequence: records,
        max_messages: 100_000,
        dry_run: false,
        ...plan,
      },
    },
    target: { sink: { type: 'file', directory: stream.name }, dead_letter: { subject: stream.deadLetterSubject } },
  };
  const file = join(folder, `${stream.name}.json`);
  await writeFile(file, JSON.stringify(request));
  const id = uniqueName('by-command');
  const started = await temporal(
    ...['workflow', 'start', '--type', 'replayPlan', '--task-queue', 'durable-replay', '--workflow-id', id],
    ...['--input-file', file, '--fail-existing', '--task-timeout', '5s'],
  );
  expect(started).toMatchObject({ status: 0 });
  return { id, stream: stream.name };
}

async function query<T>(id: string, type: 'progress' | 'report'): Promise<T> {
  const { output } = await temporal('workflow', 'query', '-w', id, '--type', type, '-o', 'json');
  return (JSON.parse(output) as { queryResult: T[] }).queryResult[0]!;
}

async function until(id: string, wanted: (progress: Progress) => boolean): Promise<Progress> {
  for (const deadline = Date.now() + commandMsMax; ;) {
    const progress = await query<Progress>(id, 'progress');
    if (wanted(progress)) return progress;
    if (Date.now() > deadline) throw new Error(`not reached; last: ${JSON.stringify(progress)}`);
  }
}

describe('with the temporal command', () => {
  test('a run is started, queried, paused, resumed, paced, and its report read', async () => {
    const { id, stream } = await startRun({ batch_size: 20, rate_limit_per_second: 40 }, 400);
    expect((await temporal('workflow', 'signal', '-w', id, '--name', 'pause')).status).toBe(0);
    const paused = await until(id, (progress) => progress.state === 'paused');
    expect(paused.counts.written).toBeLessThan(400);
    const refused = await temporal(
      'workflow',
      'update',
      'execute',
      '-w',
      id,
      '--name',
      'setRate',
      '--input',
      '{"perSecond":-1}',
    );
    expect(refused.status).toBe(1);
    expect(refused.errors).toContain('perSecond: expected a whole number');
    expect(
      (await temporal('workflow', 'update', 'execute', '-w', id, '--name', 'setRate', '--input', '{"perSecond":null}')).status,
    ).toBe(0);
    expect((await temporal('workflow', 'signal', '-w', id, '--name', 'resume')).status).toBe(0);
    const result = await temporal('workflow', 'result', '-w', id);
    expect(result.status).toBe(0);
    const report = await query<Report>(id, 'report');
    expect(report).toMatchObject({ state: 'completed', counts: { written: 400, acked: 400 } });
    expect(report.timings.paused_seconds).toBeGreaterThan(0);
    expect(await readRecords(join(worker.dataRoot, stream))).toHaveLength(400);
  });

  test('handlers explain themselves, and the state can be searched for', async () => {
    const { id } = await startRun({ batch_size: 20, rate_limit_per_second: 40 }, 400);
    await until(id, (progress) => progress.counts.written > 0);
    const metadata = (await temporal('workflow', 'metadata', '-w', id)).output;
    for (const name of ['pause', 'resume', 'cancel', 'setRate', 'progress', 'report']) expect(metadata).toContain(name);
    expect(metadata).toContain('{"perSecond":500}');
    expect(metadata).toContain('acknowledged');
    const list = async (state: string): Promise<string> =>
      (
        await temporal(
          'workflow',
          'list',
          '--query',
          `WorkflowType="replayPlan" AND ReplayState="${state}" AND WorkflowId="${id}"`,
        )
      ).output;
    await expect.poll(() => list('running'), { timeout: 10_000 }).toContain(id);
    expect((await temporal('workflow', 'cancel', '-w', id)).status).toBe(0);
    await expect.poll(() => list('canceled'), { timeout: 10_000 }).toContain(id);
    expect(await query<Report>(id, 'report')).toMatchObject({ state: 'canceled', stop_reason: 'canceled' });
  });

  test('a bad plan fails at once, with the whole list in the message', async () => {
    const { id } = await startRun({ start_sequence: 0, batch_size: 100_000 }, 5);
    const result = await temporal('workflow', 'result', '-w', id);
    expect(result.status).toBe(1);
    const shown = result.output + result.errors;
    expect(shown).toContain('replay.start_sequence: ');
    expect(shown).toContain('replay.batch_size: ');
  });

  test('the page that says so shows these commands', async () => {
    const page = await readFile(new URL('../../docs/temporal.md', import.meta.url), 'utf8');
    for (const command of [
      'temporal workflow start --type replayPlan --task-queue durable-replay',
      'temporal workflow query -w ID --type progress',
      'temporal workflow signal -w ID --name pause',
      'temporal workflow update execute -w ID --name setRate --input',
      'temporal workflow cancel -w ID',
    ]) {
      expect(page).toContain(command);
    }
  });
});

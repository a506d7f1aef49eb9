import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import type { JetStreamManager, NatsConnection } from 'nats';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { replayHandle, startReplay } from '../../client/replays.ts';
import { deleteSchedule, resumeSchedule, triggerSchedule } from '../../client/schedules.ts';
import type { ReplayRequest } from '../../core/steps.ts';
import { timeNanos } from '../../core/time.ts';
import { locateTemporal } from '../../scripts/servers/locate.ts';
import { runProgram } from '../../scripts/servers/run-program.ts';
import { atFileEnd, tempDir } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll, type TestStream } from '../support/streams.ts';
import { startWorker, type TestWorker } from '../support/worker.ts';
import { command } from './cli/command-line.ts';

// Each command is a process of its own: seconds on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

/** Recurring replays, with `replay-stream schedule` and with Temporal's own command. */

let nats: NatsConnection;
let manager: JetStreamManager;
let client: Client;
let worker: TestWorker;
let folder: string;

beforeAll(async () => {
  nats = await connectTestNats();
  manager = await nats.jetstreamManager();
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  client = new Client({ connection });
  worker = await startWorker();
  folder = await tempDir();
});

interface Recurring {
  readonly name: string;
  readonly stream: TestStream;
  readonly durable: string;
  readonly request: ReplayRequest;
  readonly plan: string;
  readonly target: string;
}

async function recurring(fields: object = {}): Promise<Recurring> {
  const stream = await addStream(manager);
  const durable = uniqueName('recurring');
  const plan = {
    replay: {
      stream: stream.name,
      subject_filter: `${stream.prefix}.>`,
      durable_consumer: durable,
      window: 'since_last_success',
      max_messages: 1_000,
      batch_size: 10,
      stop_after_idle_seconds: 1,
      dry_run: false,
      ...fields,
    },
  };
  const target = { sink: { type: 'file', directory: stream.name }, dead_letter: { subject: stream.deadLetterSubject } };
  const files = { plan: join(folder, `${durable}-plan.json`), target: join(folder, `${durable}-target.json`) };
  await writeFile(files.plan, JSON.stringify(plan));
  await writeFile(files.target, JSON.stringify(target));
  const name = uniqueName('schedule');
  atFileEnd(async () => {
    await client.schedule
      .getHandle(name)
      .delete()
      .catch(() => undefined);
  });
  return { name, stream, durable, request: { plan, target }, ...files };
}

/** Stores them, and waits until a run that is due now would end its window after them: those times are whole seconds. */
async function publish({ stream }: Recurring, count: number): Promise<void> {
  await publishAll(nats, mixedMessages(stream.prefix, count));
  const stored = Date.now();
  while (Math.floor(Date.now() / 1_000) <= Math.floor(stored / 1_000) + 1) await sleep(50);
}

async function create(one: Recurring, ...flags: string[]): Promise<void> {
  const created = await command(['schedule', 'create', one.name, one.plan, one.target, '--every', '30d', ...flags]);
  expect(created).toMatchObject({ status: 0 });
}

const trigger = ({ name }: Recurring): Promise<string> => triggerSchedule(client, name);

async function untilRunning(id: string): Promise<void> {
  const running = async (): Promise<boolean> => (await replayHandle(client, id).progress()).counts.pulled > 0;
  await expect.poll(running, { timeout: 30_000 }).toBe(true);
}

describe('replay-stream schedule', () => {
  test('each run goes on where the last successful one stopped', async () => {
    const one = await recurring();
    await create(one, '--note', 'nightly', '--paused');
    await publish(one, 30);
    const first = await trigger(one);
    expect(await replayHandle(client, first).result()).toMatchObject({
      state: 'completed',
      report: { plan: { window: 'since_last_success' }, range: { first: 1, last: 30 }, counts: { written: 30 } },
    });
    const triggered = await command(['schedule', 'trigger', one.name, '--json']);
    const nothingNew = (JSON.parse(triggered.stdout) as { workflow_id: string }).workflow_id;
    expect(await replayHandle(client, nothingNew).result()).toMatchObject({
      state: 'completed',
      report: { counts: { pulled: 0 } },
    });
    await publish(one, 12);
    const third = await trigger(one);
    expect(await replayHandle(client, third).result()).toMatchObject({
      state: 'completed',
      report: { range: { first: 31, last: 42 }, counts: { written: 12, duplicate: 0 } },
    });
    const listed = await command(['schedule', 'list']);
    const line = listed.stdout.split('\n').find((text) => text.startsWith(one.name));
    expect(line).toMatch(/paused +completed, completed, completed +replay:.* +nightly$/);
    expect((await command(['status', one.stream.name, one.durable])).stdout).toContain(`${third}: completed`);
    expect(await readRecords(join(worker.dataRoot, one.stream.name))).toHaveLength(42);
  });

  test('a canceled run is taken over by the next one: nothing is skipped', async () => {
    const one = await recurring({ batch_size: 10, rate_limit_per_second: 10 });
    await create(one);
    await publish(one, 300);
    const first = replayHandle(client, await trigger(one));
    await untilRunning(first.id);
    await first.pause();
    const again = await command(['schedule', 'trigger', one.name]);
    expect(again).toMatchObject({ status: 2 });
    expect(again.stderr).toContain(`The last run of ${one.name} goes on`);
    await first.cancel();
    expect(await first.result()).toMatchObject({ state: 'canceled' });
    const second = replayHandle(client, await trigger(one));
    await untilRunning(second.id);
    await second.setRate(null);
    const { report } = await second.result();
    expect(report).toMatchObject({ state: 'completed', range: { first: 1, last: 300 } });
    expect(report!.counts.written + report!.counts.duplicate).toBe(300);
    const sequences = (await readRecords(join(worker.dataRoot, one.stream.name))).map(({ sequence }) => sequence);
    expect(sequences).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
  });

  test('a scheduled and a manual run keep off each other', async () => {
    const one = await recurring({ rate_limit_per_second: 1, batch_size: 1 });
    await create(one);
    await publish(one, 300);
    const manual = await startReplay(client, one.request);
    await untilRunning(manual.id);
    const scheduled = await trigger(one);
    const refused = await replayHandle(client, scheduled).result();
    expect(refused).toMatchObject({ state: 'refused' });
    expect(refused.message).toContain(`belongs to the running replay "${manual.id}"`);
    await manual.cancel();
    await manual.result();
    const next = await trigger(one);
    await untilRunning(next);
    const late = await (await startReplay(client, one.request)).result();
    expect(late).toMatchObject({ state: 'refused' });
    expect(late.message).toContain(`belongs to the running replay "${next}"`);
    await replayHandle(client, next).cancel();
    expect(await replayHandle(client, next).result()).toMatchObject({ state: 'canceled' });
  });

  test('pause, resume and delete; names that are taken or unknown', async () => {
    const one = await recurring({ window: '24h' });
    await create(one, '--jitter', '5m', '--catch-up', '2d', '--pause-on-failure');
    const handle = client.schedule.getHandle(one.name);
    expect(await handle.describe()).toMatchObject({
      spec: { intervals: [{ every: 30 * 86_400_000 }], jitter: 300_000 },
      policies: { overlap: 'SKIP', catchupWindow: 2 * 86_400_000, pauseOnFailure: true },
    });
    const taken = await command(['schedule', 'create', one.name, one.plan, one.target, '--cron', '0 3 * * *']);
    expect(taken).toMatchObject({ status: 2 });
    const nowhere = [
      'schedule',
      'create',
      `${one.name}-2`,
      one.plan,
      one.target,
      '--cron',
      '0 3 * * *',
      '--timezone',
      'Mars/X',
    ];
    const untimely = await command(nowhere);
    expect(untimely).toMatchObject({ status: 2 });
    expect(untimely.stderr).toContain('Temporal cannot read when it is due: unknown time zone Mars/X');
    expect(await command(['schedule', 'pause', one.name, '--reason', 'holidays'])).toMatchObject({ status: 0 });
    expect((await handle.describe()).state).toMatchObject({ paused: true, note: 'holidays' });
    await resumeSchedule(client, one.name, null);
    expect((await handle.describe()).state.paused).toBe(false);
    await deleteSchedule(client, one.name);
    const unknown = await command(['schedule', 'pause', one.name]);
    expect(unknown).toMatchObject({ status: 1 });
    expect(unknown.stderr).toContain(`Temporal knows no Schedule ${one.name}`);
    const wrong = await recurring({ start_sequence: 1 });
    const refused = await command(['schedule', 'create', wrong.name, wrong.plan, wrong.target, '--every', '1h']);
    expect(refused).toMatchObject({ status: 2 });
    expect(refused.stderr).toContain('replay.start_sequence: stands together with window');
  });
});

test("with Temporal's own command, as the page says", async () => {
  const one = await recurring({ window: '1h' });
  const program = await locateTemporal(process.env, () => undefined);
  const temporal = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await runProgram(program, [...args, '--address', temporalAddress()], 30_000);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    return stdout;
  };
  const file = join(folder, `${one.durable}-request.json`);
  await writeFile(file, JSON.stringify(one.request));
  await publish(one, 20);
  const id = `replay:${one.stream.name}:${one.durable}`;
  await temporal(
    ...['schedule', 'create', '--schedule-id', one.name, '--cron', '30 3 * * *', '--workflow-id', id],
    ...['--type', 'replayPlan', '--task-queue', 'durable-replay', '--input-file', file, '--task-timeout', '5s'],
    ...['--overlap-policy', 'Skip', '--catchup-window', '24h', '--jitter', '5m', '--pause-on-failure'],
  );
  await temporal('schedule', 'trigger', '--schedule-id', one.name);
  const started = async (): Promise<string | undefined> =>
    (await client.schedule.getHandle(one.name).describe()).info.recentActions[0]?.action.workflow.workflowId;
  await expect.poll(started, { timeout: 30_000 }).toMatch(new RegExp(`^${id}-`));
  const { state, report } = await replayHandle(client, (await started())!).result();
  expect({ state, report }).toMatchObject({ state: 'completed', report: { counts: { written: 20 } } });
  // What the window means is fixed by the time for which the run was meant.
  const due = timeNanos(/-(\d{4}-.*Z)$/.exec((await started())!)![1]!);
  const stored = await manager.streams.getMessage(one.stream.name, { seq: report!.range.last! });
  expect(timeNanos(stored.time.toISOString())).toBeLessThan(due);
  const described = await temporal('schedule', 'describe', '--schedule-id', one.name);
  expect(described).toContain('replayPlan');
  await temporal('schedule', 'toggle', '--schedule-id', one.name, '--pause', '--reason', 'holidays');
  await temporal('schedule', 'delete', '--schedule-id', one.name);
});

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { JetStreamManager, NatsConnection } from 'nats';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { replayHandle, startReplay, type ReplayHandle } from '../../client/replays.ts';
import type { AwaitedApproval } from '../../core/approval.ts';
import type { Progress } from '../../core/progress.ts';
import { atFileEnd, tempDir } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll, type TestStream } from '../support/streams.ts';
import { startWorker, type TestWorker } from '../support/worker.ts';
import { command } from './cli/command-line.ts';

// Each command is a process of its own: seconds on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

/** Rehearse, approve, execute. */

let nats: NatsConnection;
let manager: JetStreamManager;
let client: Client;
let worker: TestWorker;
let targets: string;

beforeAll(async () => {
  nats = await connectTestNats();
  manager = await nats.jetstreamManager();
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  client = new Client({ connection });
  targets = await tempDir();
  worker = await startWorker({ REPLAY_TARGETS: targets });
  await mkdir(worker.dataRoot, { recursive: true });
});

async function filled(count: number): Promise<TestStream> {
  const stream = await addStream(manager);
  await publishAll(nats, mixedMessages(stream.prefix, count));
  return stream;
}

async function start(stream: TestStream, plan: object = {}, target?: string): Promise<ReplayHandle> {
  const replay = {
    stream: stream.name,
    subject_filter: `${stream.prefix}.>`,
    durable_consumer: uniqueName('approved'),
    start_sequence: 1,
    end_sequence: 50,
    max_messages: 1_000,
    dry_run: false,
    require_approval: true,
    ...plan,
  };
  const file = { sink: { type: 'file', directory: stream.name }, dead_letter: { subject: stream.deadLetterSubject } };
  return await startReplay(client, { plan: { replay }, target: target ?? file });
}

async function until(handle: ReplayHandle, wanted: (progress: Progress) => boolean): Promise<Progress> {
  let last: Progress | undefined;
  await expect.poll(async () => wanted((last = await handle.progress())), { timeout: 30_000 }).toBe(true);
  return last!;
}

async function awaited(handle: ReplayHandle): Promise<AwaitedApproval> {
  return (await until(handle, ({ state, approval }) => state === 'awaiting_approval' && approval !== null)).approval!;
}

/** What is wrong with an approval that was not taken. */
async function refusal(approving: Promise<void>): Promise<string> {
  return await approving.then(
    () => 'it was taken',
    (error: unknown) => (error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)),
  );
}

describe('a plan that requires approval', () => {
  test('shows what it would do, creates nothing, and runs once it is approved', async () => {
    const stream = await filled(50);
    const handle = await start(stream);
    const { fingerprint, messages, preflight } = await awaited(handle);
    expect({ messages, preflight }).toMatchObject({ messages: 50, preflight: [{ severity: 'info' }] });
    expect((await manager.streams.info(stream.name)).state.consumer_count).toBe(0);
    expect(await readdir(worker.dataRoot)).not.toContain(stream.name);
    await expect.poll(async () => (await handle.facts()).state, { timeout: 30_000 }).toBe('awaiting_approval');
    expect(await handle.report()).toMatchObject({ state: 'awaiting_approval', counts: { pulled: 0 }, range: { count: 50 } });

    expect(await refusal(handle.approve({ by: '', reason: 'why', fingerprint }))).toContain('by: expected who approves');
    expect(await refusal(handle.approve({ by: 'ann', reason: 'why', fingerprint: 'another' }))).toContain(
      'fingerprint: is not',
    );
    await handle.approve({ by: 'ann', reason: 'INC-42', fingerprint });
    const { state, report } = await handle.result();
    expect({ state, report }).toMatchObject({
      state: 'completed',
      report: { approval: { by: 'ann', reason: 'INC-42', fingerprint }, counts: { written: 50, acked: 50 } },
    });
    expect(await readRecords(join(worker.dataRoot, stream.name))).toHaveLength(50);
  });

  test('an approval of what has changed since is refused, and what is there now can be approved', async () => {
    const stream = await filled(50);
    const name = uniqueName('target');
    const aim = async (directory: string): Promise<void> => {
      const target = { sink: { type: 'file', directory }, dead_letter: { subject: stream.deadLetterSubject } };
      await writeFile(join(targets, `${name}.json`), JSON.stringify(target));
    };
    await aim(`${stream.name}-a`);
    const handle = await start(stream, {}, name);
    const first = await awaited(handle);
    await aim(`${stream.name}-b`);
    const drift = await refusal(handle.approve({ by: 'ann', reason: 'why', fingerprint: first.fingerprint }));
    expect(drift).toContain('has changed since the rehearsal');
    const second = await awaited(handle);
    expect(second.fingerprint).not.toBe(first.fingerprint);
    await handle.approve({ by: 'ann', reason: 'seen', fingerprint: second.fingerprint });
    expect(await handle.result()).toMatchObject({ state: 'completed' });
    expect(await readRecords(join(worker.dataRoot, `${stream.name}-b`))).toHaveLength(50);
    expect(await readdir(worker.dataRoot)).not.toContain(`${stream.name}-a`);
  });

  test('a recreated stream voids the approval; a stream that is gone is said', async () => {
    const stream = await filled(50);
    const handle = await start(stream);
    const first = await awaited(handle);
    const approval = { by: 'ann', reason: 'why', fingerprint: first.fingerprint };
    await manager.streams.delete(stream.name);
    expect(await refusal(handle.approve(approval))).toContain(`replay.stream: no stream "${stream.name}"`);
    await awaited(handle);
    await manager.streams.add({ name: stream.name, subjects: [`${stream.prefix}.>`], allow_direct: true });
    await publishAll(nats, mixedMessages(stream.prefix, 50));
    expect(await refusal(handle.approve(approval))).toContain('has changed since the rehearsal');
    expect((await awaited(handle)).fingerprint).not.toBe(first.fingerprint);
    await handle.cancel();
    expect(await handle.result()).toMatchObject({ state: 'canceled', report: { counts: { pulled: 0 } } });
    expect((await manager.streams.info(stream.name)).state.consumer_count).toBe(0);
  });

  test('ends as refused when nobody approves in time', async () => {
    const stream = await filled(50);
    const handle = await start(stream, { approval_timeout_seconds: 1 });
    const { state, exit, message } = await handle.result();
    expect({ state, exit }).toEqual({ state: 'refused', exit: 2 });
    expect(message).toContain('nobody approved this plan within 1 s; nothing was written');
    expect(await handle.facts()).toMatchObject({ open: false, state: 'refused' });
  });

  test('from the command line', async () => {
    const stream = await filled(50);
    const handle = await start(stream);
    const { fingerprint } = await awaited(handle);
    const unseen = await command(['approve', handle.id, '--reason', 'INC-42']);
    expect(unseen).toMatchObject({ status: 2 });
    expect(unseen.stderr).toContain('would replay 50 messages');
    expect(unseen.stderr).toContain(`--fingerprint ${fingerprint}`);
    const wrong = await command(['approve', handle.id, '--reason', 'INC-42', '--fingerprint', 'x']);
    expect(wrong).toMatchObject({ status: 2 });
    expect((await command(['status', handle.id])).stdout).toContain(`fingerprint ${fingerprint}`);
    const given = ['approve', handle.id, '--reason', 'INC-42', '--by', 'ann', '--fingerprint', fingerprint, '--json'];
    const taken = await command(given);
    expect(taken).toMatchObject({ status: 0 });
    expect(JSON.parse(taken.stdout)).toEqual({
      workflow_id: handle.id,
      approval: { by: 'ann', reason: 'INC-42', fingerprint },
    });
    expect(await replayHandle(client, handle.id).result()).toMatchObject({ state: 'completed' });
  });
});

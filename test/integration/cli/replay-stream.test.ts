import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { JetStreamManager, NatsConnection } from 'nats';
import { beforeAll, describe, expect, test } from 'vitest';
import { replayHandle } from '../../../client/replays.ts';
import type { Report } from '../../../core/report.ts';
import { tempDir, atFileEnd } from '../../support/file-end.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../../support/servers.ts';
import { addStream, mixedMessages, publishAll, type TestStream } from '../../support/streams.ts';
import { startWorker, type TestWorker } from '../../support/worker.ts';
import { command, startCommand, startProgram } from './command-line.ts';

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
  await mkdir(worker.dataRoot, { recursive: true });
  folder = await tempDir();
});

interface Files {
  readonly plan: string;
  readonly target: string;
  readonly durable: string;
  readonly id: string;
}

async function file(content: unknown): Promise<string> {
  const path = join(folder, `${uniqueName('f')}.json`);
  await writeFile(path, JSON.stringify(content));
  return path;
}

async function files(stream: TestStream, fields: object = {}, target: object = {}): Promise<Files> {
  const durable = uniqueName('cli');
  const replay = {
    stream: stream.name,
    subject_filter: `${stream.prefix}.>`,
    durable_consumer: durable,
    start_sequence: 1,
    end_sequence: 500,
    max_messages: 1_000,
    dry_run: false,
    ...fields,
  };
  return {
    plan: await file({ replay }),
    target: await file({
      sink: { type: 'file', directory: uniqueName('d'), require_json: true },
      dead_letter: { subject: stream.deadLetterSubject },
      ...target,
    }),
    durable,
    id: `replay:${stream.name}:${durable}`,
  };
}

/** Bodies that are not JSON among them: those are rejected. */
async function filled(count = 500): Promise<TestStream> {
  const stream = await addStream(manager);
  await publishAll(nats, mixedMessages(stream.prefix, count));
  return stream;
}

/** Goes on for a long time. */
const slow = { batch_size: 1, rate_limit_per_second: 1 };

async function stateOf(id: string): Promise<string> {
  return (await replayHandle(client, id).progress()).state;
}

async function cancelNow(id: string): Promise<void> {
  await replayHandle(client, id).cancel();
  expect(await replayHandle(client, id).result()).toMatchObject({ state: 'canceled', exit: 4 });
}

async function untilState(id: string, state: string): Promise<void> {
  await expect.poll(() => stateOf(id), { timeout: 30_000, interval: 200 }).toBe(state);
}

describe('one replay from the dry run to its report', () => {
  let stream: TestStream;
  let given: Files;
  beforeAll(async () => {
    stream = await filled();
    given = await files(stream);
  });

  test('a dry run says the count, and with --json nothing but the report', async () => {
    const text = await command([given.plan, given.target, '--dry-run']);
    expect(text).toMatchObject({ status: 0 });
    expect(text.stdout).toContain(`${given.durable}: rehearsed (dry_run)`);
    expect(text.stdout).toContain('500 messages');
    const json = await command([given.plan, given.target, '--dry-run', '--json']);
    expect(json.status).toBe(0);
    expect(JSON.parse(json.stdout)).toMatchObject({ state: 'rehearsed', range: { count: 500 } });
  });

  test('an execution with rejects ends with 3 and a report whose counts add up', async () => {
    const { status, stdout, stderr } = await command([given.plan, given.target, '--json']);
    expect({ status, stderr }).toMatchObject({ status: 3 });
    const { state, counts } = JSON.parse(stdout) as Report;
    expect(state).toBe('completed');
    expect(counts.pulled).toBe(500);
    expect(counts.rejected).toBeGreaterThan(0);
    expect(counts.written + counts.rejected).toBe(500);
    expect(counts.dead_lettered).toBe(counts.rejected);
    expect(stderr).toContain(`Replay ${given.id} started.`);
  });

  test('the same again, without what is rejected, ends with 0', async () => {
    const again = await files(stream, {}, { sink: { type: 'file', directory: uniqueName('d') } });
    expect(await command([again.plan, again.target])).toMatchObject({ status: 0 });
  });

  test('status, report and list know it', async () => {
    const json = await command(['status', given.id, '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      open: false,
      state: 'completed',
      progress: { state: 'completed', percent: 100 },
    });
    const byName = await command(['status', stream.name, given.durable]);
    expect(byName.stdout).toContain(`${given.id}: completed`);
    const report = await command(['report', given.id, '--json']);
    expect(JSON.parse(report.stdout)).toMatchObject({ state: 'completed', counts: { pulled: 500 } });
    expect((await command(['report', given.id, '--markdown'])).stdout).toContain('## Counts');
    await expect
      .poll(
        async () => {
          const { stdout } = await command(['list', '--state', 'completed', '--limit', '1000', '--json']);
          return (JSON.parse(stdout) as { replays: { workflow_id: string }[] }).replays.map((one) => one.workflow_id);
        },
        { timeout: 10_000 },
      )
      .toContain(given.id);
  });

  test('what is over cannot be canceled, paused or limited', async () => {
    for (const words of [
      ['cancel', given.id],
      ['rate', given.id, '5'],
    ]) {
      const { status, stderr } = await command(words);
      expect(status).toBe(1);
      expect(stderr).toContain(`${given.id} is over (completed)`);
    }
  });
});

describe('refusals', () => {
  test('bad files: every problem, status 2, and Temporal is not even asked', async () => {
    const plan = await file({ replay: { stream: 'a.b', start_sequence: 0 } });
    const target = await file({ sink: { type: 'none' } });
    const { status, stdout, stderr } = await command([plan, target, '--json'], { TEMPORAL_ADDRESS: '127.0.0.1:1' });
    expect(status).toBe(2);
    const refusal = JSON.parse(stdout) as { state: string; problems: { path: string }[] };
    expect(refusal.state).toBe('refused');
    for (const field of ['replay.stream', 'replay.start_sequence', 'replay.durable_consumer', 'sink.type']) {
      expect(stderr).toContain(`: ${field}: `);
      expect(refusal.problems.map(({ path }) => path)).toContain(field);
    }
  });

  test('what only the worker sees: status 2, the list, no report', async () => {
    const stream = await filled(10);
    const given = await files(stream, { start_sequence: 11, end_sequence: 20 });
    const { status, stdout, stderr } = await command([given.plan, given.target, '--json']);
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toEqual({
      state: 'refused',
      problems: [{ path: 'replay.start_sequence', message: '11 is past the end; the stream ends at 10' }],
    });
    expect(stderr).toContain('replay.start_sequence: 11 is past the end');
    expect((await command(['report', given.id])).stderr).toContain('was refused, so there is nothing to report');
  });

  test('a target name that the worker does not know', async () => {
    const given = await files(await filled(10), { end_sequence: 10 });
    const { status, stderr } = await command([given.plan, 'nowhere']);
    expect(status).toBe(2);
    expect(stderr).toContain('nowhere.json');
  });

  test('check finds the same without starting a replay', async () => {
    const plan = await file({ replay: {} });
    const good = await files(await filled(10), { end_sequence: 10 });
    const bad = await command(['check', plan, good.target, '--json']);
    expect(bad.status).toBe(2);
    expect(JSON.parse(bad.stdout)).toMatchObject({ ok: false, findings: null });
    const offline = await command(['check', good.plan, good.target], { TEMPORAL_ADDRESS: '127.0.0.1:1' });
    expect(offline).toMatchObject({ status: 0, stderr: '' });
    const connected = await command(['check', good.plan, good.target, '--connect', '--json']);
    const verdict = JSON.parse(connected.stdout) as { ok: boolean; findings: { severity: string }[] };
    expect(connected.status).toBe(verdict.ok ? 0 : 2);
    expect(verdict.ok).toBe(!verdict.findings.some(({ severity }) => severity === 'error'));
    expect((await command(['status', good.id])).status).toBe(1);
  });

  test('decide settles the refused records that block a plan', async () => {
    const given = await files(await filled(100), { end_sequence: 100, max_rejects: 0 });
    expect((await command([given.plan, given.target, '--detach'])).status).toBe(0);
    await untilState(given.id, 'blocked');
    expect((await command(['decide', given.id, 'burn'])).status).toBe(2);
    expect(await command(['decide', given.id, 'skip'])).toMatchObject({ status: 0 });
    const result = await replayHandle(client, given.id).result();
    expect(result).toMatchObject({ state: 'completed', exit: 3 });
    expect(result.report?.counts.dead_lettered).toBe(0);
    expect(result.report?.counts.rejected).toBeGreaterThan(0);
    const late = await command(['decide', given.id, 'skip']);
    expect(late.status).not.toBe(0);
  });

  test('an id that nobody knows', async () => {
    for (const verb of ['status', 'cancel']) {
      const { status, stderr } = await command([verb, 'replay:NO:such']);
      expect(status).toBe(1);
      expect(stderr).toContain('replay-stream list');
    }
  });

  test('a Temporal that is not there', async () => {
    const given = await files(await filled(10), { end_sequence: 10 });
    const { status, stdout, stderr } = await command([given.plan, given.target], { TEMPORAL_ADDRESS: '127.0.0.1:1' });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toContain('Temporal does not answer at 127.0.0.1:1');
  });
});

describe('control', () => {
  test('detach, pause, resume, rate, cancel', async () => {
    const given = await files(await filled(), slow);
    const detached = await command([given.plan, given.target, '--detach', '--json']);
    expect(detached.status).toBe(0);
    const { workflow_id, run_id } = JSON.parse(detached.stdout) as { workflow_id: string; run_id: string };
    expect(workflow_id).toBe(given.id);
    expect(run_id).not.toBe('');

    const twice = await command([given.plan, given.target]);
    expect(twice.status).toBe(2);
    expect(twice.stderr).toContain(`${given.id} is running already`);
    expect(twice.stderr).toContain(`replay-stream status ${given.id}`);

    await untilState(given.id, 'running');
    expect((await command(['pause', given.id, '--reason', 'a test'])).status).toBe(0);
    await untilState(given.id, 'paused');
    expect((await command(['rate', given.id, '7', '--json'])).stdout).toContain('"rate_limit_per_second": 7');
    expect((await command(['rate', given.id, 'off'])).stdout).toContain('no limit');
    await replayHandle(client, given.id).setRate(2);
    expect((await command(['resume', given.id])).status).toBe(0);
    await untilState(given.id, 'running');

    const following = startCommand(['status', given.id, '--follow', '--json']);
    await following.says('running');
    const canceled = await command(['cancel', given.id, '--json']);
    expect(canceled.status).toBe(0);
    expect(JSON.parse(canceled.stdout)).toMatchObject({
      workflow_id: given.id,
      state: 'canceled',
      report: { state: 'canceled' },
    });
    const followed = await following.ended;
    expect(followed.status).toBe(4);
    expect(JSON.parse(followed.stdout)).toMatchObject({ state: 'canceled', stop_reason: 'canceled' });
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s without a terminal leaves the replay running', async (signal, expected) => {
    const given = await files(await filled(), slow);
    const attached = startCommand([given.plan, given.target, '--json']);
    await attached.says('running');
    attached.child.kill(signal);
    const { status, stdout, stderr } = await attached.ended;
    expect({ status, stdout }).toEqual({ status: expected, stdout: '' });
    expect(stderr).toContain(`replay-stream status ${given.id} --follow`);
    expect(await stateOf(given.id)).toBe('running');
    await cancelNow(given.id);
  });

  test('a blocked plan ends the command with 5, and goes on waiting', async () => {
    const given = await files(await filled(), {}, { dead_letter: null });
    const { status, stdout, stderr } = await command([given.plan, given.target, '--json']);
    expect(status).toBe(5);
    expect(stderr).toContain('blocked: dead_letter_not_configured');
    expect(stderr).toContain('next: Cancel, add "dead_letter"');
    expect(JSON.parse(stdout)).toMatchObject({ state: 'blocked' });
    expect(await stateOf(given.id)).toBe('blocked');
    await cancelNow(given.id);
  });

  test('a terminated run is a failure that says what next', async () => {
    const given = await files(await filled(), slow);
    const attached = startCommand([given.plan, given.target, '--json']);
    await attached.says('running');
    await client.workflow.getHandle(given.id).terminate('a test');
    const { status, stdout, stderr } = await attached.ended;
    expect(status).toBe(1);
    expect(stderr).toContain('The replay was terminated (a test)');
    expect(JSON.parse(stdout)).toMatchObject({ state: 'failed', stop_reason: 'failed' });
    expect((await command(['status', given.id])).stdout).toContain(`${given.id}: failed`);
  });
});

/** Types keys at given seconds into a program that believes to be at a terminal. */
const terminal = `
import fcntl, os, pty, select, struct, sys, termios, time
keys = [(float(at), bytes(text, 'utf8').decode('unicode_escape').encode()) for at, text in (pair.split(':', 1) for pair in sys.argv[1].split(';'))]
pid, screen = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
shown, pressed = b'', time.time()
while True:
    ready, _, _ = select.select([screen], [], [], 0.1)
    if ready:
        try:
            shown += os.read(screen, 65536)
        except OSError:
            break
    running = b'running' in shown
    if not running:
        pressed = time.time()
    while keys and running and time.time() - pressed > keys[0][0]:
        os.write(screen, keys.pop(0)[1])
_, status = os.waitpid(pid, 0)
sys.stdout.write(shown.decode('utf8', 'replace'))
sys.exit(os.waitstatus_to_exitcode(status))
`;

const python = spawnSync('python3', ['-c', 'import pty']).status === 0;

describe.skipIf(!python)('Ctrl-C at a terminal', () => {
  const at = async (keys: string, given: Files) => {
    const script = join(folder, 'terminal-keys.py');
    await writeFile(script, terminal);
    const words = [keys, process.execPath, '--import', 'tsx', 'client/main.ts', given.plan, given.target];
    return await startProgram('python3', [script, ...words]).ended;
  };

  test('asks; "leave" leaves the replay running', async () => {
    const given = await files(await filled(), slow);
    const { status, stdout } = await at('0.5:\\x03;2.5:\\r', given);
    expect(stdout).toContain('What now?');
    expect(stdout).toContain('Left; the replay goes on.');
    expect(status).toBe(130);
    expect(await stateOf(given.id)).toBe('running');
    await cancelNow(given.id);
  });

  test('"cancel" ends it', async () => {
    const given = await files(await filled(), slow);
    const { status, stdout } = await at('0.5:\\x03;2.5:\\x1b[B;3:\\r', given);
    expect(stdout).toContain(`${given.durable}: canceled`);
    expect(status).toBe(4);
  });

  test('a second Ctrl-C leaves at once', async () => {
    const given = await files(await filled(), slow);
    const { status } = await at('0.5:\\x03;2.5:\\x03', given);
    expect(status).toBe(130);
    expect(await stateOf(given.id)).toBe('running');
    await cancelNow(given.id);
  });
});

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { headers, type JetStreamManager, type NatsConnection } from 'nats';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { tempDir } from '../../support/file-end.ts';
import { connectTestNats, uniqueName } from '../../support/servers.ts';
import { addStream, mixedMessages, publishAll, type TestStream } from '../../support/streams.ts';
import { startWorker } from '../../support/worker.ts';
import { command } from './command-line.ts';

// Each command is a process of its own: seconds on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

/** `inspect` and `doctor`: they look, and change nothing. */

let nats: NatsConnection;
let manager: JetStreamManager;

beforeAll(async () => {
  nats = await connectTestNats();
  manager = await nats.jetstreamManager();
  await startWorker();
});

interface Inspected {
  readonly messages: readonly {
    readonly sequence: number;
    readonly subject: string;
    readonly payload_bytes: number;
    readonly body: string | null;
    readonly headers: Record<string, readonly string[]>;
    readonly headers_not_shown: number;
  }[];
  readonly stopped_by: string;
  readonly next: number;
}

async function inspect(...words: string[]): Promise<Inspected> {
  const ended = await command(['inspect', ...words, '--json']);
  expect(ended).toMatchObject({ status: 0 });
  return JSON.parse(ended.stdout) as Inspected;
}

describe('inspect', () => {
  let stream: TestStream;
  beforeAll(async () => {
    stream = await addStream(manager);
    await publishAll(nats, mixedMessages(stream.prefix, 30));
    const many = headers();
    many.set('Authorization', 'Bearer of-a-secret');
    many.set('Nats-Msg-Id', 'id-31');
    for (let i = 0; i < 25; i++) many.set(`X-${String(i).padStart(2, '0')}`, 'x'.repeat(500));
    await nats.jetstream().publish(`${stream.prefix}.last`, '{"of": "31", "bell": "\u0007"}', { headers: many });
  });

  test('shows messages in order, by subject, and where to go on', async () => {
    const some = await inspect(stream.name, '--from', '5', '--limit', '3');
    expect(some.messages.map(({ sequence }) => sequence)).toEqual([5, 6, 7]);
    expect(some).toMatchObject({ stopped_by: 'limit', next: 8 });
    const two = [`${stream.prefix}.created`, `${stream.prefix}.paid`];
    const filtered = await inspect(stream.name, '--subject', ...two, '--limit', '100');
    expect(filtered.messages.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 30 }, (_, i) => i + 1).filter((sequence) => sequence % 3 !== 2),
    );
    expect(filtered.stopped_by).toBe('end_of_stream');
  });

  test('leaves out bodies, credentials and what is too much', async () => {
    const { messages } = await inspect(stream.name, '--from', '31');
    expect(messages[0]).toMatchObject({ body: null, headers: { Authorization: ['<redacted>'], 'Nats-Msg-Id': ['id-31'] } });
    expect(messages[0]!.headers_not_shown).toBe(7);
    expect(messages[0]!.headers['X-00']![0]).toMatch(/^x{200}\.\.\. \(500 characters\)$/);
    const text = await command(['inspect', stream.name, '--from', '31', '--bodies']);
    expect(text.stdout).toContain('"of": "31"');
    expect(text.stdout).not.toContain('of-a-secret');
    expect(text.stdout).not.toContain('\u0007');
  });

  test('reads no more than it may, and no body that does not fit', async () => {
    const bounded = await inspect(stream.name, '--max-bytes', '1');
    expect(bounded).toMatchObject({ messages: [], stopped_by: 'payload_bytes', next: 1 });
  });

  test('leaves no trace', async () => {
    await inspect(stream.name);
    expect((await manager.streams.info(stream.name)).state).toMatchObject({ consumer_count: 0, messages: 31 });
  });

  test('says what is wrong', async () => {
    const missing = await command(['inspect', uniqueName('none')]);
    expect(missing).toMatchObject({ status: 1 });
    expect(missing.stderr).toContain('There is no stream none-');
    expect(await command(['inspect', stream.name, '--limit', '0'])).toMatchObject({ status: 2 });
    expect(await command(['inspect', 'a b'])).toMatchObject({ status: 2 });
  });
});

describe('doctor', () => {
  let stream: TestStream;
  let files: readonly [plan: string, target: string];
  let folder: string;
  beforeAll(async () => {
    stream = await addStream(manager);
    await publishAll(nats, mixedMessages(stream.prefix, 5));
    folder = await tempDir();
    files = [join(folder, 'plan.json'), join(folder, 'target.json')];
    const replay = {
      stream: stream.name,
      subject_filter: `${stream.prefix}.>`,
      durable_consumer: uniqueName('doctor'),
      start_sequence: 1,
      max_messages: 10,
    };
    const target = { sink: { type: 'file', directory: 'd' }, dead_letter: { subject: stream.deadLetterSubject } };
    await writeFile(files[0], JSON.stringify({ replay }));
    await writeFile(files[1], JSON.stringify(target));
  });

  async function examine(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const { status, stdout } = await command(['doctor', ...words, '--json'], { REPLAY_DATA_ROOT: folder, ...env });
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; status: string; message: string; next: string | null }[];
    };
    return { status, checks, named: (name: string) => checks.filter((check) => check.name === name) };
  }

  test('all is well', async () => {
    const { status, checks } = await examine(files);
    expect(checks.filter((check) => check.status === 'error')).toEqual([]);
    expect(status).toBe(0);
    expect(new Set(checks.map(({ name }) => name))).toEqual(
      new Set(
        'node,data root,report root,targets,temporal,search attributes,worker,nats,stream,clocks,permissions,dead letters'.split(
          ',',
        ),
      ),
    );
    expect((await manager.streams.info(stream.name)).state.consumer_count).toBe(0);
  });

  test('says what to type: no servers, a root that is a file, no stream', async () => {
    const file = join(folder, 'a-file');
    await writeFile(file, '');
    const env = { TEMPORAL_ADDRESS: '127.0.0.1:1', NATS_URL: 'nats://127.0.0.1:1', REPLAY_REPORT_ROOT: file };
    const { status, named } = await examine([], env);
    expect(status).toBe(1);
    expect(named('temporal')[0]).toMatchObject({
      status: 'error',
      next: expect.stringContaining('TEMPORAL_ADDRESS') as string,
    });
    expect(named('nats')[0]).toMatchObject({ status: 'error', next: expect.stringContaining('NATS_URL') as string });
    expect(named('report root')[0]).toMatchObject({
      status: 'error',
      next: expect.stringContaining('REPLAY_REPORT_ROOT') as string,
    });
    await manager.streams.delete(stream.name);
    await mkdir(join(folder, 'x'), { recursive: true });
    const gone = await examine(files);
    expect(gone.named('stream')[0]).toMatchObject({ status: 'error', message: `There is no stream ${stream.name}.` });
  });
});

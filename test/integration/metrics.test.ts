import { Client, Connection } from '@temporalio/client';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { startReplay } from '../../client/replays.ts';
import { metricCatalogue } from '../../core/metrics.ts';
import { findFreePorts } from '../../scripts/servers/ports.ts';
import { atFileEnd } from '../support/file-end.ts';
import { connectTestNats, temporalAddress, uniqueName } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll, type TestStream } from '../support/streams.ts';
import { startWorker } from '../support/worker.ts';

// Each command is a process of its own: seconds on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

let client: Client;
let address: string;
let stream: TestStream;

beforeAll(async () => {
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  client = new Client({ connection });
  address = `127.0.0.1:${(await findFreePorts(1))[0]}`;
  const nats = await connectTestNats();
  stream = await addStream(await nats.jetstreamManager());
  await publishAll(nats, mixedMessages(stream.prefix, 300));
  await startWorker({ REPLAY_METRICS_ADDRESS: address });
});

/** Value of the sample with these labels; undefined: there is none. */
async function sample(name: string, labels: Record<string, string> = {}): Promise<number | undefined> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  const line = text
    .split('\n')
    .filter((one) => one.startsWith(`${name}{`) || one.startsWith(`${name} `))
    .find((one) => Object.entries(labels).every(([label, value]) => one.includes(`${label}="${value}"`)));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

describe('the metrics of a worker', () => {
  const durable = uniqueName('metrics');
  let rejected: number;

  beforeAll(async () => {
    const replay = {
      stream: stream.name,
      subject_filter: `${stream.prefix}.>`,
      durable_consumer: durable,
      start_sequence: 1,
      end_sequence: 300,
      max_messages: 1_000,
      batch_size: 100,
      dry_run: false,
    };
    const target = {
      sink: { type: 'file', directory: stream.name, require_json: true },
      dead_letter: { subject: stream.deadLetterSubject },
    };
    const handle = await startReplay(client, { plan: { replay }, target });
    const { report } = await handle.result();
    ({ rejected } = report!.counts);
  });

  test('count records by outcome as the report does', async () => {
    const records = (outcome: string) => sample('replay_records_total', { stream: stream.name, sink: 'file', outcome });
    expect(rejected).toBeGreaterThan(0);
    expect(await records('written')).toBe(300 - rejected);
    expect(await records('rejected')).toBe(rejected);
    expect(await records('dead_lettered')).toBe(rejected);
    expect(await records('duplicate')).toBeUndefined();
    expect(await sample('replay_acknowledged_total', { stream: stream.name })).toBe(300);
    expect(await sample('replay_bytes_total', { stream: stream.name })).toBeGreaterThan(300);
    expect(await sample('replay_lag_sequences', { stream: stream.name, durable })).toBe(0);
  });

  test('time the steps', async () => {
    for (const step of ['describe', 'pull', 'write', 'dead_letter', 'acknowledge'])
      expect(await sample('replay_step_seconds_count', { step }), step).toBeGreaterThan(0);
    expect(await sample('replay_step_seconds_bucket', { step: 'write', le: '0.025' })).toBeDefined();
  });

  test('count faults, and plans by state', async () => {
    const replay = {
      stream: stream.name,
      subject_filter: `${stream.prefix}.>`,
      durable_consumer: uniqueName('metrics'),
      start_sequence: 1,
      max_messages: 10,
      dry_run: false,
    };
    const target = { sink: { type: 'file', directory: 'd', require_json: true, max_record_bytes: 1 } };
    const handle = await startReplay(client, { plan: { replay }, target });
    const blocked = async () => ((await sample('replay_plans', { state: 'blocked' })) ?? 0) > 0;
    await expect.poll(blocked, { timeout: 100_000, interval: 500 }).toBe(true);
    await handle.cancel();
    expect(await handle.result()).toMatchObject({ state: 'canceled' });
    expect(await sample('replay_backlog_tasks', { kind: 'workflow' })).toBeDefined();
  }, 120_000);

  test('are all in the catalogue, beside those of Temporal', async () => {
    const text = await (await fetch(`http://${address}/metrics`)).text();
    const ours = [...text.matchAll(/^# TYPE (replay_\w+) (\w+)$/gm)].map(([, name, kind]) => [name, kind]);
    const known = Object.entries(metricCatalogue).map(([name, { kind }]) => [name, kind]);
    expect(known).toEqual(expect.arrayContaining(ours));
    expect(text).toContain('temporal_');
  });
});

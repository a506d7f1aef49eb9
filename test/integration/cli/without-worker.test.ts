import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { startTemporal, type TemporalServer } from '../../../scripts/servers/temporal.ts';
import { atFileEnd, tempDir } from '../../support/file-end.ts';
import { connectTestNats, uniqueName } from '../../support/servers.ts';
import { addStream, mixedMessages, publishAll } from '../../support/streams.ts';
import { startWorker } from '../../support/worker.ts';
import { command, startCommand } from './command-line.ts';

let temporal: TemporalServer;

beforeAll(async () => {
  temporal = await startTemporal();
  atFileEnd(() => temporal.stop());
});

test('no worker, then a restart of Temporal, then a worker: attached all the time, it ends well', async () => {
  const env = { TEMPORAL_ADDRESS: temporal.address };
  const nats = await connectTestNats();
  const stream = await addStream(await nats.jetstreamManager());
  await publishAll(nats, mixedMessages(stream.prefix, 100));
  const folder = await tempDir();
  const durable = uniqueName('cli');
  const [plan, target] = [join(folder, 'plan.json'), join(folder, 'target.json')];
  const replay = { stream: stream.name, subject_filter: `${stream.prefix}.>`, durable_consumer: durable, start_sequence: 1 };
  await writeFile(plan, JSON.stringify({ replay: { ...replay, end_sequence: 100, max_messages: 100 } }));
  await writeFile(target, JSON.stringify({ sink: { type: 'file', directory: 'd' } }));

  const attached = startCommand([plan, target, '--dry-run'], env);
  await attached.says('No worker is polling the task queue durable-replay');
  const id = `replay-dry:${stream.name}:${durable}`;
  const status = await command(['status', id], env);
  expect(status).toMatchObject({ status: 0 });
  expect(status.stderr).toContain('No worker answers');
  const rate = await command(['rate', id, '5'], env);
  expect(rate.status).toBe(1);
  expect(rate.stderr).toContain('replay-stream worker');

  await temporal.halt();
  await attached.says('Temporal does not answer; the replay goes on by itself.');
  await temporal.restart();
  await attached.says('Temporal answers again.');
  await startWorker(env);
  const { status: exit, stdout } = await attached.ended;
  expect(stdout).toContain('rehearsed');
  expect(exit).toBe(0);
}, 120_000);

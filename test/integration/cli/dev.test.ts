import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'nats';
import { expect, test } from 'vitest';
import { findFreePorts } from '../../../scripts/servers/ports.ts';
import { tempDir } from '../../support/file-end.ts';
import { isAlive } from '../../support/processes.ts';
import { command, startCommand } from './command-line.ts';

interface Addresses {
  readonly nats_url: string;
  readonly temporal_address: string;
  readonly ui_url: string;
  readonly data: string;
}

test('servers and worker come up, replay, keep their data and go; one folder serves one at a time', async () => {
  const folder = await tempDir();
  const data = join(folder, 'data');
  const roots = { REPLAY_DATA_ROOT: folder, REPLAY_REPORT_ROOT: folder };
  const own = { NATS_URL: '', TEMPORAL_ADDRESS: '', ...roots };
  const [temporalPort, uiPort, natsPort] = await findFreePorts(3);
  const ports = ['--temporal-port', `${temporalPort}`, '--ui-port', `${uiPort}`, '--nats-port', `${natsPort}`];
  const dev = startCommand(['dev', '--data', data, '--json', ...ports], own);
  await dev.says('worker polls');

  const twice = await command(['dev', '--data', data], own);
  expect(twice.status).toBe(2);
  expect(twice.stderr).toContain(`${data} is in use by another replay-stream dev (process ${dev.child.pid})`);

  const addresses = { NATS_URL: `nats://127.0.0.1:${natsPort}`, TEMPORAL_ADDRESS: `127.0.0.1:${temporalPort}` };
  const nats = await connect({ servers: addresses.NATS_URL });
  await (await nats.jetstreamManager()).streams.add({ name: 'ORDERS', subjects: ['orders.*'] });
  await nats.jetstream().publish('orders.created', '{"id":1}');
  await nats.close();
  const [plan, target] = [join(folder, 'plan.json'), join(folder, 'target.json')];
  const replay = { stream: 'ORDERS', subject_filter: 'orders.*', durable_consumer: 'd', start_sequence: 1, max_messages: 1 };
  await writeFile(plan, JSON.stringify({ replay }));
  await writeFile(target, JSON.stringify({ sink: { type: 'file', directory: 'orders' } }));
  expect(await command([plan, target], addresses)).toMatchObject({ status: 0 });

  dev.child.kill('SIGINT');
  const { status, stdout } = await dev.ended;
  expect(status).toBe(0);
  expect(JSON.parse(stdout) as Addresses).toEqual({
    nats_url: addresses.NATS_URL,
    temporal_address: addresses.TEMPORAL_ADDRESS,
    ui_url: `http://127.0.0.1:${uiPort}`,
    data,
  });
  expect(existsSync(join(data, 'temporal.db'))).toBe(true);
  expect(existsSync(join(data, 'dev.pid'))).toBe(false);
  expect(isAlive(dev.child.pid!)).toBe(false);
}, 90_000);

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { connect } from 'nats';
import { describe, expect, test } from 'vitest';
import { startNats } from '../../scripts/servers/nats.ts';
import { findFreePorts } from '../../scripts/servers/ports.ts';
import { missingSearchAttributes } from '../../scripts/servers/search-attributes.ts';
import { startServers } from '../../scripts/servers/servers.ts';
import { startTemporal } from '../../scripts/servers/temporal.ts';
import { atFileEnd, tempDir } from '../support/file-end.ts';
import { isAlive } from '../support/processes.ts';
import { connectTestNats, natsUrl, temporalAddress, uniqueName } from '../support/servers.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const goneMs = 30_000;

describe('the shared servers', () => {
  test('JetStream stores', async () => {
    const connection = await connectTestNats();
    const name = uniqueName('S');
    const manager = await connection.jetstreamManager();
    await manager.streams.add({ name, subjects: [`${name}.>`] });
    const stored = await connection.jetstream().publish(`${name}.a`);
    expect(stored.seq).toBe(1);
    await manager.streams.delete(name);
  });

  test('Temporal serves and knows our search attributes', async () => {
    const connection = await Connection.connect({ address: temporalAddress() });
    atFileEnd(() => connection.close());
    expect(await missingSearchAttributes(connection, 'default')).toEqual([]);
  });
});

describe('own servers', () => {
  test('a killed nats-server comes back on the same port with its store', async () => {
    const server = await startNats();
    atFileEnd(() => server.stop());
    const first = await connect({ servers: server.url, reconnect: false });
    await (await first.jetstreamManager()).streams.add({ name: 'KEPT', subjects: ['kept'] });
    await first.jetstream().publish('kept', 'body');
    await server.kill();
    expect(server.pid()).toBeUndefined();
    await expect(connect({ servers: server.url, reconnect: false, timeout: 1_000 })).rejects.toThrow();
    await server.restart();
    const second = await connect({ servers: server.url });
    const info = await (await second.jetstreamManager()).streams.info('KEPT');
    expect(info.state.messages).toBe(1);
    await second.close();
    await server.stop();
    expect(existsSync(server.storeDir)).toBe(false);
    await server.stop();
  });

  test('a killed Temporal server comes back on the same ports with its database', async () => {
    const server = await startTemporal();
    atFileEnd(() => server.stop());
    const workflowId = uniqueName('kept');
    await startWorkflow(server.address, workflowId);
    await server.kill();
    await server.restart();
    expect((await describeWorkflow(server.address, workflowId)).status.name).toBe('RUNNING');
    expect((await fetch(server.uiUrl)).status).toBe(200);
    await server.stop();
    expect(existsSync(server.dbFile)).toBe(false);
  });

  test('named folders are kept, named ports are used', async () => {
    const folder = await tempDir();
    const port = await freePort();
    const storeDir = join(folder, 'deep', 'store');
    const server = await startNats({ port, storeDir });
    expect(server.url).toBe(`nats://127.0.0.1:${port}`);
    await server.stop();
    expect(existsSync(storeDir)).toBe(true);
  });

  test('users and permissions of a configuration hold', async () => {
    const config = `authorization { users = [
      { user: "admin", password: "a" }
      { user: "reader", password: "r", permissions: { publish: ["$JS.API.STREAM.INFO.*", "$JS.API.INFO"] } }
    ] }`;
    const server = await startNats({ config, login: { user: 'admin', pass: 'a' } });
    atFileEnd(() => server.stop());
    await expect(connect({ servers: server.url, reconnect: false })).rejects.toThrow(/authorization/i);
    const reader = await connect({ servers: server.url, user: 'reader', pass: 'r' });
    const manager = await reader.jetstreamManager({ timeout: 1_000 });
    await expect(manager.streams.add({ name: 'NO', subjects: ['no'] })).rejects.toThrow(/permission|timeout/i);
    await reader.close();
    await server.stop();
  });

  test('a server that cannot start says why, from its log', async () => {
    await expect(startNats({ config: 'max_payload: many' })).rejects.toThrow(/ended while starting[^]*nats-server\.conf:1:/);
  });

  test('a port in use is named before anything is started', async () => {
    const port = Number(new URL(natsUrl()).port);
    await expect(startNats({ port })).rejects.toThrow(`Port ${port}, wanted for the NATS server, is in use`);
    await expect(startTemporal({ port })).rejects.toThrow(`Port ${port}, wanted for the Temporal server, is in use`);
    await expect(startTemporal({ uiPort: port })).rejects.toThrow(`Port ${port}, wanted for Temporal's UI, is in use`);
  });
});

describe('addresses in the environment', () => {
  test('are used; nothing is started', async () => {
    const env = { ...process.env, NATS_URL: natsUrl(), TEMPORAL_ADDRESS: temporalAddress() };
    const servers = await startServers({ env });
    expect(servers).toMatchObject({
      natsUrl: natsUrl(),
      temporalAddress: temporalAddress(),
      nats: null,
      temporal: null,
      warnings: [],
    });
    await servers.stop();
    await connectTestNats();
  });

  test('that nobody answers at are named, without the password', async () => {
    const port = await freePort();
    const env = { ...process.env, NATS_URL: `nats://user:s3cret@127.0.0.1:${port}`, TEMPORAL_ADDRESS: temporalAddress() };
    const failure: unknown = await startServers({ env }).catch((error: unknown) => error);
    expect(String(failure)).toMatch(/No NATS server answers at the address in NATS_URL/);
    expect(String(failure)).not.toContain('s3cret');
    const other = { ...process.env, NATS_URL: natsUrl(), TEMPORAL_ADDRESS: `127.0.0.1:${port}` };
    await expect(startServers({ env: other })).rejects.toThrow(/No Temporal server answers at TEMPORAL_ADDRESS/);
  });
});

describe('servers end with the program that started them', () => {
  test.each([
    ['killed with SIGKILL', 'wait', (holder: ChildProcess) => holder.kill('SIGKILL')],
    ['crashed', 'crash', () => {}],
    ['ended without stopping them', 'end', () => {}],
  ])('%s', async (_, ending, hit) => {
    const { holder, facts } = await holdServers(ending);
    hit(holder);
    await expectAllGone(facts);
  });

  test('Ctrl-C reaches the program, not the servers', async () => {
    const { holder, facts, nextLine } = await holdServers('interrupt');
    process.kill(-holder.pid!, 'SIGINT');
    expect(await nextLine()).toBe('draining');
    const connection = await connect({ servers: facts.natsUrl });
    await connection.close();
    expect(facts.pids.map(isAlive)).toEqual([true, true]);
    holder.stdin.write('go on\n');
    await expectAllGone(facts);
  });
});

interface HeldFacts {
  readonly pids: number[];
  readonly logs: string[];
  readonly natsUrl: string;
}

/** In a process group of its own, as a shell starts it, so that Ctrl-C can be sent to the whole group. */
async function holdServers(ending: string) {
  const file = join(root, 'test/support/hold-servers.ts');
  const holder = spawn(process.execPath, ['--import', 'tsx', file, ending], {
    cwd: root,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  atFileEnd(async () => {
    holder.kill('SIGKILL');
  });
  const lines = createInterface({ input: holder.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => String((await lines.next()).value);
  const facts = JSON.parse(await nextLine()) as HeldFacts;
  return { holder, facts, nextLine };
}

async function expectAllGone(facts: HeldFacts): Promise<void> {
  const folders = facts.logs.map(dirname);
  expect(folders).toHaveLength(2);
  await expect
    .poll(() => [...facts.pids.filter(isAlive), ...folders.filter((folder) => existsSync(folder))], {
      timeout: goneMs,
      interval: 100,
    })
    .toEqual([]);
}

async function startWorkflow(address: string, workflowId: string): Promise<void> {
  const connection = await Connection.connect({ address });
  await new Client({ connection }).workflow.start('nobodyRunsThis', { workflowId, taskQueue: uniqueName('q') });
  await connection.close();
}

async function describeWorkflow(address: string, workflowId: string) {
  const connection = await Connection.connect({ address });
  const description = await new Client({ connection }).workflow.getHandle(workflowId).describe();
  await connection.close();
  return description;
}

async function freePort(): Promise<number> {
  const [port] = await findFreePorts(1);
  return port!;
}

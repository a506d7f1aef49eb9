import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeBatch } from '../../contract/records.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { testOracle, withoutWire, type TestUser } from '../../support/oracle.ts';
import { oracleConfigSchema } from '../../../sinks/oracle/config.ts';
import { createOracleSink } from '../../../sinks/oracle/sink.ts';

const signal = new AbortController().signal;

/** TLS of our own in front of the listener. */
describe.skipIf(withoutWire)('TLS', () => {
  let user: TestUser;
  let server: Server;
  let port: number;
  let pathOf: (file: string) => string;

  beforeAll(async () => {
    user = await (await testOracle()).addUser();
    pathOf = await makeCertificates(['server', 'client']);
    const read = (file: string) => readFile(pathOf(file), 'utf8');
    server = createServer({ cert: await read('server.pem'), key: await read('server.key') }, (near) => {
      const far = connect(user.port, user.host);
      near.pipe(far).pipe(near);
      near.on('error', () => far.destroy());
      far.on('error', () => near.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    port = (server.address() as { port: number }).port;
  }, 180_000);
  afterAll(async () => {
    server.close();
    await user.drop();
  });

  async function write(host: string, wallet: readonly string[] | null): Promise<string> {
    const texts = await Promise.all((wallet ?? []).map((file) => readFile(pathOf(file), 'utf8')));
    const secrets: Record<string, string> = { REPLAY_SECRET_P: user.password, REPLAY_SECRET_W: texts.join('\n') };
    const config = oracleConfigSchema.parse({
      type: 'oracle',
      connect_string: `tcps://${host}:${port}/${user.service}`,
      user: user.user,
      password: { env: 'REPLAY_SECRET_P' },
      table: 'orders',
      create_table: true,
      ...(wallet === null ? {} : { wallet: { content: { env: 'REPLAY_SECRET_W' } } }),
    });
    const log = { info: () => undefined, warn: () => undefined };
    const secret = (name: string) => secrets[name]!;
    const sink = createOracleSink(config, { dataRoot: '/nowhere', plan: 'p', run: 'r', begun: false, secret, log });
    try {
      return (await sink.write(makeBatch(1, 1), signal))[0]!.kind;
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      await sink.close();
    }
  }

  test('with the authority, and a certificate of our own, in the wallet', async () => {
    expect(await write('localhost', ['client.key', 'client.pem', 'ca.pem'])).toBe('written');
  });

  test('a wallet of the authority alone is not enough for the driver', async () => {
    expect(await write('localhost', ['ca.pem'])).toBe('sink_tls');
  });

  test('an authority that nobody trusts, another name, a wallet that is none', async () => {
    expect(await write('localhost', null)).toBe('sink_tls');
    expect(await write('127.0.0.1', ['client.key', 'client.pem', 'ca.pem'])).toBe('sink_tls');
    expect(await write('localhost', [])).toBe('sink_tls');
  });
});

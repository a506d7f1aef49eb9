import { readFile } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { expect, test } from 'vitest';
import { runProgram } from '../../scripts/servers/run-program.ts';
import { makeCertificates } from '../support/certificates.ts';
import { atFileEnd } from '../support/file-end.ts';
import { temporalAddress } from '../support/servers.ts';
import { startWorker } from '../support/worker.ts';

const commandMsMax = 60_000;

/** The development server has no TLS of its own, so it stands behind a door that has, and asks for a client's certificate. */
async function tlsDoor(file: (name: string) => string): Promise<string> {
  const [host, port] = temporalAddress().split(':');
  const [key, cert, ca] = await Promise.all(['server.key', 'server.pem', 'ca.pem'].map((name) => readFile(file(name))));
  const options = { key: key!, cert: cert!, ca: ca!, requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2'] };
  const door = createServer(options, (socket) => {
    const inner = connect(Number(port), host);
    socket.pipe(inner).pipe(socket);
    for (const one of [socket, inner]) {
      one.on('error', () => {
        socket.destroy();
        inner.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  atFileEnd(async () => void door.close());
  return `localhost:${(door.address() as AddressInfo).port}`;
}

test('worker and command reach Temporal through TLS with a certificate of their own, and not without', async () => {
  const file = await makeCertificates(['server', 'client']);
  const trusting = {
    TEMPORAL_ADDRESS: await tlsDoor(file),
    TEMPORAL_TLS: 'true',
    TEMPORAL_TLS_SERVER_CA_CERT_PATH: file('ca.pem'),
  };
  const known = {
    ...trusting,
    TEMPORAL_TLS_CLIENT_CERT_PATH: file('client.pem'),
    TEMPORAL_TLS_CLIENT_KEY_PATH: file('client.key'),
  };
  const worker = await startWorker(known);
  expect(await worker.stop()).toBe(0);
  const list = (env: Record<string, string>) =>
    runProgram(process.execPath, ['--import', 'tsx', 'client/main.ts', 'list', '--json'], commandMsMax, env);
  expect(await list(known)).toMatchObject({ status: 0 });
  const stranger = await list(trusting);
  expect(stranger.status).toBe(1);
  expect(stranger.stderr).toContain('Temporal does not answer');
  await expect(startWorker(trusting)).rejects.toThrow('Temporal does not answer');
}, 120_000);

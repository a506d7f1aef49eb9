import { createServer, type Server, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { natsAddresses, parseInfo, readNatsInfo } from '../../../scripts/servers/nats-info.ts';
import { atFileEnd } from '../../support/file-end.ts';

test.each([
  ['nats://10.0.0.1:4223', [{ host: '10.0.0.1', port: 4223 }]],
  ['127.0.0.1', [{ host: '127.0.0.1', port: 4222 }]],
  ['tls://user:pass@nats.example:80', [{ host: 'nats.example', port: 80 }]],
  ['nats://[::1]:4224', [{ host: '::1', port: 4224 }]],
  [
    'a:1, nats://b ,',
    [
      { host: 'a', port: 1 },
      { host: 'b', port: 4222 },
    ],
  ],
])('addresses of %s', (urls, addresses) => {
  expect(natsAddresses(urls)).toEqual(addresses);
});

describe('the INFO line', () => {
  test('is read', () => {
    expect(parseInfo('INFO {"server_name":"a","jetstream":true} \r\nPING\r\n')).toEqual({ server_name: 'a', jetstream: true });
  });

  test.each(['HTTP/1.1 400 Bad Request\r\n', 'INFO {broken\r\n', 'INFO {broken}\r\n', ''])('%j is none', (text) => {
    expect(parseInfo(text)).toBeNull();
  });

  test('comes from no server that talks otherwise, hangs up, or is silent', async () => {
    const other = await serve((socket) => void socket.end('SSH-2.0-x\r\n'));
    const silent = await serve(() => {});
    const closing = await serve((socket) => void socket.destroy());
    const answers = await Promise.all([other, silent, closing].map((port) => readNatsInfo('127.0.0.1', port, 300)));
    expect(answers).toEqual([null, null, null]);
  });
});

async function serve(onConnection: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atFileEnd(async () => {
    server.close();
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

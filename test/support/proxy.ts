import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { atFileEnd } from './file-end.ts';

export interface Proxy {
  readonly url: string;
  /** Breaks all connections and takes no more until `mend`. */
  cut(): void;
  mend(): void;
  /** Connections that it did not take so far. */
  refused(): number;
  /** Each piece of data waits so long, milliseconds; 0: none. */
  slow(delayMs: number): void;
  /** Data is swallowed in both directions, and connections stay open. */
  mute(muted: boolean): void;
}

/** A TCP proxy in front of a NATS server, or of another one. Closed with the test file. */
export async function startProxy(target: string): Promise<Proxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let open = true;
  let delayMs = 0;
  let muted = false;
  let refused = 0;
  const server = createServer((client) => {
    if (!open) {
      refused++;
      return void client.destroy();
    }
    const upstream = connect(Number(port), hostname);
    const pair = [client, upstream] as const;
    for (const socket of pair) {
      const other = socket === client ? upstream : client;
      sockets.add(socket);
      socket.on('data', (data) => {
        if (muted) return;
        // Timers of one delay fire in order; a delay that changes is let go through whole seconds apart.
        if (delayMs > 0) setTimeout(() => void (other.writable && other.write(data)), delayMs);
        else other.write(data);
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  atFileEnd(async () => {
    breakAll();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      open = false;
      breakAll();
    },
    mend: () => void (open = true),
    refused: () => refused,
    slow: (ms) => void (delayMs = ms),
    mute: (value) => void (muted = value),
  };
}

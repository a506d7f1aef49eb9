import { createServer, connect, type Server, type Socket } from 'node:net';

/** A way to a server that can be cut. */
export interface Line {
  readonly port: number;
  break(): Promise<void>;
  mend(): Promise<void>;
  close(): Promise<void>;
}

/** Hands bytes on to the server until it is broken; then it drops what is open and refuses what comes. */
export async function openLine(host: string, port: number): Promise<Line> {
  const sockets = new Set<Socket>();
  let broken = false;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  };
  const server: Server = createServer((near) => {
    keep(near);
    if (broken) {
      near.destroy();
      return;
    }
    const far = connect(port, host);
    keep(far);
    near.pipe(far);
    far.pipe(near);
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as { port: number }).port,
    break: async () => {
      broken = true;
      drop();
    },
    mend: async () => {
      broken = false;
    },
    close: async () => {
      drop();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

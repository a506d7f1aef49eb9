import { createServer } from 'node:net';
import { ServerSetupError } from './setup-error.ts';

export const loopback = '127.0.0.1';
/** Another program may take a free port between our look and the server's bind: then the next one. */
export const startAttemptsMax = 5;

/** Ports that are free now, all different. */
export async function findFreePorts(count: number): Promise<number[]> {
  const held = await Promise.all(Array.from({ length: count }, () => hold(0)));
  await Promise.all(held.map((port) => port.release()));
  return held.map(({ number }) => number);
}

/** Throws ServerSetupError when a port that the user chose is taken. `purpose`: "the NATS server". */
export async function assertFreePort(port: number, purpose: string): Promise<void> {
  try {
    const held = await hold(port);
    await held.release();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new ServerSetupError(
        `Port ${port}, wanted for ${purpose}, is in use on ${loopback}: end the program that holds it, or choose another port.`,
        { cause: error },
      );
    }
    throw new ServerSetupError(`Port ${port}, wanted for ${purpose}, cannot be opened (${code}): choose another port.`, {
      cause: error,
    });
  }
}

interface HeldPort {
  readonly number: number;
  release(): Promise<void>;
}

function hold(port: number): Promise<HeldPort> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, loopback, () => {
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
      resolve({ number: address.port, release: () => new Promise((done) => server.close(() => done())) });
    });
  });
}

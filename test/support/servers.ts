import { randomBytes } from 'node:crypto';
import { connect, type ConnectionOptions, type NatsConnection } from 'nats';
import { inject } from 'vitest';
import { atFileEnd } from './file-end.ts';

declare module 'vitest' {
  interface ProvidedContext {
    natsUrl: string;
    temporalAddress: string;
  }
}

/** Address of the NATS server that all tests of this run share. */
export function natsUrl(): string {
  return inject('natsUrl');
}

/** host:port of the Temporal server that all tests of this run share. */
export function temporalAddress(): string {
  return inject('temporalAddress');
}

/** A connection to the shared server (or to `options.servers`), closed when this test file ends. */
export async function connectTestNats(options: ConnectionOptions = {}): Promise<NatsConnection> {
  const connection = await connect({ servers: natsUrl(), ...options });
  atFileEnd(async () => {
    if (!connection.isClosed()) await connection.close();
  });
  return connection;
}

/** The servers are shared, so every stream, durable, task queue and workflow id needs a name of its own. */
export function uniqueName(prefix: string): string {
  return `${prefix}-${randomBytes(5).toString('hex')}`;
}

import { createServer, type Server, type Socket } from 'node:net';
import { openCalls } from './calls.ts';
import type { DatabaseSession, Fault, OracleError } from './database.ts';

/**
 * A server that speaks Oracle's wire protocol as far as our driver needs it. It proves our code against the real driver; it
 * proves nothing of Oracle. Whatever it does not know ends the connection.
 */

export interface Account {
  readonly user: string;
  readonly password: string;
  /** What login ends with instead. */
  refuse?: OracleError;
}

/** Where a fault happens. */
export type FaultPlace = 'statement' | 'commit' | 'rollback' | 'connect';

export interface Listener {
  readonly port: number;
  /** By name of the service. */
  readonly accounts: Map<string, Account>;
  /** Happens each time until it is taken back with null. */
  inject(place: FaultPlace, fault: Fault | null, when?: FaultTime): void;
  /** Calls since the listener began, by kind: a statement, a step of making a LOB, an end of a transaction. */
  readonly calls: { statement: number; lob: number; commit: number; rollback: number };
  /** Closes every line, as a server that is killed does. */
  drop(): void;
  close(): Promise<void>;
}

export interface ListenerOptions {
  readonly port?: number;
  open(service: string, user: string): DatabaseSession;
}

export interface FaultTime {
  /** For statements that match. */
  readonly only?: RegExp;
  /** Only the n-th time, from 1. */
  readonly at?: number;
}

export interface Injected extends FaultTime {
  readonly fault: Fault;
  seen: number;
}

export async function startListener({ port = 0, open }: ListenerOptions): Promise<Listener> {
  const sockets = new Set<Socket>();
  const accounts = new Map<string, Account>();
  const faults = new Map<FaultPlace, Injected>();
  const calls = { statement: 0, lob: 0, commit: 0, rollback: 0 };
  const server: Server = createServer((socket) => {
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    openCalls(socket, { accounts, faults, calls, open });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  // A program that has nothing else to do may end.
  server.unref();
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as { port: number }).port,
    accounts,
    calls,
    inject(place, fault, when) {
      if (fault === null) faults.delete(place);
      else faults.set(place, { ...when, fault, seen: 0 });
    },
    drop,
    async close() {
      drop();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

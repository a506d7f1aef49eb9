import { ErrorCode, Events, type Msg, type MsgHdrs, type NatsConnection } from 'nats';
import { ReplayFault } from '../core/errors.ts';
import { deniedFault, faultOfClient } from './faults.ts';

const requestTimeoutMs = 5_000;

/** A connection with what happens to it: the client itself tells of a refused publish, or of a broken connection, only here. */
export interface Link {
  readonly nc: NatsConnection;
  /** `$JS.API`, or that of a domain. */
  readonly api: string;
  /** Of the connection's own inboxes. */
  readonly inboxPrefix: string | undefined;
  /** Throws while there is no connection: the client would keep the request for a later one, or wait in vain. */
  ensureUp(): void;
  /** Calls back once, when the connection breaks or a publish or subscription that `concerns` accepts is refused. */
  watch(concerns: (subject: string) => boolean, onFault: (fault: ReplayFault) => void): () => void;
}

interface Watcher {
  readonly concerns: (subject: string) => boolean;
  readonly onFault: (fault: ReplayFault) => void;
}

export interface LinkOptions {
  /** JetStream domain. */
  readonly domain?: string | undefined;
  /** As given to the connection. */
  readonly inboxPrefix?: string | undefined;
}

export function openLink(nc: NatsConnection, options: LinkOptions = {}): Link {
  const watchers = new Set<Watcher>();
  let down: ReplayFault | undefined;

  const tell = (fault: ReplayFault, subject?: string) => {
    for (const watcher of [...watchers]) {
      if (subject !== undefined && !watcher.concerns(subject)) continue;
      watchers.delete(watcher);
      watcher.onFault(fault);
    }
  };
  const breakDown = (fault: ReplayFault) => {
    down = fault;
    tell(fault);
  };
  const follow = async () => {
    for await (const status of nc.status()) {
      if (status.type === Events.Disconnect) {
        // A refused login ends the connection too, and is the better reason.
        breakDown(down?.code === 'nats_denied' ? down : new ReplayFault('nats_unreachable'));
      } else if (status.type === Events.Reconnect) down = undefined;
      else if (status.type === Events.Error) {
        if (status.permissionContext !== undefined) {
          tell(deniedFault(status.permissionContext), status.permissionContext.subject);
        } else if (isLoginError(status.data)) {
          breakDown(new ReplayFault('nats_denied', 'the server refused the login'));
        }
      }
    }
  };
  void follow();
  // The status does not end with the connection.
  void nc.closed().then(() => breakDown(new ReplayFault('nats_unreachable', 'the connection is closed')));

  return {
    nc,
    api: options.domain === undefined ? '$JS.API' : `$JS.${options.domain}.API`,
    inboxPrefix: options.inboxPrefix,
    ensureUp() {
      if (nc.isClosed()) throw new ReplayFault('nats_unreachable', 'the connection is closed');
      if (down !== undefined) throw down;
    },
    watch(concerns, onFault) {
      const watcher = { concerns, onFault };
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

function isLoginError(data: unknown): boolean {
  return (
    data === ErrorCode.AuthorizationViolation || data === ErrorCode.AuthenticationExpired || data === ErrorCode.AccountExpired
  );
}

export interface RequestOptions {
  readonly timeoutMs?: number;
  readonly headerBlock?: Uint8Array;
  readonly signal?: AbortSignal | undefined;
}

/** One request, one answer. Throws a fault, the signal's reason, or the client's own error for "no responders". */
export async function request(
  link: Link,
  subject: string,
  body: Uint8Array | string,
  options: RequestOptions = {},
): Promise<Msg> {
  const { timeoutMs = requestTimeoutMs, headerBlock, signal } = options;
  signal?.throwIfAborted();
  link.ensureUp();
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      unwatch();
      signal?.removeEventListener('abort', onAbort);
      act();
    };
    const onAbort = () => settle(() => reject(signal?.reason as Error));
    const unwatch = link.watch(
      () => false,
      (fault) => settle(() => reject(fault)),
    );
    signal?.addEventListener('abort', onAbort, { once: true });
    const headers = headerBlock === undefined ? {} : { headers: verbatim(headerBlock) };
    link.nc.request(subject, body, { timeout: timeoutMs, ...headers }).then(
      (message) => settle(() => resolve(message)),
      (error: unknown) => settle(() => reject(error)),
    );
  });
}

/** The client asks headers for nothing but their encoded form; its own builder would trim values and refuse names. */
export function verbatim(headerBlock: Uint8Array): MsgHdrs {
  return { encode: () => headerBlock } as unknown as MsgHdrs;
}

/** Runs what may throw the client's errors, and throws faults only. An abort's reason passes through. */
export async function withFaults<T>(signal: AbortSignal | undefined, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (signal?.aborted === true && error === signal.reason) throw error;
    throw faultOfClient(error);
  }
}

import type { NatsConnection } from 'nats';

/**
 * A connection whose process is lost at one point: just before its n-th message to the server is sent, or just after, so that the
 * server does what it says and the answer comes to nobody. Nothing of the caller runs on from there.
 */
export interface CrashingConnection {
  readonly nc: NatsConnection;
  /** Resolves when the point is reached; never, when there are fewer messages. */
  readonly crashed: Promise<void>;
  /** Messages sent so far. */
  sent(): number;
}

export function crashingConnection(real: NatsConnection, at: number, when: 'before' | 'after'): CrashingConnection {
  let count = 0;
  let isDead = false;
  let crash!: () => void;
  const crashed = new Promise<void>((resolve) => (crash = resolve));
  const never = new Promise<never>(() => undefined);
  const die = async (): Promise<void> => {
    isDead = true;
    await real.flush();
    crash();
  };
  /** What happens to a message: false when it is not sent. */
  const isSent = (): boolean => {
    if (isDead) return false;
    if (count++ !== at) return true;
    if (when === 'before') void die();
    return when === 'after';
  };
  const publish: NatsConnection['publish'] = (...message) => {
    if (!isSent()) return;
    real.publish(...message);
    if (count > at) void die();
  };
  const request: NatsConnection['request'] = async (...message) => {
    if (!isSent()) return await never;
    const answer = real.request(...message);
    if (count <= at) return await answer.then((one) => (isDead ? never : one));
    // The server's answer shows that it has done its part; nobody here hears of it.
    await answer.catch(() => undefined);
    await die();
    return await never;
  };
  const nc = new Proxy(real, {
    get(target, name) {
      if (name === 'publish') return publish;
      if (name === 'request') return request;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
  return { nc, crashed, sent: () => count };
}

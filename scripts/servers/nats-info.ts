import { createConnection } from 'node:net';

/** What a NATS server says of itself to everyone who connects, before any login. */
export interface NatsInfo {
  readonly server_name?: string;
  readonly version?: string;
  readonly jetstream?: boolean;
  readonly auth_required?: boolean;
  readonly tls_required?: boolean;
}

const defaultPort = 4222;
const infoBytesMax = 64 * 1024;

/** Reads the INFO line; null when nothing of NATS answers within the limit. */
export function readNatsInfo(host: string, port: number, timeoutMs: number): Promise<NatsInfo | null> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port });
    let text = '';
    const finish = (info: NatsInfo | null) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(info);
    };
    const timer = setTimeout(() => finish(null), timeoutMs);
    socket.on('error', () => finish(null));
    socket.on('end', () => finish(null));
    socket.on('data', (bytes) => {
      text += bytes.toString('utf8');
      if (text.includes('\r\n')) finish(parseInfo(text));
      else if (text.length > infoBytesMax) finish(null);
    });
  });
}

export function parseInfo(text: string): NatsInfo | null {
  const found = /^INFO (\{.*\})\s*\r\n/.exec(text);
  if (found === null) return null;
  try {
    return JSON.parse(found[1]!) as NatsInfo;
  } catch {
    return null;
  }
}

/** Host and port of each server in NATS_URL: several may be named, separated by commas; scheme and port may be missing. */
export function natsAddresses(urls: string): { host: string; port: number }[] {
  return urls
    .split(',')
    .map((url) => url.trim())
    .filter((url) => url !== '')
    .map((url) => {
      const { hostname, port } = new URL(url.includes('://') ? url : `nats://${url}`);
      return { host: hostname.replaceAll(/^\[|\]$/g, ''), port: Number(port || defaultPort) };
    });
}

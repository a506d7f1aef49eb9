import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  connect,
  credsAuthenticator,
  ErrorCode,
  NatsError,
  nkeyAuthenticator,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
  type Authenticator,
  type NatsConnection,
  type TlsOptions,
} from 'nats';
import { ReplayFault } from '../core/errors.ts';
import type { Parsed, Problem } from '../core/problems.ts';
import { faultOfClient } from './faults.ts';

const clientName = 'durable-replay';
const defaultUrl = 'nats://127.0.0.1:4222';
const connectTimeoutMs = 5_000;
const reconnectWaitMs = 500;
/** A connection that died without a word is noticed after two of these. */
const pingIntervalMs = 5_000;

export interface NatsSettings {
  readonly servers: readonly string[];
  /** At most one way to log in. */
  readonly login: Login;
  /** `null`: only when a server asks for it. */
  readonly tls: TlsFiles | null;
  readonly inboxPrefix?: string | undefined;
  /** JetStream domain. */
  readonly domain?: string | undefined;
}

/** Paths are read at each login, so that renewed files count without a restart. */
export type Login =
  | { readonly kind: 'none' }
  | { readonly kind: 'creds'; readonly file: string }
  | { readonly kind: 'nkey'; readonly file: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'token'; readonly token: string };

/** Paths of PEM files. */
export interface TlsFiles {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The variables of the `nats` command. All problems at once; no message holds a value. */
export function readNatsSettings(env: Environment): Parsed<NatsSettings> {
  const problems: Problem[] = [];
  const refuse = (path: string, message: string) => problems.push({ path, message });
  const get = (name: string) => {
    const value = env[name]?.trim();
    return value === undefined || value === '' ? undefined : value;
  };
  const urls = readUrls(get('NATS_URL') ?? defaultUrl, refuse);
  const logins = [...urls.logins, ...readLogins(get, refuse)];
  if (logins.length > 1) {
    const names = [...new Set(logins.map(({ name }) => name))].join(', ');
    refuse(logins[0]!.name, `more than one way to log in is set: ${names}; keep one`);
  }
  const tls = readTls(get, urls.secure, refuse);
  if (problems.length > 0) return { ok: false, problems };
  return {
    ok: true,
    value: {
      servers: urls.servers,
      login: logins[0]?.login ?? { kind: 'none' },
      tls,
      inboxPrefix: get('NATS_INBOX_PREFIX'),
      domain: get('NATS_JS_DOMAIN'),
    },
  };
}

type Get = (name: string) => string | undefined;
type Refuse = (path: string, message: string) => void;

interface NamedLogin {
  readonly name: string;
  readonly login: Login;
}

/** The client takes no user from a URL, so it is taken out here; it must be the same in all of them. */
function readUrls(text: string, refuse: Refuse): { servers: string[]; logins: NamedLogin[]; secure: boolean } {
  const servers: string[] = [];
  const logins = new Map<string, NamedLogin>();
  let secure = false;
  for (const part of text.split(',')) {
    const trimmed = part.trim();
    if (trimmed === '') continue;
    const url = parseUrl(/^[a-z]+:\/\//i.test(trimmed) ? trimmed : `nats://${trimmed}`);
    if (url === null || !['nats:', 'tls:'].includes(url.protocol)) {
      refuse('NATS_URL', 'expected nats://host:port or tls://host:port, or several of them with commas between');
      continue;
    }
    secure ||= url.protocol === 'tls:';
    if (url.username !== '') logins.set(`${url.username}:${url.password}`, { name: 'NATS_URL', login: loginOf(url) });
    servers.push(`nats://${url.host === '' ? '127.0.0.1' : url.host}`);
  }
  if (logins.size > 1) refuse('NATS_URL', 'its servers have different users; one is expected');
  return { servers, logins: [...logins.values()].slice(0, 1), secure };
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

function loginOf(url: URL): Login {
  const user = decodeURIComponent(url.username);
  return url.password === ''
    ? { kind: 'token', token: user }
    : { kind: 'password', user, password: decodeURIComponent(url.password) };
}

function readLogins(get: Get, refuse: Refuse): NamedLogin[] {
  const creds = get('NATS_CREDS');
  const nkey = get('NATS_NKEY');
  const user = get('NATS_USER');
  const password = get('NATS_PASSWORD');
  const token = get('NATS_TOKEN');
  if (user !== undefined && password === undefined) {
    refuse('NATS_PASSWORD', 'is missing: NATS_USER is set; a token goes into NATS_TOKEN');
  }
  if (user === undefined && password !== undefined) refuse('NATS_USER', 'is missing: NATS_PASSWORD is set');
  const logins: NamedLogin[] = [];
  if (creds !== undefined) logins.push({ name: 'NATS_CREDS', login: { kind: 'creds', file: creds } });
  if (nkey !== undefined) logins.push({ name: 'NATS_NKEY', login: { kind: 'nkey', file: nkey } });
  if (user !== undefined && password !== undefined) {
    logins.push({ name: 'NATS_USER', login: { kind: 'password', user, password } });
  }
  if (token !== undefined) logins.push({ name: 'NATS_TOKEN', login: { kind: 'token', token } });
  return logins;
}

function readTls(get: Get, secure: boolean, refuse: Refuse): TlsFiles | null {
  const ca = get('NATS_CA');
  const cert = get('NATS_CERT');
  const key = get('NATS_KEY');
  if (cert !== undefined && key === undefined) refuse('NATS_KEY', 'is missing: NATS_CERT is set');
  if (key !== undefined && cert === undefined) refuse('NATS_CERT', 'is missing: NATS_KEY is set');
  return secure || ca !== undefined || cert !== undefined ? { ca, cert, key } : null;
}

/** Reconnects for ever once connected. Throws `nats_unreachable` or `nats_denied`, without addresses, names or values. */
export async function connectNats(settings: NatsSettings): Promise<NatsConnection> {
  try {
    const tls = tlsOptions(settings.tls);
    return await connect({
      servers: [...settings.servers],
      name: clientName,
      timeout: connectTimeoutMs,
      maxReconnectAttempts: -1,
      reconnectTimeWait: reconnectWaitMs,
      // Otherwise two refused logins close the connection for good, also when a renewed file would let us in.
      ignoreAuthErrorAbort: true,
      pingInterval: pingIntervalMs,
      noAsyncTraces: true,
      ...authentication(settings.login),
      ...(tls === null ? {} : { tls }),
      ...(settings.inboxPrefix === undefined ? {} : { inboxPrefix: settings.inboxPrefix }),
    });
  } catch (error) {
    throw connectFault(error);
  }
}

function authentication(login: Login): { authenticator?: Authenticator } {
  switch (login.kind) {
    case 'none':
      return {};
    case 'creds':
      readSecretFile('NATS_CREDS', login.file);
      return { authenticator: credsAuthenticator(() => readSecretFile('NATS_CREDS', login.file)) };
    case 'nkey':
      readSecretFile('NATS_NKEY', login.file);
      return { authenticator: nkeyAuthenticator(() => readNkey(login.file)) };
    case 'password':
      return { authenticator: usernamePasswordAuthenticator(login.user, login.password) };
    case 'token':
      return { authenticator: tokenAuthenticator(login.token) };
  }
}

/** The seed's own line: such files may hold comments and a line end. */
function readNkey(file: string): Uint8Array {
  const text = readSecretFile('NATS_NKEY', file).toString('latin1');
  return Buffer.from(/^\s*(S[A-Z2-7]{20,})\s*$/m.exec(text)?.[1] ?? text.trim(), 'latin1');
}

function readSecretFile(name: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw new ReplayFault('nats_denied', `the file that ${name} names cannot be read`);
  }
}

function tlsOptions(files: TlsFiles | null): TlsOptions | null {
  if (files === null) return null;
  const { ca, cert, key } = files;
  if (ca !== undefined) readSecretFile('NATS_CA', ca);
  if (cert !== undefined) readSecretFile('NATS_CERT', cert);
  if (key !== undefined) readSecretFile('NATS_KEY', key);
  return {
    ...(ca === undefined ? {} : { caFile: ca }),
    ...(cert === undefined ? {} : { certFile: cert }),
    ...(key === undefined ? {} : { keyFile: key }),
  };
}

/** Codes of sockets, name look-ups and TLS hold no addresses; their messages do. */
function connectFault(error: unknown): Error {
  if (error instanceof ReplayFault) return error;
  if (error instanceof NatsError) {
    return error.code === ErrorCode.Timeout ? new ReplayFault('nats_unreachable') : faultOfClient(error);
  }
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code === 'string') return new ReplayFault('nats_unreachable', code);
  return new ReplayFault('nats_unreachable');
}

const drainMsMax = 5_000;

/** Lets what is on its way arrive, and closes. A server that is gone does not hold it up: a drain alone would wait for its return. */
export async function closeNats(connection: NatsConnection): Promise<void> {
  const waited = new AbortController();
  const drained = connection.drain().catch(() => undefined);
  await Promise.race([drained, sleep(drainMsMax, undefined, { signal: waited.signal }).catch(() => undefined)]);
  waited.abort();
  await connection.close();
}

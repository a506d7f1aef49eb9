import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { AwsClient } from 'aws4fetch';
import { ReplayFault } from '../core/errors.ts';
import { checkObjectName, type ColdStore } from './store.ts';

/** A bucket of an S3-compatible store. */
export interface S3Settings {
  readonly bucket: string;
  /** Empty, or ends with a slash. */
  readonly prefix: string;
  /** null: AWS itself. */
  readonly endpoint: string | null;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}

export interface S3Limits {
  /** Of one request, milliseconds. */
  readonly requestMs: number;
  readonly attemptsMax: number;
  /** Before the second attempt; then twice as long each time. Milliseconds. */
  readonly pauseMs: number;
  /** Names of one page of a listing. */
  readonly pageNames: number;
}

export const s3Limits: S3Limits = { requestMs: 60_000, attemptsMax: 6, pauseMs: 200, pageNames: 1_000 };

const pauseMsMax = 5_000;
/** Pages of one listing. */
const pagesMax = 10_000;
/** What a busy store answers, and one that sees two creations of a name at once (409): the same again. */
const passing = [408, 409, 429, 500, 502, 503, 504];

interface Answer {
  readonly status: number;
  readonly bytes: Uint8Array;
}

interface Ask {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  /** Below the bucket. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/** Cold segments as objects of an S3-compatible store that honours `If-None-Match: *`. */
export function createS3Store(settings: S3Settings, limits: S3Limits = s3Limits): ColdStore {
  const ask = createAsk(settings, limits);
  const keyOf = (name: string) => settings.prefix + checkObjectName(name);
  const putKey = async (path: string, body: Uint8Array, signal: AbortSignal): Promise<'stored' | 'exists'> => {
    const { status } = await ask({ method: 'PUT', path, body, headers: { 'If-None-Match': '*' } }, [200, 201, 412], signal);
    return status === 412 ? 'exists' : 'stored';
  };
  const getKey = async (path: string, signal: AbortSignal): Promise<Uint8Array | null> => {
    const { status, bytes } = await ask({ method: 'GET', path }, [200, 404], signal);
    if (status === 200) return bytes;
    const code = errorCode(bytes);
    if (code === 'NoSuchBucket') throw new ReplayFault('cold_denied', code);
    return null;
  };
  const removeKey = async (path: string, signal: AbortSignal): Promise<void> =>
    void (await ask({ method: 'DELETE', path }, [200, 204, 404], signal));
  return {
    put: async (name, bytes, signal) => await putKey(keyOf(name), bytes, signal),
    get: async (name, signal) => await getKey(keyOf(name), signal),
    remove: async (name, signal) => await removeKey(keyOf(name), signal),
    async list(prefix, signal) {
      checkObjectName(prefix.replace(/\/$/, ''));
      const names: string[] = [];
      let token: string | null = null;
      for (let page = 0; page < pagesMax; page++) {
        const query: Record<string, string> = {
          'list-type': '2',
          'max-keys': String(limits.pageNames),
          prefix: settings.prefix + prefix,
          ...(token === null ? {} : { 'continuation-token': token }),
        };
        const { bytes } = await ask({ method: 'GET', path: '', query }, [200], signal);
        const listed = readListing(Buffer.from(bytes).toString());
        for (const key of listed.keys) names.push(key.slice(settings.prefix.length));
        if (listed.next === null) return names.sort();
        token = listed.next;
      }
      throw new ReplayFault('unexpected', 'a listing of the cold store without an end');
    },
    async prove(signal) {
      const path = `${settings.prefix}probe-${randomBytes(8).toString('hex')}`;
      try {
        const answers = [
          await putKey(path, Buffer.from('1'), signal),
          await putKey(path, Buffer.from('2'), signal),
          Buffer.from((await getKey(path, signal)) ?? []).toString(),
        ];
        // A lost answer makes the first one exist already.
        if (answers[1] !== 'exists' || answers[2] !== '1') throw new ReplayFault('cold_unfit');
      } finally {
        await removeKey(path, signal).catch(() => undefined);
      }
    },
  };
}

/** One request, again while the store is busy or silent. Resolves to one of the expected statuses. Throws ReplayFault. */
function createAsk(settings: S3Settings, limits: S3Limits) {
  const { accessKeyId, secretAccessKey, sessionToken, region } = settings;
  const signer = new AwsClient({
    accessKeyId,
    secretAccessKey,
    region,
    service: 's3',
    ...(sessionToken === null ? {} : { sessionToken }),
  });
  const once = async ({ method, path, query = {}, headers = {}, body }: Ask, signal: AbortSignal): Promise<Answer> => {
    const url = new URL(urlOf(settings, path));
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const sha256 = createHash('sha256')
      .update(body ?? '')
      .digest('hex');
    const request = await signer.sign(url.href, {
      method,
      headers: { ...headers, 'X-Amz-Content-Sha256': sha256 },
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(limits.requestMs)]),
      ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
    });
    const response = await fetch(request);
    return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) };
  };
  return async (request: Ask, expected: readonly number[], signal: AbortSignal): Promise<Answer> => {
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted();
      const answer = await once(request, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        if (attempt < limits.attemptsMax) return null;
        throw new ReplayFault('cold_unavailable', 'no answer', { cause: error });
      });
      if (answer !== null && expected.includes(answer.status)) return answer;
      if (answer !== null && (attempt === limits.attemptsMax || !passing.includes(answer.status))) throw faultOf(answer);
      const pauseMs = Math.min(pauseMsMax, limits.pauseMs * 2 ** (attempt - 1));
      await sleep(pauseMs * (0.5 + Math.random() / 2), undefined, { signal });
    }
  };
}

function urlOf({ bucket, endpoint, region }: S3Settings, path: string): string {
  if (endpoint !== null) return `${endpoint}/${bucket}/${path}`;
  // A certificate for *.s3.REGION.amazonaws.com does not cover a bucket with dots.
  return bucket.includes('.')
    ? `https://s3.${region}.amazonaws.com/${bucket}/${path}`
    : `https://${bucket}.s3.${region}.amazonaws.com/${path}`;
}

/** The store's text may hold names and keys: only its code is passed on. */
function faultOf({ status, bytes }: Answer): ReplayFault {
  const code = errorCode(bytes);
  const detail = code === null ? `HTTP ${status}` : `HTTP ${status} ${code}`;
  if (passing.includes(status)) return new ReplayFault('cold_unavailable', detail);
  if (status === 507 || code === 'QuotaExceeded') return new ReplayFault('cold_full', detail);
  if (status === 501) return new ReplayFault('cold_unfit', detail);
  return new ReplayFault('cold_denied', detail);
}

function errorCode(bytes: Uint8Array): string | null {
  return /<Code>([A-Za-z0-9]{1,64})<\/Code>/.exec(Buffer.from(bytes).toString())?.[1] ?? null;
}

/** Our names need no escapes; what others have put there is passed over. */
function readListing(xml: string): { readonly keys: readonly string[]; readonly next: string | null } {
  const keys = [...xml.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key!).filter((key) => /^[\w./-]+$/.test(key));
  const isTruncated = /<IsTruncated>true<\/IsTruncated>/.test(xml);
  const token = /<NextContinuationToken>([^<]+)<\/NextContinuationToken>/.exec(xml)?.[1];
  if (isTruncated && token === undefined) throw new ReplayFault('cold_unavailable', 'a page of a listing without the next one');
  return { keys, next: isTruncated ? unescapeXml(token!) : null };
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    return entities[name!] ?? whole;
  });
}

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createFileStore } from '../../cold/file.ts';
import type { ColdStore } from '../../cold/store.ts';
import { createS3Store, s3Limits, type S3Limits } from '../../cold/s3.ts';
import { createColdStores } from '../../cold/stores.ts';
import { tempDir } from '../support/file-end.ts';
import { startFront, type Front } from '../support/http-front.ts';
import { seaweedEnv, seaweedSettings } from '../support/seaweed.ts';

/** A store that has to be started, on a machine that may be slow. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const never = new AbortController().signal;
const bytes = (text: string) => new TextEncoder().encode(text);

/** What every cold store does. */
describe.each<[string, () => Promise<ColdStore>]>([
  ['file', async () => createFileStore(join(await tempDir(), 'cold'))],
  ['s3', async () => createS3Store(await seaweedSettings())],
  ['s3, in small pages', async () => createS3Store(await seaweedSettings(), { ...s3Limits, pageNames: 2 })],
])('cold store: %s', (_, open) => {
  test('an object comes back as it was, and is never replaced', async () => {
    const store = await open();
    expect(await store.get('t/0000/a.jsonl', never)).toBeNull();
    expect(await store.put('t/0000/a.jsonl', bytes('one'), never)).toBe('stored');
    expect(await store.put('t/0000/a.jsonl', bytes('two'), never)).toBe('exists');
    expect(Buffer.from((await store.get('t/0000/a.jsonl', never))!).toString()).toBe('one');
  });

  test('of many that create one name at once, one does', async () => {
    const store = await open();
    const answers = await Promise.all(Array.from({ length: 20 }, (_unused, i) => store.put('t/a', bytes(`${i}`), never)));
    expect(answers.filter((answer) => answer === 'stored')).toHaveLength(1);
    const winner = answers.indexOf('stored');
    expect(Buffer.from((await store.get('t/a', never))!).toString()).toBe(`${winner}`);
  });

  test('empty and large objects', async () => {
    const store = await open();
    const large = Buffer.alloc(9 * 1_048_576, 'x');
    await store.put('t/empty', bytes(''), never);
    await store.put('t/large', large, never);
    expect(await store.get('t/empty', never)).toHaveLength(0);
    expect(Buffer.compare(Buffer.from((await store.get('t/large', never))!), large)).toBe(0);
  });

  test('lists below a folder, in order', async () => {
    const store = await open();
    expect(await store.list('t/', never)).toEqual([]);
    for (const name of ['t/0001/b', 't/0000/a', 't/0001/a', 'other/0000/a', 't2/0000/a'])
      await store.put(name, bytes(name), never);
    expect(await store.list('t/', never)).toEqual(['t/0000/a', 't/0001/a', 't/0001/b']);
    expect(await store.list('t/0001/', never)).toEqual(['t/0001/a', 't/0001/b']);
  });

  test('removes; twice is no error; the name is free again', async () => {
    const store = await open();
    await store.put('t/a', bytes('one'), never);
    await store.remove('t/a', never);
    await store.remove('t/a', never);
    expect(await store.get('t/a', never)).toBeNull();
    expect(await store.put('t/a', bytes('two'), never)).toBe('stored');
  });

  test.each(['../a', 't/../a', '/a', 'a//b', 'a/', '', '.put-x', 't/.hidden', 'a b', 'a\0', 'x'.repeat(513)])(
    'no object is named %j',
    async (name) => {
      const store = await open();
      await expect(store.put(name, bytes('x'), never)).rejects.toThrow(RangeError);
      await expect(store.get(name, never)).rejects.toThrow(RangeError);
    },
  );

  test('proves that it only creates', async () => {
    const store = await open();
    await store.put('t/a', bytes('one'), never);
    await store.prove(never);
    expect(await store.list('t/', never)).toEqual(['t/a']);
  });

  test('an aborted call does nothing', async () => {
    const store = await open();
    const aborted = AbortSignal.abort();
    await expect(store.put('t/a', bytes('one'), aborted)).rejects.toMatchObject({ name: 'AbortError' });
    expect(await store.get('t/a', never)).toBeNull();
  });
});

describe('cold store of files', () => {
  test('what a lost writer left is no object', async () => {
    const root = await tempDir();
    const store = createFileStore(root);
    await mkdir(join(root, 't'));
    await writeFile(join(root, 't/.put-0011223344556677'), 'half');
    expect(await store.list('t/', never)).toEqual([]);
    await store.put('t/a', bytes('one'), never);
    expect((await readdir(join(root, 't'))).sort()).toEqual(['.put-0011223344556677', 'a']);
  });

  test('a root that is a file is denied, without its path', async () => {
    const root = join(await tempDir(), 'SECRET');
    await writeFile(root, '');
    const put = createFileStore(root).put('t/a', bytes('one'), never);
    await expect(put).rejects.toMatchObject({ code: expect.stringMatching(/^cold_/) as unknown });
    await expect(put).rejects.not.toThrow(/SECRET/);
  });
});

describe('S3 store', () => {
  const impatient: S3Limits = { ...s3Limits, attemptsMax: 3, pauseMs: 1 };
  let settings: Awaited<ReturnType<typeof seaweedSettings>>;
  let front: Front;

  beforeAll(async () => {
    settings = await seaweedSettings();
    front = await startFront(settings);
  });

  const through = (limits = impatient) => createS3Store({ ...settings, endpoint: front.endpoint }, limits);

  /** The first requests of this method are treated so, the others pass. */
  function first(count: number, of: string, verdict: ReturnType<Parameters<Front['decide']>[0]>): void {
    let left = count;
    front.decide((method) => (method === of && left-- > 0 ? verdict : { kind: 'pass' }));
  }

  test.each([503, 409, 500, 429])('%i: the same again', async (status) => {
    const store = through();
    first(2, 'PUT', { kind: 'answer', status, body: '<Error><Code>SlowDown</Code></Error>' });
    expect(await store.put(`busy/${status}`, bytes('one'), never)).toBe('stored');
    first(2, 'GET', { kind: 'answer', status });
    expect(Buffer.from((await store.get(`busy/${status}`, never))!).toString()).toBe('one');
    first(9, 'GET', { kind: 'answer', status });
    await expect(store.get(`busy/${status}`, never)).rejects.toMatchObject({ code: 'cold_unavailable', kind: 'retry' });
  });

  test('an answer that is lost after the object was stored: it exists, and is the same', async () => {
    first(1, 'PUT', { kind: 'drop_answer' });
    expect(await through().put('lost/a', bytes('one'), never)).toBe('exists');
    expect(Buffer.from((await through().get('lost/a', never))!).toString()).toBe('one');
    first(1, 'PUT', { kind: 'hang_up' });
    expect(await through().put('lost/b', bytes('one'), never)).toBe('stored');
  });

  test('a store that does not answer in time is unavailable; an abort ends the wait', async () => {
    front.decide(() => ({ kind: 'silence' }));
    await expect(through({ ...impatient, requestMs: 50 }).get('slow/a', never)).rejects.toMatchObject({
      code: 'cold_unavailable',
    });
    const abort = new AbortController();
    const waiting = through().put('slow/b', bytes('one'), abort.signal);
    setTimeout(() => abort.abort(), 50);
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('a store that replaces objects is refused', async () => {
    front.decide(() => ({ kind: 'pass_unconditionally' }));
    await expect(through().prove(never)).rejects.toMatchObject({ code: 'cold_unfit', kind: 'stop' });
    first(9, 'PUT', { kind: 'answer', status: 501, body: '<Error><Code>NotImplemented</Code></Error>' });
    await expect(through().prove(never)).rejects.toMatchObject({ code: 'cold_unfit' });
    first(1, 'PUT', { kind: 'drop_answer' });
    await through().prove(never);
  });

  test('wrong login, missing bucket: denied, without secrets', async () => {
    const wrong = createS3Store({ ...settings, secretAccessKey: 'SECRET'.repeat(5) }, impatient);
    await expect(wrong.put('a', bytes('one'), never)).rejects.toMatchObject({ code: 'cold_denied' });
    await expect(wrong.put('a', bytes('one'), never)).rejects.not.toThrow(/SECRET|a\b\//);
    const missing = createS3Store({ ...settings, bucket: 'nowhere' }, impatient);
    await expect(missing.get('a', never)).rejects.toMatchObject({ code: 'cold_denied' });
    const nobody = createS3Store({ ...settings, endpoint: 'http://127.0.0.1:1' }, impatient);
    await expect(nobody.get('a', never)).rejects.toMatchObject({ code: 'cold_unavailable' });
  });

  test('settings: all that is missing at once, without values', async () => {
    const message = (env: Record<string, string>) => {
      try {
        createColdStores(env)('s3');
        return 'none';
      } catch (error) {
        return `${(error as { code?: string }).code} ${(error as Error).message}`;
      }
    };
    expect(message({})).toMatch(/^cold_unconfigured .*REPLAY_COLD_S3, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION/);
    const env = seaweedEnv(settings);
    expect(message(env)).toBe('none');
    expect(message({ ...env, REPLAY_COLD_S3: 'SECRET', REPLAY_COLD_S3_ENDPOINT: 'SECRET' })).toMatch(
      /REPLAY_COLD_S3, REPLAY_COLD_S3_ENDPOINT/,
    );
    expect(message({ ...env, REPLAY_COLD_S3: 'SECRET' })).not.toMatch(/SECRET/);
    const store = createColdStores(env)('s3');
    await store.prove(never);
    expect(await store.put('t/a', bytes('one'), never)).toBe('stored');
  });
});

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createFileStore } from '../../cold/file.ts';
import type { ColdStore } from '../../cold/store.ts';
import { tempDir } from '../support/file-end.ts';

const never = new AbortController().signal;
const bytes = (text: string) => new TextEncoder().encode(text);

/** What every cold store does. */
describe.each<[string, () => Promise<ColdStore>]>([['file', async () => createFileStore(join(await tempDir(), 'cold'))]])(
  'cold store: %s',
  (_, open) => {
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
  },
);

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

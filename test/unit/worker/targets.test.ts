import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSinkPool } from '../../../worker/sink-pool.ts';
import { createTargets } from '../../../worker/targets.ts';
import { tempDir } from '../../support/file-end.ts';

test('a target is named, never reached by a path', async () => {
  const folder = await tempDir();
  const targets = join(folder, 'targets');
  await mkdir(targets);
  const target = JSON.stringify({ sink: { type: 'file', directory: 'x' } });
  await writeFile(join(folder, 'outside.json'), target);
  await writeFile(join(targets, 'inside.json'), target);
  const log = { info() {}, warn() {} };
  const pool = createSinkPool({ dataRoot: folder, secret: () => '', log });
  const known = createTargets(targets, pool, null);
  expect((await known.resolve('inside')).ok).toBe(true);
  for (const name of [
    '../outside',
    'inside.json',
    '/etc/passwd',
    join(folder, 'outside'),
    '',
    '.',
    'a/b',
    '..\\outside',
    'none',
  ]) {
    expect((await known.resolve(name)).ok, name).toBe(false);
  }
});

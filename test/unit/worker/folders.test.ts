import { mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createReportFolder } from '../../../worker/folders.ts';
import { tempDir } from '../../support/file-end.ts';

test('a link below the report root must not lead out of it', async () => {
  const folder = await tempDir();
  const [root, outside] = [join(folder, 'reports'), join(folder, 'outside')];
  await mkdir(root);
  await mkdir(outside);
  await symlink(outside, join(root, 'link'));
  const reports = createReportFolder(root);
  await expect(reports.write('link/r.json', '{}')).rejects.toMatchObject({ code: 'report_unwritable' });
  expect(await readdir(outside)).toEqual([]);
  await reports.write('below/r.json', '{}');
  expect(await readdir(join(root, 'below'))).toEqual(['r.json']);
});

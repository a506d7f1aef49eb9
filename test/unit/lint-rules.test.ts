import { spawnSync } from 'node:child_process';
import { cp, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { tempDir } from '../support/file-end.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** As in a workflow: the call of an activity, whose promise somebody forgot. */
const source = `
import { proxyActivities } from '@temporalio/workflow';

interface Activities {
  acknowledge(count: number): Promise<void>;
}
const { acknowledge } = proxyActivities<Activities>({ startToCloseTimeout: '1 minute' });

export async function forgets(): Promise<void> {
  acknowledge(1);
}

export async function waits(): Promise<void> {
  await acknowledge(1);
}
`;

test('an activity that is not awaited is found: the rules that need types do run', async () => {
  const tree = await tempDir();
  await symlink(join(root, 'node_modules'), join(tree, 'node_modules'));
  await cp(join(root, '.oxlintrc.json'), join(tree, '.oxlintrc.json'));
  await writeFile(join(tree, 'tsconfig.json'), '{ "extends": "' + join(root, 'tsconfig.json') + '", "include": ["*.ts"] }');
  await writeFile(join(tree, 'plan.ts'), source);
  const args = [join(root, 'node_modules/oxlint/bin/oxlint'), '--type-aware', '--format', 'unix', '.'];
  const { stdout, status } = spawnSync(process.execPath, args, { cwd: tree, encoding: 'utf8', timeout: 30_000 });
  expect(status).toBe(1);
  expect(stdout.split('\n').filter((line) => line.includes('Error/'))).toEqual([
    expect.stringMatching(/plan\.ts:10:3: .*no-floating-promises/),
  ]);
});

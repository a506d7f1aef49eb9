import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from './servers/wheels.ts';

/**
 * `npm run test:long`: the tests with their long proofs switched on (REPLAY_TEST_LONG), those of MySQL on MariaDB, and then all
 * of them as `npm test` runs them on the newer Nodes, which come as the npm package `node`.
 */

const mysqlTests = ['test/contract/mysql.test.ts', 'test/integration/mysql/replay.test.ts'];
const newerNodes = ['22', '24'];
const projectFolder = fileURLToPath(new URL('..', import.meta.url));
const bootstrap = join(projectFolder, 'scripts', 'bootstrap.mjs');

async function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<number> {
  const child = spawn(command, args, { cwd: projectFolder, stdio: 'inherit', env: { ...process.env, ...env } });
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** Path of the program; kept in the cache folder from one run to the next. */
async function nodeProgram(major: string): Promise<string> {
  const folder = join(cacheFolder(process.env), `node-${major}`);
  const program = join(folder, 'node_modules', 'node', 'bin', 'node');
  if (!existsSync(program)) {
    const status = await run('npm', [
      'install',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
      '--prefix',
      folder,
      `node@${major}`,
    ]);
    if (status !== 0 || !existsSync(program)) throw new Error(`Node ${major} could not be had from the npm package "node"`);
  }
  return program;
}

const failed: string[] = [];
process.stdout.write(`The long proofs, on Node ${process.versions.node}\n`);
if ((await run(process.execPath, [bootstrap, 'scripts/test.ts'], { REPLAY_TEST_LONG: '1' })) !== 0)
  failed.push('the long proofs');
process.stdout.write('The tests of MySQL, on MariaDB\n');
if ((await run(process.execPath, [bootstrap, 'scripts/test.ts', ...mysqlTests], { REPLAY_TEST_MARIADB: '1' })) !== 0)
  failed.push('MariaDB');
for (const major of newerNodes) {
  const program = await nodeProgram(major);
  process.stdout.write(`All tests, on Node ${major}\n`);
  const path = `${dirname(program)}${delimiter}${process.env['PATH'] ?? ''}`;
  if ((await run(program, [bootstrap, 'scripts/test.ts'], { PATH: path })) !== 0) failed.push(`Node ${major}`);
}
process.stdout.write(failed.length === 0 ? 'Everything passed.\n' : `Failed: ${failed.join(', ')}.\n`);
process.exitCode = failed.length === 0 ? 0 : 1;

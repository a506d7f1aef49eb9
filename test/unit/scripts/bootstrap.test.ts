import { spawn } from 'node:child_process';
import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { tempDir } from '../../support/file-end.ts';

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const lock = {
  packages: { '': { name: 'clone' }, 'node_modules/tsx': { version: '1.0.0' }, 'node_modules/mac-only': { optional: true } },
};

/** Stands for npm: takes its time, writes what a finished install leaves, and counts how often it was called. */
const npm = `
const { appendFileSync, mkdirSync, symlinkSync, writeFileSync, existsSync } = require('node:fs');
appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n');
if (process.env.NPM_FAILS) { console.error('npm error network is down'); process.exit(7); }
setTimeout(() => {
  mkdirSync('node_modules', { recursive: true });
  if (!existsSync('node_modules/tsx')) symlinkSync(${JSON.stringify(join(root, 'node_modules/tsx'))}, 'node_modules/tsx');
  writeFileSync('node_modules/.package-lock.json', JSON.stringify({ packages: { 'node_modules/tsx': { version: '1.0.0' } } }));
}, 500);
`;

const script = `
const word: string = process.argv.slice(2).join('+');
if (word === 'wait') { process.on('SIGTERM', () => process.exit(9)); setInterval(() => {}, 1000); }
else process.exitCode = 5;
console.log('ran ' + word);
`;

describe('in a fresh clone', () => {
  test('packages are installed once, though two start at once; arguments and exit status go through', async () => {
    const clone = await makeClone();
    const both = await Promise.all([bootstrap(clone, ['one', 'two']).ended, bootstrap(clone, ['three']).ended]);
    expect(both.map(({ stdout }) => stdout.trim())).toEqual(['ran one+two', 'ran three']);
    expect(both.map(({ status }) => status)).toEqual([5, 5]);
    expect(both.map(({ stderr }) => stderr).join('')).toMatch(/^Installing packages \(npm ci\).*\n$/);
    expect(await npmCalls(clone)).toBe(1);
    await bootstrap(clone, []).ended;
    expect(await npmCalls(clone)).toBe(1);
  });

  test('another lock file installs again', async () => {
    const clone = await makeClone();
    await bootstrap(clone, []).ended;
    const changed = { packages: { ...lock.packages, 'node_modules/tsx': { version: '2.0.0' } } };
    await writeFile(join(clone, 'package-lock.json'), JSON.stringify(changed));
    await bootstrap(clone, []).ended;
    expect(await npmCalls(clone)).toBe(2);
  });

  test('a lock left by a killed start is no obstacle', async () => {
    const clone = await makeClone();
    const dead = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await new Promise((resolve) => dead.on('exit', resolve));
    await mkdir(join(clone, '.cache'));
    await writeFile(join(clone, '.cache/install.lock'), String(dead.pid));
    expect((await bootstrap(clone, ['go']).ended).stdout).toBe('ran go\n');
  });

  test('a failed install says so, and nothing is run', async () => {
    const clone = await makeClone();
    const { status, stdout, stderr } = await bootstrap(clone, [], { NPM_FAILS: '1' }).ended;
    expect(status).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/npm error network is down\nnpm ci failed \(exit status 7\), so nothing was run\. Check that/);
  });
});

test('a signal reaches the script, whose exit status comes back', async () => {
  const clone = await makeClone();
  const waiting = bootstrap(clone, ['wait']);
  await waiting.says('ran wait');
  waiting.kill('SIGTERM');
  expect((await waiting.ended).status).toBe(9);
});

test('the script ends when npm is gone', async () => {
  const clone = await makeClone();
  const command = `"${process.execPath}" scripts/bootstrap.mjs scripts/hello.ts wait; true`;
  const shell = run(clone, 'sh', ['-c', command], { npm_lifecycle_event: 'test' });
  await shell.says('ran wait');
  shell.kill('SIGKILL');
  // Standard output closes when the last process that holds it has ended.
  expect((await shell.ended).stdout).toContain('ran wait');
});

async function makeClone(): Promise<string> {
  const clone = await tempDir();
  await mkdir(join(clone, 'scripts'));
  await cp(join(root, 'scripts/bootstrap.mjs'), join(clone, 'scripts/bootstrap.mjs'));
  await writeFile(join(clone, 'package.json'), '{ "type": "module" }');
  await writeFile(join(clone, 'package-lock.json'), JSON.stringify(lock));
  await writeFile(join(clone, 'scripts/hello.ts'), script);
  await writeFile(join(clone, 'npm.cjs'), npm);
  await chmod(join(clone, 'npm.cjs'), 0o755);
  await symlink(join(clone, 'npm.cjs'), join(clone, 'npm.js'));
  return clone;
}

function bootstrap(clone: string, args: readonly string[], env: Record<string, string> = {}) {
  return run(clone, process.execPath, ['scripts/bootstrap.mjs', 'scripts/hello.ts', ...args], env);
}

function run(clone: string, command: string, args: readonly string[], env: Record<string, string>) {
  const child = spawn(command, args, {
    cwd: clone,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, npm_lifecycle_event: undefined, npm_execpath: join(clone, 'npm.js'), ...env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  return {
    ended: new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) =>
      child.on('close', (status) => resolve({ status, stdout, stderr })),
    ),
    says: (text: string) => expect.poll(() => stdout, { timeout: 15_000 }).toContain(text),
    kill: (signal: NodeJS.Signals) => child.kill(signal),
  };
}

async function npmCalls(clone: string): Promise<number> {
  return (await readFile(join(clone, 'npm-calls'), 'utf8')).trim().split('\n').length;
}

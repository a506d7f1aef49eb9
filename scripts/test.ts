import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { judge, type TestFile } from './test-result.ts';

/**
 * `npm test [-- arguments of vitest]`: starts the servers (test/support/global-setup.ts), runs vitest, stops everything. Ends
 * with a line `N passed, N failed`. A skipped test, or a suite without a run test, is a failure unless
 * REPLAY_TEST_ALLOW_SKIPPED=1 says that it is meant, or MySQL or Oracle is left out or given by its address (docs/mysql.md,
 * docs/oracle.md).
 */
const { env } = process;
const isOtherwise = (name: string) => env[`REPLAY_TEST_WITHOUT_${name}`] === '1' || Boolean(env[`REPLAY_TEST_${name}_URL`]);
const allowSkipped = env['REPLAY_TEST_ALLOW_SKIPPED'] === '1' || isOtherwise('MYSQL') || isOtherwise('ORACLE');
const runMs = 75 * 60_000;
const killAfterMs = 60_000;
const suites = ['unit', 'contract', 'workflow', 'replay', 'integration', 'faults'];

const parameters = process.argv.slice(2);
const folder = await mkdtemp(join(tmpdir(), 'durable-replay-results-'));
try {
  const file = join(folder, 'results.json');
  const exitStatus = await runVitest([...parameters, '--reporter=default', '--reporter=json', `--outputFile.json=${file}`]);
  const files = await readResults(file);
  // With arguments a part was asked for: the rest is left out on purpose.
  const required = parameters.length === 0 ? suites.filter(hasTests) : [];
  const verdict = judge({
    files,
    exitStatus,
    required,
    allowSkipped: allowSkipped || parameters.length > 0,
    root: process.cwd(),
  });
  for (const complaint of verdict.complaints) process.stderr.write(`${complaint}\n`);
  process.stdout.write(`${verdict.line}\n`);
  process.exitCode = verdict.failed > 0 ? 1 : 0;
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Signals are handed on once: vitest stops the servers, then ends. */
function runVitest(args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...args], { stdio: 'inherit' });
    const limit = setTimeout(() => {
      process.stderr.write(`The tests did not end within ${runMs / 60_000} minutes and were stopped.\n`);
      vitest.kill('SIGTERM');
      setTimeout(() => vitest.kill('SIGKILL'), killAfterMs).unref();
    }, runMs);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (signal !== 'SIGINT' || !process.stdin.isTTY) vitest.kill(signal);
      });
    }
    vitest.on('error', reject);
    vitest.on('exit', (status) => {
      clearTimeout(limit);
      resolve(status ?? 1);
    });
  });
}

function hasTests(suite: string): boolean {
  const path = join('test', suite);
  return existsSync(path) && readdirSync(path, { recursive: true }).some((name) => String(name).endsWith('.test.ts'));
}

/** Empty when vitest ended before it wrote any: then its exit status tells. */
async function readResults(file: string): Promise<readonly TestFile[]> {
  try {
    return (JSON.parse(await readFile(file, 'utf8')) as { testResults: TestFile[] }).testResults;
  } catch {
    return [];
  }
}

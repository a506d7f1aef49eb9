import { spawn } from 'node:child_process';

/** `npm run check`: what must hold of the sources before tests run. Runs everything, then says what failed. */
interface Check {
  readonly name: string;
  readonly args: readonly string[];
  /** What to do when it is red. */
  readonly hint: string;
}

const folders = 'activities bench client cold core examples jetstream platform scripts sinks test worker workflows'.split(' ');
const checks: readonly Check[] = [
  {
    name: 'types',
    args: ['node_modules/typescript/bin/tsc', '-p', '.', '--incremental', '--tsBuildInfoFile', '.cache/tsc.json'],
    hint: 'mend the types',
  },
  {
    name: 'lint',
    args: ['node_modules/oxlint/bin/oxlint', '--type-aware', '--deny-warnings'],
    hint: 'mend what it names; npx oxlint --fix mends some of it',
  },
  {
    name: 'format',
    args: [
      'node_modules/prettier/bin/prettier.cjs',
      '--check',
      '--cache',
      '--cache-location',
      '.cache/prettier',
      '--log-level',
      'warn',
      '.',
    ],
    hint: 'npx prettier --write .',
  },
  {
    name: 'imports',
    args: ['node_modules/dependency-cruiser/bin/dependency-cruise.mjs', '--config', '.dependency-cruiser.cjs', ...folders],
    hint: 'see "Who may import whom" in ARCHITECTURE.md',
  },
  { name: 'dead code', args: ['node_modules/knip/bin/knip.js', '--no-progress'], hint: 'remove what nobody uses' },
  { name: 'docs', args: ['--import', 'tsx', 'scripts/docs.ts', '--check'], hint: 'npm run docs' },
];
/** Most of them use one core. */
const atOnce = 2;
const checkMs = 10 * 60_000;

interface Result {
  readonly check: Check;
  readonly ok: boolean;
  readonly seconds: number;
  readonly output: string;
}

const waiting = [...checks];
const results: Result[] = [];
await Promise.all(Array.from({ length: atOnce }, work));
const failed = results.filter(({ ok }) => !ok);
for (const { check, output } of failed) process.stdout.write(`\n--- ${check.name} ---\n${output.trim()}\n-> ${check.hint}\n`);
process.stdout.write(`\n${results.length - failed.length} checks passed, ${failed.length} failed\n`);
process.exitCode = failed.length === 0 ? 0 : 1;

async function work(): Promise<void> {
  for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
    const result = await run(check);
    results.push(result);
    process.stdout.write(`${result.ok ? 'ok    ' : 'FAILED'} ${check.name.padEnd(10)} ${result.seconds.toFixed(1)} s\n`);
  }
}

function run(check: Check): Promise<Result> {
  return new Promise((resolve) => {
    const started = performance.now();
    let output = '';
    const finish = (ok: boolean) => resolve({ check, ok, seconds: (performance.now() - started) / 1000, output });
    const child = spawn(process.execPath, [...check.args], { stdio: ['ignore', 'pipe', 'pipe'], timeout: checkMs });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes.toString('utf8')));
    child.on('error', (error) => {
      output += error.message;
      finish(false);
    });
    child.on('close', (status, signal) => {
      if (signal !== null) output += `\nstopped by ${signal} (limit: ${checkMs / 60_000} minutes)`;
      finish(status === 0);
    });
  });
}

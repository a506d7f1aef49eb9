import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { chmod, copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';

/** `npm run build`: dist, which runs under plain node. */
const entry = 'dist/client/main.js';
const workflowBundle = 'dist/workflow-bundle.js';
const compileMs = 5 * 60_000;

await rm('dist', { recursive: true, force: true });
compile();
for (const file of ['scripts/servers/guardian.mjs', ...certifications()]) await copyFile(file, join('dist', file));
await makeExecutable(entry);
await bundleWorkflows();
process.stdout.write(`Built dist: node ${entry} --help\n`);

/** Without its evidence a built worker would refuse to run into a sink. */
function certifications(): string[] {
  return readdirSync('sinks', { recursive: true, encoding: 'utf8' })
    .filter((name) => basename(name) === 'certification.json')
    .map((name) => join('sinks', name));
}

function compile(): void {
  const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], {
    stdio: 'inherit',
    timeout: compileMs,
  });
  if (tsc.status === 0) return;
  process.stderr.write('tsc failed, so nothing was built: mend the types it names.\n');
  process.exit(1);
}

async function makeExecutable(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  if (!text.startsWith('#!/usr/bin/env node\n')) throw new Error(`${file} must begin with #!/usr/bin/env node`);
  await chmod(file, 0o755);
}

/** So that a worker starts without a bundler at work, and runs exactly what was built. */
async function bundleWorkflows(): Promise<void> {
  const quiet = () => {};
  const say = (_level: string, message: string) => process.stderr.write(`${message}\n`);
  const logger = {
    log: say,
    trace: quiet,
    debug: quiet,
    info: quiet,
    warn: (message: string) => say('WARN', message),
    error: (message: string) => say('ERROR', message),
  };
  const { code } = await bundleWorkflowCode({ workflowsPath: resolve('workflows/index.ts'), logger });
  await writeFile(workflowBundle, code);
}

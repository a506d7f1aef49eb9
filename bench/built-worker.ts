import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const projectFolder = fileURLToPath(new URL('..', import.meta.url));

/** Builds the package and starts its worker: what users run, without the TypeScript loader. Resolves when it polls. */
export async function startBuiltWorker(env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  build();
  const child = spawn(process.execPath, ['dist/client/main.js', 'worker'], {
    cwd: projectFolder,
    env: { ...process.env, REPLAY_METRICS_ADDRESS: 'off', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      if (chunk.includes('worker polls')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the worker ended with ${code}`)));
  });
  return child;
}

function build(): void {
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/build.ts'], {
    cwd: projectFolder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error('the build failed');
}

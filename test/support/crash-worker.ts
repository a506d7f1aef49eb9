import { setTimeout as sleep } from 'node:timers/promises';
import type { Deps } from '../../activities/deps.ts';
import { runWorker, workerOptions } from '../../worker/main.ts';
import { crashingDeps, type Crash } from './crash-points.ts';

/** A worker process that ends itself, or stops its event loop, at a named point. Waits for its order. */
export interface CrashOrder {
  readonly env: Record<string, string>;
  readonly taskQueue: string;
  readonly workflowBundle: string;
  readonly crash: Crash | null;
  /** Instead of dying: the event loop stands still for so long, milliseconds. */
  readonly blockMs?: number;
}

const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());
process.once('message', (order: CrashOrder) => void obey(order));
process.send?.('waiting');

async function obey({ env, taskQueue, workflowBundle, crash, blockMs }: CrashOrder): Promise<void> {
  Object.assign(process.env, env);
  const options = workerOptions(process.env, stop.signal);
  if (!options.ok) throw new Error(JSON.stringify(options.problems));
  const wrapDeps = (deps: Deps): Deps => (crash === null ? deps : crashingDeps(deps, crash, () => end(blockMs)));
  await runWorker({
    ...options.value,
    onReady: () => process.send?.('ready'),
    seams: { taskQueue, workflowBundle, wrapDeps },
  });
  process.disconnect();
}

async function end(blockMs: number | undefined): Promise<never> {
  if (blockMs === undefined) process.kill(process.pid, 'SIGKILL');
  else for (const until = Date.now() + blockMs; Date.now() < until;);
  // A signal to oneself is delivered at once, but not before the call returns.
  if (blockMs === undefined) await sleep(60_000);
  return undefined as never;
}

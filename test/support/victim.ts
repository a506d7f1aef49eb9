import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Bench, Place } from './fault-bench.ts';
import { placeEnvironment } from './fault-bench.ts';
import { atFileEnd } from './file-end.ts';
import type { CrashOrder } from './crash-worker.ts';

export interface Victim {
  /** Resolves to the signal that ended it, or to null when it ended by itself. */
  readonly ended: Promise<NodeJS.Signals | null>;
  /** Its standard error so far. */
  log(): string;
  signal(signal: NodeJS.Signals): void;
}

const readyMsMax = 60_000;

/** A worker process under an order; polling when this resolves. */
export async function startVictim(bench: Bench, place: Place, order: Pick<CrashOrder, 'crash' | 'blockMs'>): Promise<Victim> {
  const child = fork(fileURLToPath(new URL('./crash-worker.ts', import.meta.url)), {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let log = '';
  child.stderr!.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const ended = new Promise<NodeJS.Signals | null>((resolve) => child.once('exit', (_, signal) => resolve(signal)));
  atFileEnd(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the worker was not ready in time:\n${log}`)), readyMsMax);
    child.on('message', (word) => {
      if (word === 'waiting') child.send({ ...order, ...shared(bench, place) } satisfies CrashOrder);
      else resolve();
    });
    void ended.then(() => reject(new Error(`the worker ended before it polled:\n${log}`))).finally(() => clearTimeout(timer));
    child.on('message', (word) => word === 'ready' && clearTimeout(timer));
  });
  return { ended, log: () => log, signal: (signal) => void child.kill(signal) };
}

function shared(bench: Bench, place: Place): Pick<CrashOrder, 'env' | 'taskQueue' | 'workflowBundle'> {
  return { env: placeEnvironment(place), taskQueue: place.taskQueue, workflowBundle: bench.workflowBundle };
}

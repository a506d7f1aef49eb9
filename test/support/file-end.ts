import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const steps: (() => Promise<unknown>)[] = [];

/** Runs after the last hook of this test file; the step registered last runs first. */
export function atFileEnd(step: () => Promise<unknown>): void {
  steps.push(step);
}

export async function runAtFileEnd(): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps.splice(0).reverse()) await step().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw new AggregateError(failures, 'cleaning up after this test file failed');
}

/** A new folder, removed when this test file ends. */
export async function tempDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'durable-replay-test-'));
  atFileEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

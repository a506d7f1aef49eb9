import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from './run-program.ts';
import type { Say } from './setup-error.ts';
import { adopt, type Fetched, runs, withBuildFolder } from './wheels.ts';

const downloadMs = 300_000;
const programBytesMin = 1024 * 1024;

/**
 * The Temporal CLI as Temporal's own SDK downloads it for tests. In a process of its own, since it starts a Temporal
 * runtime, of which a process can have one only, and the caller's may need other settings.
 */
export async function downloadTemporal(cache: string, say: Say): Promise<Fetched> {
  const path = join(cache, 'temporal-from-sdk');
  if (await runs(path)) return { ok: true, path };
  return withBuildFolder(cache, async (folder) => {
    let testing: string;
    try {
      testing = import.meta.resolve('@temporalio/testing');
    } catch {
      return { ok: false, reason: 'the package @temporalio/testing, which could download it, is not installed' };
    }
    say(`Downloading the Temporal CLI with Temporal's own SDK into ${cache} ...`);
    const script = `
      const { TestWorkflowEnvironment } = (await import(${JSON.stringify(testing)})).default;
      const executable = { type: 'cached-download', downloadDir: ${JSON.stringify(folder)} };
      const environment = await TestWorkflowEnvironment.createLocal({ server: { executable } });
      await environment.teardown();
    `;
    const finished = await runProgram(process.execPath, ['--input-type=module', '--eval', script], downloadMs);
    const program = await largestFile(folder);
    if (program === null) {
      const cause = /^\S*Error: .*$/m.exec(finished.stderr)?.[0] ?? `exit status ${finished.status}`;
      return { ok: false, reason: `the download by Temporal's SDK failed: ${cause}` };
    }
    return adopt(program, path);
  });
}

async function largestFile(folder: string): Promise<string | null> {
  let largest: { path: string; bytes: number } | null = null;
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const facts = await stat(path);
    if (facts.isFile() && facts.size > (largest?.bytes ?? programBytesMin)) largest = { path, bytes: facts.size };
  }
  return largest?.path ?? null;
}

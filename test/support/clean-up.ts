import { afterAll } from 'vitest';
import { childProcesses } from './processes.ts';
import { runAtFileEnd } from './file-end.ts';

const childrenGoneMs = 5_000;
const pollMs = 50;

const before = new Set((await childProcesses(process.pid)).map(({ pid }) => pid));

/** Registered before any hook of the test file, so it runs after all of them. */
afterAll(async () => {
  await runAtFileEnd();
  await assertNoChildLeft();
}, 60_000);

async function assertNoChildLeft(): Promise<void> {
  const deadline = Date.now() + childrenGoneMs;
  for (;;) {
    const left = (await childProcesses(process.pid)).filter(({ pid }) => !before.has(pid));
    if (left.length === 0) return;
    if (Date.now() > deadline) {
      const list = left.map(({ pid, command }) => `${pid} ${command}`).join('\n');
      throw new Error(`This test file left processes running; end them in the test that starts them:\n${list}`);
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

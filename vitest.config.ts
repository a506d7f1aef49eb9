import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** How many test files that use servers run at once: more than one makes timing tests unreliable on a small machine. */
const serverWorkers = Number(process.env['REPLAY_TEST_WORKERS'] ?? 1);

/** As in tsconfig.json: the public faces of this package, for the sink of the example. */
const alias = {
  'durable-replay/sinks': fileURLToPath(new URL('sinks/public.ts', import.meta.url)),
  'durable-replay/contract': fileURLToPath(new URL('test/contract/public.ts', import.meta.url)),
};

export default defineConfig({
  resolve: { alias },
  test: {
    pool: 'forks',
    allowOnly: false,
    passWithNoTests: false,
    teardownTimeout: 30_000,
    projects: [
      {
        resolve: { alias },
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles: ['test/support/clean-up.ts'],
          pool: 'forks',
          maxWorkers: 2,
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        resolve: { alias },
        test: {
          name: 'servers',
          include: [
            'test/{contract,workflow,replay,integration,faults}/**/*.test.ts',
            // Needs a browser, which not every machine has.
            ...(process.env['REPLAY_TEST_LONG'] === '1' ? ['test/ui/**/*.test.ts'] : []),
          ],
          globalSetup: ['test/support/global-setup.ts'],
          setupFiles: ['test/support/clean-up.ts'],
          pool: 'forks',
          maxWorkers: serverWorkers,
          testTimeout: 60_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});

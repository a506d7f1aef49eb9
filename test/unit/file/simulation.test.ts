import { beforeEach, expect, test, vi } from 'vitest';
import { simulate } from './simulation.ts';
import type { Scenario } from './simulation.ts';

/** More seeds: REPLAY_SIMULATION_SEEDS=500 npx vitest run test/unit/file/simulation.test.ts */
const SEEDS = Number(process.env['REPLAY_SIMULATION_SEEDS'] ?? 5);
const TIMEOUT_MS = 60_000 + SEEDS * 3_000;

beforeEach(() => {
  // No pauses between the attempts of a fenced writer: the seed decides who goes on.
  vi.spyOn(Math, 'random').mockReturnValue(0);
});

async function violationsOf(scenario: Omit<Scenario, 'seed'>, firstSeed: number): Promise<string[]> {
  const found: string[] = [];
  for (let seed = firstSeed; seed < firstSeed + SEEDS; seed++) {
    const { violations } = await simulate({ seed, ...scenario });
    found.push(...violations.map((violation) => `seed ${seed}: ${violation}`));
  }
  return found;
}

test.each<[string, Omit<Scenario, 'seed'>]>([
  ['two writers that stall', { writers: 2, batchesEach: 5, deaths: 0 }],
  ['three writers that stall and die', { writers: 3, batchesEach: 4, deaths: 0.005 }],
  ['three writers that stall and die, compressed', { writers: 3, batchesEach: 3, deaths: 0.005, compression: 'gzip' }],
  ['one writer that dies often', { writers: 1, batchesEach: 8, deaths: 0.03 }],
  ['two writers, and power is lost', { writers: 2, batchesEach: 5, deaths: 0.005, powerLosses: 0.005 }],
  ['three writers, and power is lost', { writers: 3, batchesEach: 4, deaths: 0.005, powerLosses: 0.01 }],
])('%s: nothing is lost, doubled or out of order', { timeout: TIMEOUT_MS }, async (_, scenario) => {
  expect(await violationsOf(scenario, 1)).toEqual([]);
});

test('the simulation notices writers that do not see each other', { timeout: TIMEOUT_MS }, async () => {
  expect(await violationsOf({ writers: 3, batchesEach: 4, deaths: 0, flaw: 'blind' }, 1)).not.toEqual([]);
});

test('the simulation notices a disk that does not sync', { timeout: TIMEOUT_MS }, async () => {
  const scenario = { writers: 1, batchesEach: 8, deaths: 0, powerLosses: 0.01, flaw: 'no_sync' } as const;
  expect(await violationsOf(scenario, 1)).not.toEqual([]);
});

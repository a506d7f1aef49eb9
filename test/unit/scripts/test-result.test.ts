import { describe, expect, test } from 'vitest';
import { judge, type Run } from '../../../scripts/test-result.ts';

const file = (name: string, statuses: readonly string[], status = 'passed') => ({
  name: `/clone/test/${name}`,
  status,
  assertionResults: statuses.map((one, index) => ({ status: one, fullName: `${name} ${index}` })),
});
const run = (changes: Partial<Run>): Run => ({
  files: [file('unit/a.test.ts', ['passed', 'passed'])],
  exitStatus: 0,
  required: ['unit'],
  allowSkipped: false,
  root: '/clone',
  ...changes,
});

describe('the verdict on a run', () => {
  test('all passed', () => {
    expect(judge(run({}))).toEqual({ line: '2 passed, 0 failed', failed: 0, complaints: [] });
  });

  test('a failed test', () => {
    const files = [file('unit/a.test.ts', ['passed', 'failed'], 'failed')];
    expect(judge(run({ files, exitStatus: 1 }))).toEqual({ line: '1 passed, 1 failed', failed: 1, complaints: [] });
  });

  test.each(['skipped', 'pending', 'todo'])('a test that is %s', (status) => {
    const files = [file('unit/a.test.ts', ['passed', status])];
    expect(judge(run({ files })).line).toBe('1 passed, 1 failed');
    expect(judge(run({ files, allowSkipped: true }))).toMatchObject({ line: '1 passed, 0 failed, 1 skipped', failed: 0 });
  });

  test('a suite of which nothing ran', () => {
    const files = [file('unit/a.test.ts', ['passed']), file('contract/b.test.ts', ['skipped'])];
    const verdict = judge(run({ files, required: ['unit', 'contract', 'replay'], allowSkipped: true }));
    expect(verdict.failed).toBe(2);
    expect(verdict.complaints.join('\n')).toMatch(/suite contract[^]*suite replay/);
  });

  test('a file that cannot be loaded', () => {
    const files = [file('unit/a.test.ts', ['passed']), file('unit/b.test.ts', [], 'failed')];
    expect(judge(run({ files, exitStatus: 1 }))).toMatchObject({ line: '1 passed, 1 failed', failed: 1 });
  });

  test('a hook that fails keeps its tests from running: one failure', () => {
    const files = [file('unit/a.test.ts', ['passed']), file('unit/b.test.ts', ['skipped', 'skipped'], 'failed')];
    expect(judge(run({ files, exitStatus: 1 }))).toMatchObject({ line: '1 passed, 1 failed', failed: 1 });
  });

  test('vitest failed, or ran nothing at all', () => {
    expect(judge(run({ exitStatus: 1 })).failed).toBe(1);
    expect(judge(run({ files: [], exitStatus: 1, required: [] })).line).toBe('0 passed, 1 failed');
  });
});

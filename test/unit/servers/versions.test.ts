import { expect, test } from 'vitest';
import { isAtLeast, parseVersion } from '../../../scripts/servers/versions.ts';

test.each([
  ['nats-server: v2.15.1', [2, 15, 1]],
  ['nats-server: v2.12.0-RC.3', [2, 12, 0]],
  ['temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)', [1, 9, 1]],
  ['version 2.10', [2, 10, 0]],
  ['unknown', null],
])('%s', (text, version) => {
  expect(parseVersion(text)).toEqual(version);
});

test.each([
  [[2, 10, 0], true],
  [[2, 9, 25], false],
  [[2, 14, 1], true],
  [[3, 0, 0], true],
  [[1, 99, 99], false],
] as const)('%j is at least 2.10.0: %s', (version, answer) => {
  expect(isAtLeast(version, [2, 10, 0])).toBe(answer);
});

test('the patch level counts', () => {
  expect([isAtLeast([2, 14, 1], [2, 14, 2]), isAtLeast([2, 14, 2], [2, 14, 2])]).toEqual([false, true]);
});

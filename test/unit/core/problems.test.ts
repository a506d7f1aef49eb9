import { expect, test } from 'vitest';
import { problemsMax } from '../../../core/limits.ts';
import {
  anyOf,
  boundedProblems,
  counted,
  formatPath,
  formatProblems,
  groupDigits,
  nearest,
  shown,
} from '../../../core/problems.ts';

test('paths are written as the user writes them', () => {
  expect(formatPath(['replay', 'subject_filters', 2])).toBe('replay.subject_filters[2]');
  expect(formatPath([])).toBe('');
  expect(formatPath(['a', 'b c', ''])).toBe('a["b c"][""]');
  expect(formatPath(['\u001b[31m'])).toBe('["\\u001b[31m"]');
  expect(formatPath(['x'.repeat(500)]).length).toBeLessThan(70);
});

test('shown values are short, on one line and printable', () => {
  expect(shown('a\nb\u001b\u0085\u202e\u2028\ud800"')).toBe('"a\\nb\\u001b\\u0085\\u202e\\u2028\\ud800\\""');
  expect(shown('x'.repeat(1_000_000))).toBe(`"${'x'.repeat(60)}…"`);
  expect(shown('😀'.repeat(100))).toBe(`"${'😀'.repeat(60)}…"`);
  expect(shown(12n)).toBe('12');
  expect(shown({ a: 1 })).toBe('an object');
  expect(shown([])).toBe('an empty list');
  expect(shown([1, 2])).toBe('a list of 2');
  expect(shown(null)).toBe('null');
});

test('one problem a line', () => {
  expect(
    formatProblems([
      { path: 'a.b', message: 'x' },
      { path: '', message: 'y' },
    ]),
  ).toBe('a.b: x\ny');
});

test('repetitions are dropped and the list is bounded', () => {
  const problem = (n: number) => ({ path: 'a', message: `${n}` });
  expect(boundedProblems([problem(1), problem(1)])).toEqual([problem(1)]);
  const many = boundedProblems(Array.from({ length: 1000 }, (_, n) => problem(n)));
  expect(many).toHaveLength(problemsMax + 1);
  expect(many.at(-1)!.message).toContain('more problems');
});

test.each([
  ['max_message', 'max_messages'],
  ['maxMessages', 'max_messages'],
  ['subject-filters', 'subject_filters'],
  ['steam', 'stream'],
  ['window', undefined],
  ['', undefined],
  ['x'.repeat(100_000), undefined],
])('nearest to %s', (name, expected) => {
  expect(nearest(name, ['stream', 'subject_filters', 'max_messages', 'batch_size'])).toBe(expected);
});

test('words', () => {
  expect(anyOf([])).toBe('');
  expect(anyOf(['a'])).toBe('a');
  expect(anyOf(['a', 'b', 'c'])).toBe('a, b or c');
  expect(groupDigits(1048576)).toBe('1,048,576');
  expect(groupDigits(999)).toBe('999');
  expect([0, 1, 2_000].map((count) => counted(count, 'record'))).toEqual(['0 records', '1 record', '2,000 records']);
});

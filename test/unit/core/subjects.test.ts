import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { familyOf, filterProblem, literalSubjectProblem, matches, nameProblem, overlaps } from '../../../core/subjects.ts';

describe('filters', () => {
  test.each([
    'orders',
    'orders.created',
    'orders.*',
    'orders.>',
    '>',
    '*',
    '*.*.x',
    'a.*.>',
    '$KV.bucket.>',
    'größe.ß',
    'a-b_c.1',
    'x'.repeat(1024),
  ])('legal: %s', (filter) => {
    expect(filterProblem(filter)).toBeUndefined();
  });

  test.each([
    ['', 'is empty'],
    ['.', 'an empty token'],
    ['a..b', 'an empty token'],
    ['.a', 'an empty token'],
    ['a.', 'an empty token'],
    ['s..>>', 'an empty token'],
    ['a.>.b', 'not the last token'],
    ['>.a', 'not the last token'],
    ['a*b', 'wildcard inside a token'],
    ['a.b>', 'wildcard inside a token'],
    ['a.>>', 'wildcard inside a token'],
    ['a.**', 'wildcard inside a token'],
    ['a b', 'a space'],
    ['a.b\n', 'a space'],
    ['a\u0000', 'unprintable'],
    ['a\u007f', 'unprintable'],
    ['a\ud800', 'unprintable'],
    ['x'.repeat(1025), 'longer than 1,024 bytes'],
    ['é'.repeat(513), 'longer than 1,024 bytes'],
  ])('illegal: %j', (filter, wrong) => {
    expect(filterProblem(filter)).toContain(wrong);
  });
});

describe('literal subjects', () => {
  test('legal', () => expect(literalSubjectProblem('dlq.orders')).toBeUndefined());
  test.each(['dlq.*', 'dlq.>', '*', 'a*b', '', 'a..b', 'a b', '$JS.API.STREAM.DELETE.ORDERS', '$SYS.x', '_INBOX.a'])(
    'illegal: %j',
    (subject) => {
      expect(literalSubjectProblem(subject)).toContain('expected a subject without wildcards');
    },
  );
});

describe('names', () => {
  test.each(['ORDERS', 'orders-replay-2026-05', 'a', '1', 'ü', 'x'.repeat(255)])('legal: %s', (name) => {
    expect(nameProblem(name)).toBeUndefined();
  });
  test.each([
    '',
    'a.b',
    'a*',
    '>',
    'a/b',
    'a\\b',
    'a b',
    'a\t',
    'a\u0000',
    'a\u2028',
    '\ud800',
    'x'.repeat(256),
    'é'.repeat(128),
  ])('illegal: %j', (name) => {
    expect(nameProblem(name)).toContain('expected a name');
  });
});

test.each([
  ['orders.>', 'orders.created', true],
  ['orders.>', 'orders', false],
  ['orders.>', 'ordersX.created', false],
  ['orders.*', 'orders.a.b', false],
  ['>', 'a', true],
  ['*', 'a', true],
  ['a.*.>', 'a.b', false],
  ['a.*.>', 'a.b.c', true],
])('%s takes %s: %s', (filter, subject, expected) => {
  expect(matches(filter, subject)).toBe(expected);
});

test.each([
  ['orders.created', 'orders.>'],
  ['orders', 'orders'],
  ['*.created', '*.>'],
  ['>', '>'],
  ['orders.>', 'orders.>'],
])('family of %s is %s', (subject, family) => {
  expect(familyOf(subject)).toBe(family);
});

describe('properties', () => {
  const literals = allSubjects(['a', 'b'], 4);
  const token = fc.constantFrom('a', 'b', '*');
  const filter = fc
    .tuple(fc.array(token, { maxLength: 3 }), fc.boolean())
    .map(([tokens, open]) => [...tokens, ...(open || tokens.length === 0 ? ['>'] : [])].join('.'));

  test('overlap is what brute force finds', () => {
    fc.assert(
      fc.property(filter, filter, (a, b) => {
        expect(filterProblem(a)).toBeUndefined();
        const both = literals.some((subject) => slowMatch(a, subject) && slowMatch(b, subject));
        expect(overlaps(a, b)).toBe(both);
        expect(overlaps(b, a)).toBe(both);
      }),
      { numRuns: 2_000 },
    );
  });

  test('matching is what a regular expression finds', () => {
    fc.assert(
      fc.property(filter, fc.constantFrom(...literals), (pattern, subject) => {
        expect(matches(pattern, subject)).toBe(slowMatch(pattern, subject));
      }),
      { numRuns: 2_000 },
    );
  });
});

function slowMatch(filter: string, subject: string): boolean {
  const source = filter.replaceAll('.', '\\.').replaceAll('*', '[^.]+').replace('>', '.+');
  return new RegExp(`^${source}$`).test(subject);
}

function allSubjects(tokens: readonly string[], length: number): string[] {
  if (length === 1) return [...tokens];
  const shorter = allSubjects(tokens, length - 1);
  const longest = shorter.filter((subject) => subject.split('.').length === length - 1);
  return [...shorter, ...longest.flatMap((subject) => tokens.map((token) => `${subject}.${token}`))];
}

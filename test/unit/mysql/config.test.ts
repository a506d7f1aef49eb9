import { expect, test } from 'vitest';
import { formatProblems } from '../../../core/problems.ts';
import { parseTarget } from '../../../core/target.ts';
import { mysqlSpec } from '../../../sinks/mysql/config.ts';

function problemsOf(fields: object): string {
  const parsed = parseTarget({ sink: { ...mysqlSpec.example, ...fields } }, [mysqlSpec]);
  return parsed.ok ? '' : formatProblems(parsed.problems);
}

test('a certificate can be held against a name only', () => {
  expect(problemsOf({ tls: {} })).toBe('');
  for (const host of ['10.0.0.7', '::1']) {
    expect(problemsOf({ host, tls: {} })).toMatch(/^sink.host: is an address/);
    expect(problemsOf({ host, tls: { verify: false } })).toBe('');
    expect(problemsOf({ host })).toBe('');
  }
});

test('a certificate of our own needs its key', () => {
  expect(problemsOf({ tls: { cert: 'PEM' } })).toMatch(/^sink.tls: has one of "cert" and "key"/);
});

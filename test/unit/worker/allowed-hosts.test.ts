import { expect, test } from 'vitest';
import { readSettings } from '../../../platform/settings.ts';
import { hostProblems } from '../../../worker/allowed-hosts.ts';

const spec = { hosts: (sink: Readonly<Record<string, unknown>>) => [String(sink['host'])] };
const refused = (host: string, allowed: readonly string[] | null): boolean =>
  hostProblems({ type: 'table', host }, allowed, () => spec).length > 0;

test('a target reaches only the hosts that the worker allows', () => {
  const allowed = ['db.example.com', '*.internal.example.com'];
  expect(refused('db.example.com', allowed)).toBe(false);
  expect(refused('DB.Example.com', allowed)).toBe(false);
  expect(refused('a.b.internal.example.com', allowed)).toBe(false);
  for (const host of ['evil.example.com', 'internal.example.com', 'db.example.com.evil.org', 'xinternal.example.com', '']) {
    expect(refused(host, allowed)).toBe(true);
  }
  expect(refused('anything', [])).toBe(true);
  expect(refused('anything', null)).toBe(false);
});

test('a sink without a host is not asked', () => {
  expect(hostProblems({ type: 'file', directory: 'x' }, [])).toEqual([]);
});

test('the setting: a list with commas; unset allows any, empty none', () => {
  const read = (value?: string) => {
    const found = readSettings(value === undefined ? {} : { REPLAY_ALLOWED_HOSTS: value });
    return found.ok ? found.value.allowedHosts : found.problems;
  };
  expect(read()).toBeNull();
  expect(read('')).toEqual([]);
  expect(read('a.example.com, *.b.example.com')).toEqual(['a.example.com', '*.b.example.com']);
});

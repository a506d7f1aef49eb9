import { describe, expect, test } from 'vitest';
import { checkSchema, describeFields } from '../../../core/schema.ts';
import { fileConfigSchema, fileSpec } from '../../../sinks/file/config.ts';

function check(sink: unknown) {
  return checkSchema(fileConfigSchema, sink, { at: ['sink'], echo: true });
}

test('defaults', () => {
  expect(check({ type: 'file', directory: 'orders/2026-05' })).toEqual({
    ok: true,
    value: {
      type: 'file',
      directory: 'orders/2026-05',
      max_segment_bytes: 134_217_728,
      compression: 'none',
      require_json: false,
      max_record_bytes: null,
    },
  });
});

describe('refused', () => {
  test.each([
    '',
    '/',
    '/etc',
    '..',
    '../x',
    'a/..',
    'a/../b',
    './a',
    'a/./b',
    '.index',
    'a/.index',
    '.hidden',
    'a//b',
    'a/',
    'a\u0000b',
    'a\nb',
    'a\\b',
    'a\u2028b',
    '\ud800',
    ' a',
    'a /b',
    'x'.repeat(256),
    'é'.repeat(128),
    `${'x/'.repeat(600)}x`,
  ])('directory %j', (directory) => {
    const checked = check({ type: 'file', directory });
    expect(checked.ok).toBe(false);
    expect(checked.ok || checked.problems[0]!.path).toBe('sink.directory');
    expect(checked.ok || checked.problems[0]!.message).toContain('expected a directory relative to the data root');
  });

  test.each([
    { max_segment_bytes: 65_535 },
    { max_segment_bytes: 1.5 },
    { max_segment_bytes: '128' },
    { compression: 'zstd' },
    { require_json: 'yes' },
    { max_record_bytes: 0 },
    { max_records_bytes: 1 },
    { directory: 7 },
  ])('%j', (fields) => {
    expect(check({ type: 'file', directory: 'orders', ...fields }).ok).toBe(false);
  });
});

test.each(['orders', 'a/b/c', 'Grüße 2026', 'a..b', 'x'.repeat(255), 'a.jsonl', 'a:b'])(
  'directory %j is taken',
  (directory) => {
    expect(check({ type: 'file', directory }).ok).toBe(true);
  },
);

test('every field is described, with an example that is valid', () => {
  for (const { path, description, examples } of describeFields(fileSpec.config)) {
    expect(description.length, String(path)).toBeGreaterThan(10);
    expect(examples.length, String(path)).toBeGreaterThan(0);
    for (const example of examples) expect(check({ type: 'file', directory: 'd', [path[0]!]: example }).ok).toBe(true);
  }
  expect(check(fileSpec.example).ok).toBe(true);
});

test('modes', () => {
  expect(fileSpec.modeOf?.({ compression: 'gzip' })).toBe('gzip');
  expect(fileSpec.modeOf?.({ compression: 'none' })).toBe('plain');
  expect(fileSpec.modeOf?.({})).toBe('plain');
});

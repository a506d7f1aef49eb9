import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  checkName,
  checkSettings,
  decodeName,
  encodeName,
  hardRecords,
  isOverBytes,
  topicDefaults,
} from '../../../core/topic.ts';
import { TopicError, topicErrorCatalogue } from '../../../core/topic-errors.ts';
import { isNewEnough } from '../../../jetstream/topics/server.ts';

describe('names', () => {
  test('nothing that means something in a subject or key is left raw', () => {
    expect(encodeName('orders')).toBe('orders');
    expect(encodeName('a.b*c>d:e f$é')).toBe('a=2Eb=2Ac=3Ed=3Ae=20f=24=C3=A9');
  });

  test('different names stay different, and come back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }), (name) => {
        expect(encodeName(name)).toMatch(/^[\w=-]+$/);
        expect(decodeName(encodeName(name))).toBe(name);
      }),
    );
  });

  test.each(['', 'x'.repeat(65), 'a\u0000b', 'line\nbreak', '\ud800', 'é'.repeat(33)])('%j is refused', (name) => {
    expect(() => checkName('topic', name)).toThrow(TopicError);
  });

  test.each(['orders', 'tenant/acme: orders', '日本', 'x'.repeat(64)])('%j is taken', (name) => {
    expect(checkName('topic', name)).toBe(name);
  });
});

describe('settings', () => {
  test('defaults', () => {
    expect(checkSettings({})).toEqual(topicDefaults);
    expect(checkSettings({ partitions: undefined, hot: { maxRecords: 5, maxBytes: undefined } })).toEqual({
      ...topicDefaults,
      hot: { ...topicDefaults.hot, maxRecords: 5 },
    });
  });

  test('everything wrong is said at once', () => {
    const wrong = { partitions: 0, hot: { maxBytes: 1_073_741_825, maxRecords: 1.5 }, quota: { recordsPerSecond: -1 } };
    expect(() => checkSettings(wrong)).toThrow(
      /partitions is 0.*maxRecords is 1\.5.*maxBytes is 1073741825.*recordsPerSecond is -1/,
    );
  });

  test('hard limits lie above the soft ones', () => {
    const { hot } = topicDefaults;
    expect(hardRecords(hot)).toBe(100_000);
    expect(isOverBytes(hot, { records: 1_000, bytes: 2 * hot.maxBytes + 512_000 })).toBe(false);
    expect(isOverBytes(hot, { records: 1_000, bytes: 2 * hot.maxBytes + 512_001 })).toBe(true);
  });
});

test('every error says what to do', () => {
  for (const { meaning, next } of Object.values(topicErrorCatalogue)) {
    expect(meaning).toMatch(/\.$/);
    expect(next).toMatch(/\.$/);
  }
  expect(new TopicError('out_of_range', 'the log ends at 4').next).toBe(topicErrorCatalogue.out_of_range.next);
});

test.each([
  ['2.14.1', false],
  ['2.14.2', true],
  ['2.15.0-RC.1', true],
  ['2.12.10', false],
  ['3.0.0', true],
  ['', false],
])('nats-server %s: %s', (version, fits) => {
  expect(isNewEnough(version)).toBe(fits);
});

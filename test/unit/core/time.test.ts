import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatTime, parseTime, timeNanos } from '../../../core/time.ts';

describe('accepted', () => {
  test.each([
    ['1970-01-01T00:00:00Z', 0n],
    ['2026-05-01T10:00:00.000000001Z', 1_777_629_600_000_000_001n],
    ['2026-05-01T10:00:00.123456789Z', 1_777_629_600_123_456_789n],
    ['2026-05-01T12:00:00.5+02:00', 1_777_629_600_500_000_000n],
    ['2026-05-01T04:30:00-05:30', 1_777_629_600_000_000_000n],
    ['2026-05-01t10:00:00z', 1_777_629_600_000_000_000n],
    ['2026-05-01T10:00:00-00:00', 1_777_629_600_000_000_000n],
    ['1969-12-31T23:30:00-00:30', 0n],
    ['2024-02-29T00:00:00Z', 1_709_164_800_000_000_000n],
    ['2262-04-11T23:47:16.854775807Z', 2n ** 63n - 1n],
  ])('%s', (text, nanos) => {
    expect(parseTime(text)).toEqual({ ok: true, nanos });
  });
});

describe('refused', () => {
  test.each([
    ['2026-05-01T10:00:00', 'has no offset'],
    ['2026-05-01T10:00:00.5', 'has no offset'],
    ['2026-05-01T10:00:00Z[UTC]', 'goes on after the offset'],
    ['2026-05-01T10:00:00+02:00[Europe/Berlin]', 'goes on after the offset'],
    ['2026-05-01T10:00:00[UTC]', 'has no offset right after its seconds'],
    ['2026-05-01T10:00:00Z ', 'goes on after the offset'],
    ['2026-05-01T10:00:00+0200', 'has no offset'],
    ['2026-05-01T10:00:00+24:00', 'has no such offset'],
    ['2026-05-01 10:00:00Z', 'is not a time'],
    ['2026-05-01', 'is not a time'],
    ['2026-05-01T10:00Z', 'is not a time'],
    [' 2026-05-01T10:00:00Z', 'is not a time'],
    ['now', 'is not a time'],
    ['', 'is not a time'],
    ['+2026-05-01T10:00:00Z', 'is not a time'],
    ['0001-01-01T00:00:00Z', 'is before 1970'],
    ['0070-01-01T00:00:00Z', 'is before 1970'],
    ['1969-12-31T23:59:59.999999999Z', 'is before 1970'],
    ['1970-01-01T00:00:00+00:01', 'is before 1970'],
    ['2026-02-30T00:00:00Z', 'is a date that does not exist'],
    ['2023-02-29T00:00:00Z', 'is a date that does not exist'],
    ['2100-02-29T00:00:00Z', 'is a date that does not exist'],
    ['2026-04-31T00:00:00Z', 'is a date that does not exist'],
    ['2026-13-01T00:00:00Z', 'is a date that does not exist'],
    ['2026-00-10T00:00:00Z', 'is a date that does not exist'],
    ['2026-05-00T00:00:00Z', 'is a date that does not exist'],
    ['2026-05-01T24:00:00Z', 'has no such time of day'],
    ['2026-05-01T10:60:00Z', 'has no such time of day'],
    ['2026-12-31T23:59:60Z', 'is a leap second'],
    ['2026-05-01T10:00:00.1234567891Z', 'is finer than a nanosecond'],
    ['2262-04-11T23:47:16.854775808Z', 'is after 2262'],
    ['9999-12-31T23:59:59Z', 'is after 2262'],
  ])('%s', (text, wrong) => {
    const parsed = parseTime(text);
    expect(parsed.ok).toBe(false);
    expect(parsed.ok || parsed.message).toContain(wrong);
  });

  test('timeNanos throws', () => {
    expect(() => timeNanos('tomorrow')).toThrow(RangeError);
  });
});

describe('properties', () => {
  const nanos = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });

  test('what is formatted parses to the same nanosecond', () => {
    fc.assert(
      fc.property(nanos, (time) => {
        expect(timeNanos(formatTime(time))).toBe(time);
      }),
    );
  });

  test('an offset shifts the text, not the time', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 60n, max: 2n ** 62n }), fc.integer({ min: -1439, max: 1439 }), (time, minutes) => {
        const shifted = formatTime(time + BigInt(minutes) * 60_000_000_000n).slice(0, -1);
        const size = Math.abs(minutes);
        const offset = `${String(Math.floor(size / 60)).padStart(2, '0')}:${String(size % 60).padStart(2, '0')}`;
        expect(timeNanos(`${shifted}${minutes < 0 ? '-' : '+'}${offset}`)).toBe(time);
      }),
    );
  });

  test('formatted texts sort as their times', () => {
    fc.assert(
      fc.property(nanos, nanos, (a, b) => {
        expect(formatTime(a) < formatTime(b)).toBe(a < b);
      }),
    );
  });
});

test('a time before 1970 is still formatted', () => {
  expect(formatTime(-1n)).toBe('1969-12-31T23:59:59.999999999Z');
});

import { expect, test } from 'vitest';
import { secondsToTruncation } from '../../../core/group-lag.ts';

const hot = { maxAgeSeconds: 3_600, maxRecords: 1_000, maxBytes: 100_000 };
const facts = { nowMs: 600_000, appendedAtMs: 0, lag: 1, hotRecords: 100, hotBytes: 1_000 };

test('by age, when few records come', () => {
  expect(secondsToTruncation(facts, hot)).toBe(3_000);
});

test('by count, at the pace so far', () => {
  expect(secondsToTruncation({ ...facts, lag: 600, hotRecords: 600 }, hot)).toBe(400);
});

test('by bytes, when records are large', () => {
  // 500 bytes each: 200 fit, 120 are there, one comes every 5 seconds.
  expect(secondsToTruncation({ ...facts, lag: 120, hotRecords: 120, hotBytes: 60_000 }, hot)).toBe(400);
});

test('overdue: with the next sweep', () => {
  expect(secondsToTruncation({ ...facts, nowMs: 4_000_000 }, hot)).toBe(0);
  expect(secondsToTruncation({ ...facts, lag: 2_000, hotRecords: 2_000 }, hot)).toBe(0);
});

import { describe, expect, test } from 'vitest';
import { fingerprintText } from '../../../core/fingerprint.ts';
import { parsePlan, type ReplayPlan } from '../../../core/plan.ts';
import type { ReplayTarget } from '../../../core/target.ts';
import { timeNanos } from '../../../core/time.ts';
import { beginning, boundWindow, lastSuccessOf, windowProblem } from '../../../core/window.ts';

function planOf(fields: object): ReplayPlan {
  const parsed = parsePlan({
    replay: { stream: 'S', subject_filter: 'a', durable_consumer: 'd', max_messages: 5, ...fields },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

const stream = { incarnation: 'first', firstSequence: 7 };
const at = (time: string) => ({ atNanos: timeNanos(time), lastSuccess: null });
const target: ReplayTarget = {
  sink: { type: 'file', directory: 'd' },
  idempotency: { key: 'stream_sequence', field: null, key_conflicts: 'reject' },
  dead_letter: null,
};

test.each(['since_last_success', '1s', '90m', '24h', '366d'])('%s is a window', (text) =>
  expect(windowProblem(text)).toBeUndefined(),
);
test.each(['', '0h', '24', 'h', '1.5h', '-1h', '24H', '1w', '367d', '999999999d', 'since_last'])('%s is none', (text) =>
  expect(windowProblem(text)).toMatch(/^is (no window|too long); expected "since_last_success"/),
);

describe('boundaries of a window', () => {
  test('a length of time ends when the run is due', () => {
    const bound = boundWindow(planOf({ window: '90m' }), at('2026-05-01T12:00:00Z'), stream);
    expect(bound).toMatchObject({
      window: '90m',
      start_sequence: null,
      start_time: '2026-05-01T10:30:00.000000000Z',
      end_time: '2026-05-01T12:00:00.000000000Z',
    });
  });

  test('since the last success of the same stream, else from its start', () => {
    const plan = planOf({ window: 'since_last_success' });
    const due = { ...at('2026-05-01T12:00:00Z'), lastSuccess: { incarnation: 'first', cursor: 40 } };
    expect(boundWindow(plan, due, stream)).toMatchObject({ start_sequence: 40, start_time: null });
    expect(boundWindow(plan, due, { ...stream, incarnation: 'second' })).toMatchObject({ start_sequence: 7 });
    expect(boundWindow(plan, at('2026-05-01T12:00:00Z'), { ...stream, firstSequence: 0 })).toMatchObject({ start_sequence: 1 });
  });

  test('a plan without a window stays as it is', () => {
    const plan = planOf({ start_sequence: 1 });
    expect(boundWindow(plan, at('2026-05-01T12:00:00Z'), stream)).toBe(plan);
  });
});

describe('after an unfinished run', () => {
  test('fixed boundaries go on at the floor', () => {
    const plan = planOf({ start_sequence: 1 });
    expect([beginning(plan, 1, 50), beginning(plan, 1, null)]).toEqual([50, 1]);
  });

  test('a window never skips: it begins at the floor or at its own start, whichever is first', () => {
    const plan = planOf({ window: '1h' });
    expect([beginning(plan, 100, 50), beginning(plan, 100, 150), beginning(plan, 100, null)]).toEqual([50, 100, 100]);
  });
});

test('windows that move are one replay; other windows and fixed boundaries are others', () => {
  const plan = planOf({ window: '1h' });
  const texts = [
    boundWindow(plan, at('2026-05-01T12:00:00Z'), stream),
    boundWindow(plan, at('2026-05-02T12:00:00Z'), stream),
    planOf({ window: '2h' }),
    planOf({ start_time: '2026-05-01T11:00:00Z', end_time: '2026-05-01T12:00:00Z' }),
  ].map((one) => fingerprintText(one, target));
  expect(new Set(texts).size).toBe(3);
  expect(texts[0]).toBe(texts[1]);
});

test('a window stands alone', () => {
  const parsed = parsePlan({
    replay: {
      stream: 'S',
      subject_filter: 'a',
      durable_consumer: 'd',
      max_messages: 5,
      window: '1h',
      start_sequence: 1,
      end_time: '2026-05-01T11:00:00Z',
    },
  });
  expect(parsed.ok ? [] : parsed.problems.map(({ path }) => path)).toEqual(['replay.start_sequence', 'replay.end_time']);
});

test('only a report tells where a run stopped', () => {
  expect(lastSuccessOf({ range: { incarnation: 'i', cursor: 3, first: 1 } })).toEqual({ incarnation: 'i', cursor: 3 });
  for (const other of [undefined, null, 'text', {}, { range: null }, { range: { incarnation: 'i' } }])
    expect(lastSuccessOf(other)).toBeNull();
});

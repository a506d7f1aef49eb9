import { describe, expect, test } from 'vitest';
import { decideConsumer, type Owner } from '../../../core/consumer.ts';
import type { Description } from '../../../core/description.ts';
import {
  adaptBatchRecords,
  batchRecordsMax,
  blockedRetryMs,
  limitBatchRecords,
  noLimits,
  paceAfter,
  paceAtStart,
  type Pace,
  paceWaitMs,
} from '../../../core/pacing.ts';
import { progressOf } from '../../../core/progress.ts';
import * as runs from '../../../core/run.ts';
import type { Delivery } from '../../../core/steps.ts';

const owner: Owner = { cluster: 'c', namespace: 'n', workflowId: 'w', firstRunId: 'r', fingerprint: 'f' };

function description(changes: Partial<Description['plan']> = {}, last: number | null = 1_000): Description {
  return {
    plan: {
      stream: 'S',
      subject_filters: ['s.>'],
      durable_consumer: 'd',
      start_sequence: 1,
      start_time: null,
      end_sequence: last,
      end_time: null,
      max_messages: 10_000,
      batch_size: 100,
      batch_bytes: 8_388_608,
      stop_after_idle_seconds: 5,
      dry_run: false,
      report_file: null,
      rate_limit_per_second: null,
      max_rejects: 10,
      window: null,
      require_approval: false,
      approval_timeout_seconds: 86_400,
      keep_consumer: false,
      production_consumer: null,
      ...changes,
    },
    target: {
      sink: { type: 'file', directory: 'x' },
      idempotency: { key: 'stream_sequence', field: null, key_conflicts: 'reject' },
      dead_letter: { subject: 'dlq.s' },
    },
    range: { incarnation: 'i', first: 1, last, endTimeNanos: null, streamLast: 1_000 },
    cursor: 1,
    resumed: false,
    fingerprint: 'f',
    cluster: 'c',
    families: ['s.>'],
    sink: { type: 'file', key: 'stream_sequence', duplicatesSafe: true },
    count: { messages: 1_000, bytes: 1, exact: { messages: true, bytes: false }, gaps: 0 },
    warnings: [],
    searchAttributes: true,
  };
}

function delivery(first: number, count: number, changes: Partial<Delivery> = {}): Delivery {
  const rejects = changes.rejects?.length ?? 0;
  return {
    acknowledged: null,
    earlier: null,
    receipt: {
      stream: 'S',
      consumer: 'd',
      incarnation: 'i',
      runs: [first, count],
      count,
      firstSequence: first,
      lastSequence: first + count - 1,
      lastConsumerSequence: first + count - 1,
    },
    written: count - rejects,
    duplicate: 0,
    skipped: 0,
    bytes: count * 10,
    rejects: [],
    rejected: rejects,
    drift: false,
    cursor: first + count,
    consumerSequence: first + count,
    end: 'more',
    putBack: false,
    counted: count,
    streamLast: 1_000,
    dataRoot: null,
    pullMs: 1,
    writeMs: 1,
    ...changes,
  };
}

const rejects = (n: number) =>
  Array.from({ length: n }, (_, i) => ({ sequence: i + 1, time: '0', code: 'value_too_long' as const }));
const noLetters = { stored: 0, lostBodies: 0 };

describe('a run', () => {
  test('settling moves the cursor and adds up: pulled = written + duplicate + skipped + rejected', () => {
    const run = runs.startRun(description(), owner, null, 0);
    runs.settle(run, delivery(1, 100, { rejects: rejects(3), skipped: 2 }), { stored: 3, lostBodies: 1 }, 10);
    expect(run.cursor).toBe(101);
    expect(run.counts).toMatchObject({
      pulled: 102,
      written: 97,
      rejected: 3,
      dead_lettered: 3,
      lost_body: 1,
      skipped: 2,
      acked: 0,
    });
    expect(run.rejectsAllowed).toBe(7);
  });

  test('a deferred ACK makes the next delivery put the durable back, which acknowledges what was deferred', () => {
    const run = runs.startRun(description(), owner, null, 0);
    runs.settle(run, delivery(1, 100), noLetters, 10);
    expect(runs.nextDelivery(run, noLimits, 10).consumerSequence).toBe(101);
    runs.noteAcknowledged(run, { acked: 0, deferred: 100 });
    expect(runs.nextDelivery(run, noLimits, 10).consumerSequence).toBeNull();
    const again = delivery(101, 100, { putBack: true });
    runs.noteDelivered(run, again, 20);
    runs.settle(run, again, noLetters, 20);
    expect(run.counts.acked).toBe(100);
    expect(runs.nextDelivery(run, noLimits, 20).consumerSequence).toBe(201);
  });

  test('ends at the end of the range, at max_messages, or drained for long enough', () => {
    const ended = runs.startRun(description(), owner, null, 0);
    runs.settle(ended, delivery(1, 100, { end: 'end_of_range' }), noLetters, 10);
    expect(runs.stopReason(ended, 10)).toBe('end_of_range');

    const full = runs.startRun(description({ max_messages: 150 }), owner, null, 0);
    runs.settle(full, delivery(1, 100), noLetters, 10);
    expect(runs.nextDelivery(full, noLimits, 10).maxRecords).toBe(50);
    runs.settle(full, delivery(101, 50), noLetters, 20);
    expect(runs.stopReason(full, 20)).toBe('max_messages');

    const idle = runs.startRun(description({}, null), owner, null, 0);
    runs.settle(idle, delivery(1, 100, { end: 'drained' }), noLetters, 1_000);
    expect(runs.stopReason(idle, 5_999)).toBeNull();
    runs.settle(idle, { ...delivery(1, 0), receipt: null, written: 0, cursor: 101, end: 'drained' }, noLetters, 4_000);
    expect(runs.stopReason(idle, 6_000)).toBe('drained');
    runs.settle(idle, delivery(101, 1), noLetters, 5_000);
    expect(runs.stopReason(idle, 60_000)).toBeNull();
  });

  test('rejects over the budget, drift, and a missing dead letter stand in the way; resume overrules the first two', () => {
    const run = runs.startRun(description({ max_rejects: 2 }), owner, null, 0);
    expect(runs.objection(run, delivery(1, 100, { rejects: rejects(2) }))).toBeNull();
    const over = delivery(1, 100, { rejects: rejects(3) });
    expect(runs.objection(run, over)).toBe('reject_budget');
    runs.overrule(run, 'reject_budget', over, null);
    expect(runs.objection(run, over)).toBeNull();
    const drifting = delivery(1, 2, { rejects: rejects(2), drift: true });
    expect(runs.objection(run, drifting)).toBe('drift');
    runs.overrule(run, 'drift', drifting, null);
    expect(runs.objection(run, drifting)).toBeNull();
    const plain = description();
    const without = runs.startRun({ ...plain, target: { ...plain.target, dead_letter: null } }, owner, null, 0);
    expect(runs.objection(without, over)).toBe('dead_letter_not_configured');
  });

  test('what was counted and is neither settled nor left has vanished', () => {
    const run = runs.startRun(description(), owner, null, 0);
    runs.settle(run, delivery(1, 400), noLetters, 10);
    runs.noteClosed(run, [{ settled: true, notReached: 590 }]);
    expect(run.counts.vanished).toBe(10);
  });

  test('its lists stay bounded and say how much was cut', () => {
    const run = runs.startRun(description({ max_rejects: 1_000_000, batch_size: 10 }, null), owner, null, 0);
    for (let i = 0; i < 700; i++)
      runs.settle(run, delivery(1 + i * 10, 10, { rejects: rejects(1) }), { stored: 1, lostBodies: 0 }, i);
    const report = runs.report(run, 'running', null, 1_000);
    expect(report.batches).toHaveLength(200);
    expect(report.batches_not_listed).toBe(500);
    expect(report.batches[0]!.first).toBe(1);
    expect(report.batches.at(-1)!.first).toBe(6_991);
    expect(report.rejects).toHaveLength(500);
    expect(report.rejects_not_listed).toBe(200);
    expect(JSON.stringify(report).length).toBeLessThan(256 * 1_024);
  });

  test('a completed run deletes its durable unless the plan keeps it; any other end keeps it for the next run', () => {
    const run = runs.startRun(description(), owner, null, 0);
    expect(runs.closeRequests(run, 'end_of_range')).toMatchObject([{ durable: 'delete' }]);
    expect(runs.closeRequests(run, 'canceled')).toMatchObject([{ durable: 'keep' }]);
    const kept = runs.startRun(description({ keep_consumer: true }), owner, null, 0);
    expect(runs.closeRequests(kept, 'drained')).toMatchObject([{ durable: 'keep_completed' }]);
  });
});

describe('decideConsumer', () => {
  const seen = { owner, delivered: { consumer: 10 }, altered: [] };
  const wanted = { owner, predecessor: null, consumerSequence: 11, attempt: 1 };

  test('goes on only where nothing came between', () => {
    expect(decideConsumer(seen, wanted)).toBe('keep');
    expect(decideConsumer(null, wanted)).toBe('put_back');
    expect(decideConsumer(seen, { ...wanted, attempt: 2 })).toBe('put_back');
    expect(decideConsumer(seen, { ...wanted, consumerSequence: null })).toBe('put_back');
    expect(decideConsumer({ ...seen, delivered: { consumer: 11 } }, wanted)).toBe('put_back');
    expect(decideConsumer({ ...seen, altered: ['ack_wait'] }, wanted)).toBe('put_back');
  });

  test('keeps off a durable of somebody else, and takes over only from the predecessor it was shown', () => {
    const other = { ...owner, firstRunId: 'other' };
    expect(decideConsumer({ ...seen, owner: null }, wanted)).toEqual({ fault: 'consumer_taken' });
    expect(decideConsumer({ ...seen, owner: other }, wanted)).toEqual({ fault: 'consumer_taken' });
    expect(decideConsumer({ ...seen, owner: other }, { ...wanted, predecessor: other })).toBe('put_back');
  });
});

describe('pacing', () => {
  test('an adaptive batch grows while batches are short, and shrinks when they are long', () => {
    expect(adaptBatchRecords(1_000, { records: 1_000, seconds: 0.1 })).toBe(2_000);
    expect(adaptBatchRecords(8_000, { records: 8_000, seconds: 0.1 })).toBe(batchRecordsMax);
    expect(adaptBatchRecords(2_000, { records: 1_000, seconds: 0.1 })).toBe(4_000);
    expect(adaptBatchRecords(1_000, { records: 499, seconds: 0.1 })).toBe(1_000);
    expect(adaptBatchRecords(1_000, { records: 1_000, seconds: 5 })).toBe(500);
    expect(adaptBatchRecords(100, { records: 100, seconds: 60 })).toBe(100);
  });

  test('a rate limit bounds the batch to one second and spaces batches', () => {
    expect(limitBatchRecords(1_000, 50)).toBe(50);
    expect(limitBatchRecords(1_000, null)).toBe(1_000);
    const pace = { dueMs: 10_000, lateMs: 0 };
    expect(paceAfter(pace, { records: 50, bytes: 0 }, { ...noLimits, perSecond: 50 }).dueMs).toBe(11_000);
    expect(paceAfter(pace, { records: 50, bytes: 0 }, noLimits).dueMs).toBe(10_000);
    expect(paceWaitMs(11_000, 10_200)).toBe(800);
    expect(paceWaitMs(11_000, 10_600)).toBe(0);
  });

  test.each([7, 100, 900, 5_000])('timers that fire a second late still give %i records a second', (perSecond) => {
    const batch = limitBatchRecords(500, perSecond);
    let [nowMs, records, timerFired] = [0, 0, false];
    let pace: Pace = { dueMs: 0, lateMs: 0 };
    while (nowMs < 600_000) {
      pace = paceAfter(paceAtStart(pace, nowMs, timerFired), { records: batch, bytes: 0 }, { ...noLimits, perSecond });
      records += batch;
      nowMs += 20;
      const waitMs = paceWaitMs(pace.dueMs, nowMs);
      timerFired = waitMs > 0;
      if (timerFired) nowMs += waitMs + 1_000;
    }
    expect(records / (nowMs / 1_000) / perSecond).toBeGreaterThan(0.95);
    expect(records / (nowMs / 1_000) / perSecond).toBeLessThan(1.05);
  });

  test('a pause, a block or a slow batch is not followed by a burst', () => {
    const pace = { dueMs: 10_000, lateMs: 0 };
    expect(paceAtStart(pace, 60_000, false)).toEqual({ dueMs: 60_000, lateMs: 0 });
    expect(paceAtStart(pace, 11_000, true)).toEqual({ dueMs: 10_000, lateMs: 1_000 });
    expect(paceAtStart(pace, 60_000, true)).toEqual({ dueMs: 58_500, lateMs: 1_500 });
    expect(paceAtStart({ dueMs: 10_000, lateMs: 500 }, 12_000, false)).toEqual({ dueMs: 11_500, lateMs: 500 });
  });

  test('an hour of being blocked costs fewer than twenty tries', () => {
    let tries = 0;
    for (let ms = 0; ms < 3_600_000; tries++) ms += blockedRetryMs(tries);
    expect(tries).toBeLessThan(20);
    expect(blockedRetryMs(1_000_000)).toBe(300_000);
  });
});

test('progress stays within 0 and 100 % and knows the time left only when it knows the rate and the goal', () => {
  const position = {
    cursor: 501,
    first: 1,
    farEnd: 1_000,
    settled: 500,
    maxMessages: 10_000,
    expected: 1_000,
    ratePerSecond: 100,
  };
  expect(progressOf(position)).toEqual({ percent: 50, secondsLeft: 5 });
  expect(progressOf({ ...position, settled: 2_000 }).percent).toBe(100);
  expect(progressOf({ ...position, ratePerSecond: 0 }).secondsLeft).toBeNull();
  expect(progressOf({ ...position, expected: 0 }).percent).toBe(100);
  expect(progressOf({ ...position, expected: null, settled: 1 }).percent).toBe(50);
  expect(progressOf({ ...position, expected: null, settled: 200, maxMessages: 1_000_000 }).secondsLeft).toBe(2);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { holdBack } from '../../../core/batch.ts';
import {
  dueBatchRecords,
  dueBy,
  limitBatchBytes,
  noLimits,
  paceAfter,
  paceAtFactor,
  paceAtStart,
  paceInterrupted,
  paceWaitMs,
  type Pace,
} from '../../../core/pacing.ts';

describe('bytes a second', () => {
  const limits = { ...noLimits, bytesPerSecond: 1_000 };

  test('a batch is at most a second’s worth, and what is slower holds', () => {
    expect(limitBatchBytes(8_388_608, 1_000)).toBe(1_000);
    expect(limitBatchBytes(500, 1_000)).toBe(500);
    const pace = { dueMs: 0, lateMs: 0 };
    expect(paceAfter(pace, { records: 1, bytes: 3_000 }, limits).dueMs).toBe(3_000);
    expect(paceAfter(pace, { records: 10, bytes: 3_000 }, { ...limits, perSecond: 1 }).dueMs).toBe(10_000);
  });
});

describe('the pace of the stream', () => {
  const original = { factor: 2, gapMsMax: 60_000 };
  const limits = { ...noLimits, original };
  const recordsAt = (times: readonly number[]) =>
    times.map((ms, i) => ({ position: i + 1, consumerSequence: i + 1, timeNanos: BigInt(ms) * 1_000_000n }));

  interface Sent {
    readonly ms: number;
    readonly atMs: number;
  }

  /** Plays a run over records of these times, with steps that take so long and timers that fire so late. */
  function play(
    times: readonly number[],
    { stepMs, lateMs }: { readonly stepMs: number; readonly lateMs: number },
    paced = limits,
  ): Sent[] {
    const sent: Sent[] = [];
    let left = recordsAt(times);
    let [nowMs, timerFired] = [0, false];
    let pace: Pace = { dueMs: 0, lateMs: 0 };
    for (let steps = 0; left.length > 0; steps++) {
      expect(steps).toBeLessThan(20 * times.length + 20);
      pace = paceAtStart(pace, nowMs, timerFired);
      const pulled = left.slice(0, dueBatchRecords(1_000, pace));
      const { batch, stretch } = holdBack(
        { fresh: pulled, settledBefore: [], beyondEnd: false },
        dueBy(pace, paced.original, nowMs),
      );
      for (const { timeNanos } of batch.fresh) sent.push({ ms: Number(timeNanos / 1_000_000n), atMs: nowMs });
      left = left.slice(batch.fresh.length);
      nowMs += stepMs;
      pace = paceAfter(pace, { records: batch.fresh.length, bytes: 0, stretch }, paced);
      const waitMs = paceWaitMs(pace.dueMs, nowMs);
      timerFired = waitMs > 0;
      if (timerFired) nowMs += waitMs + lateMs;
    }
    return sent;
  }

  test('gaps as in the stream, divided by the factor; a long one is cut', () => {
    const sent = play([0, 10_000, 10_100, 40_000, 10_000_000, 10_004_000], { stepMs: 0, lateMs: 0 });
    expect(sent.map(({ atMs }) => atMs)).toEqual([0, 5_000, 5_000, 20_000, 80_000, 82_000]);
  });

  test('times that fall are due at once', () => {
    const sent = play([10_000, 4_000, 12_000], { stepMs: 0, lateMs: 0 });
    expect(sent.map(({ atMs }) => atMs)).toEqual([0, 0, 1_000]);
  });

  test('no record comes earlier than half a second before it is due, and all of them in order', () => {
    const gaps = fc.array(fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 200_000 })), { maxLength: 60 });
    const machine = fc.record({ stepMs: fc.integer({ min: 0, max: 400 }), lateMs: fc.integer({ min: 0, max: 1_000 }) });
    const factors = fc.constantFrom(0.5, 1, 3, 1_000);
    fc.assert(
      fc.property(gaps, machine, factors, (gapsMs, steps, factor) => {
        const times = gapsMs.reduce<number[]>((all, gap) => [...all, all.at(-1)! + gap], [1_000_000]);
        const sent = play(times, steps, { ...noLimits, original: { factor, gapMsMax: 20_000 } });
        expect(sent.map(({ ms }) => ms)).toEqual(times);
        let dueMs = 0;
        for (let i = 1; i < times.length; i++) {
          dueMs += Math.min(20_000, (times[i]! - times[i - 1]!) / factor);
          expect(sent[i]!.atMs).toBeGreaterThanOrEqual(dueMs - 501);
        }
      }),
    );
  });

  test('with steps in no time and timers on time nothing comes late', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 40 }), (gapsMs) => {
        const times = gapsMs.reduce<number[]>((all, gap) => [...all, all.at(-1)! + gap], [0]);
        const sent = play(times, { stepMs: 0, lateMs: 0 });
        // Each wait is rounded up to a millisecond.
        for (const { ms, atMs } of sent) expect(atMs).toBeLessThanOrEqual(ms / 2 + sent.length);
      }),
    );
  });

  test('a pause is not followed by a burst, and does not cut a gap short', () => {
    const pace = { dueMs: 100_000, lateMs: 0, streamNanos: '5' };
    expect(paceAtStart(pace, 50_000, false)).toEqual(pace);
    expect(paceAtStart(pace, 900_000, false).dueMs).toBe(900_000);
    expect(paceInterrupted(pace, 50_000, limits).dueMs).toBe(100_000);
  });

  test('another factor holds for the rest of a gap', () => {
    const faster = { ...limits, original: { ...original, factor: 20 } };
    const pace = { dueMs: 100_000, lateMs: 0, factor: 2 };
    expect(paceInterrupted(pace, 50_000, faster).dueMs).toBe(55_000);
    // Asked for while a batch was on its way, or in a pause.
    const once = paceAtFactor(pace, 50_000, faster);
    expect(once.dueMs).toBe(55_000);
    expect(paceAtFactor(once, 50_000, faster)).toEqual(once);
  });
});

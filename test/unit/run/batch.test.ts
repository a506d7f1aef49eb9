import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { arrangeBatch, continuesConsumer, isDrift, receiptOf, tallyOutcomes } from '../../../core/batch.ts';
import { decodeRuns, encodeRuns } from '../../../core/receipt.ts';
import { rejectReason, type Reject } from '../../../core/record.ts';

const record = (position: number, consumerSequence = position, timeNanos = BigInt(position)) => ({
  position,
  consumerSequence,
  timeNanos,
  payload: new Uint8Array(position),
});
const positions = (records: readonly { position: number }[]): number[] => records.map(({ position }) => position);

describe('arrangeBatch', () => {
  test('sorts, drops repetitions, and parts what is below the cursor from what is fresh', () => {
    const batch = arrangeBatch(
      [7, 5, 6, 5, 3].map((p) => record(p)),
      { cursor: 5, last: null, endTimeNanos: null },
    );
    expect(positions(batch.fresh)).toEqual([5, 6, 7]);
    expect(positions(batch.settledBefore)).toEqual([3]);
    expect(batch.beyondEnd).toBe(false);
  });

  test('stops at the end sequence: the record beyond it is neither written nor acknowledged', () => {
    const batch = arrangeBatch(
      [5, 6, 9].map((p) => record(p)),
      { cursor: 1, last: 8, endTimeNanos: null },
    );
    expect(positions(batch.fresh)).toEqual([5, 6]);
    expect(batch.beyondEnd).toBe(true);
  });

  test('an end time ends the range at its first record, even when later times fall', () => {
    const pulled = [record(1, 1, 10n), record(2, 2, 20n), record(3, 3, 5n)];
    const batch = arrangeBatch(pulled, { cursor: 1, last: null, endTimeNanos: 20n });
    expect(positions(batch.fresh)).toEqual([1]);
    expect(batch.beyondEnd).toBe(true);
  });
});

test('a hole or a repetition in the consumer sequences shows that someone else pulled', () => {
  expect(continuesConsumer([record(10, 4), record(11, 5)], 4)).toBe(true);
  expect(continuesConsumer([record(10, 5), record(11, 6)], 4)).toBe(false);
  expect(continuesConsumer([record(10, 4), record(11, 6)], 4)).toBe(false);
  expect(continuesConsumer([], 4)).toBe(true);
});

test('outcomes are counted one per record, and a wrong number of them is a fault of the sink', () => {
  const tally = tallyOutcomes(
    [record(1), record(2), record(3)],
    [{ kind: 'written' }, { kind: 'duplicate' }, { kind: 'rejected', code: 'value_too_long', field: 'name' }],
  );
  expect(tally).toEqual({
    written: 1,
    duplicate: 1,
    skipped: 0,
    rejects: [{ sequence: 3, time: '3', code: 'value_too_long', field: 'name' }],
  });
  expect(() => tallyOutcomes([record(1)], [])).toThrow(/answered for 0 of 1/);
});

test('a record that is too large tells its size, and the limit where the sink says it', () => {
  const outcomes = [{ kind: 'rejected', code: 'too_large' }] as const;
  const [limited] = tallyOutcomes([record(2_000)], outcomes, 1_000).rejects;
  expect(limited).toEqual({ sequence: 2_000, time: '2000', code: 'too_large', bytes: 2_000, bytes_max: 1_000 });
  expect(rejectReason(limited!)).toBe('too_large, 2,000 bytes of at most 1,000');
  const [unlimited] = tallyOutcomes([record(2_000)], outcomes).rejects;
  expect(rejectReason(unlimited!)).toBe('too_large, 2,000 bytes');
});

test('drift: a batch of ten or more refused as a whole for one reason', () => {
  const rejects = (n: number, code: Reject['code'] = 'value_too_long'): Reject[] =>
    Array.from({ length: n }, (_, i) => ({ sequence: i, time: '0', code }));
  expect(isDrift(10, rejects(10))).toBe(true);
  expect(isDrift(9, rejects(9))).toBe(false);
  expect(isDrift(11, rejects(10))).toBe(false);
  expect(isDrift(10, [...rejects(9), { sequence: 9, time: '0', code: 'not_json' }])).toBe(false);
});

describe('receipt', () => {
  test('runs of any rising sequences decode to the same sequences', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 53 - 1 }), { maxLength: 200 }), (numbers) => {
        const rising = numbers.toSorted((a, b) => a - b);
        expect([...decodeRuns(encodeRuns(rising))]).toEqual(rising);
      }),
    );
  });

  test('a contiguous batch of 5,000 is one run; scattered ones stay within a few kilobytes', () => {
    const contiguous = Array.from({ length: 5_000 }, (_, i) => 1_000_000 + i);
    expect(encodeRuns(contiguous)).toEqual([1_000_000, 5_000]);
    const scattered = Array.from({ length: 5_000 }, (_, i) => 1_000_000 + 3 * i);
    expect(JSON.stringify(encodeRuns(scattered)).length).toBeLessThan(24_000);
  });

  test('sequences that fall are refused', () => {
    expect(() => encodeRuns([5, 4])).toThrow(RangeError);
  });

  test('names all that must be acknowledged, and nothing for an empty batch', () => {
    const source = { stream: 'S', durable: 'd', incarnation: 'i' };
    expect(receiptOf(source, [])).toBeNull();
    expect(receiptOf(source, [record(5, 1), record(6, 2), record(9, 3)])).toMatchObject({
      runs: [5, 2, 2, 1],
      count: 3,
      firstSequence: 5,
      lastSequence: 9,
      lastConsumerSequence: 3,
    });
  });
});

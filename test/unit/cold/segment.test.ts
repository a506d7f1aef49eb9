import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeSegment, encodeSegment, segmentName, type SegmentPlace, type SegmentRecord } from '../../../cold/segment.ts';

const encoder = new TextEncoder();

function record(offset: number, change: Partial<SegmentRecord> = {}): SegmentRecord {
  return {
    offset,
    appendedAt: '2026-05-01T10:00:00.000000001Z',
    partitionKey: 'user-1',
    deduplicationKey: `d-${offset}`,
    payloadBytes: encoder.encode(`{"id": ${offset}, "price": 1.10}`),
    ...change,
  };
}

function placeOf(records: readonly SegmentRecord[]): SegmentPlace {
  return { topic: '0011', partition: 3, first: records[0]!.offset, next: records.at(-1)!.offset + 1 };
}

function plain({ records }: { records: readonly SegmentRecord[] }) {
  return records.map((one) => ({ ...one, payloadBytes: Buffer.from(one.payloadBytes).toString() }));
}

describe('segment', () => {
  test('a header, then one line a record', () => {
    const records = [record(7), record(8)];
    const lines = encodeSegment(placeOf(records), records).toString().split('\n');
    expect(JSON.parse(lines[0]!)).toMatchObject({
      format: 1,
      topic: '0011',
      partition: 3,
      hash_version: 'fnv1a-utf16-v1',
      first: 7,
      last: 8,
      count: 2,
      first_time: '2026-05-01T10:00:00.000000001Z',
    });
    expect(lines[1]).toBe(
      '{"offset":7,"appendedAt":"2026-05-01T10:00:00.000000001Z","partitionKey":"user-1","deduplicationKey":"d-7","payload":{"id": 7, "price": 1.10}}',
    );
    expect(lines).toHaveLength(4);
  });

  test('everything comes back byte for byte, and the same records make the same bytes', () => {
    const key = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(',"payload":', ',"payload_base64":"', '"', '\\', '\n'));
    const body = fc.oneof(
      fc.json(),
      fc.jsonValue().map((value) => JSON.stringify(value, null, 2)),
      fc.constantFrom('{"a":",\\"payload\\":"}', '{"x":1,"payload":2}', '{"x":1,"payload_base64":"eA=="}', '{\r\n"a":1}'),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(key, key, body), { minLength: 1, maxLength: 10 }), fc.nat(1_000), (parts, first) => {
        const records = parts.map(([partitionKey, deduplicationKey, payload], i) =>
          record(first + i, { partitionKey, deduplicationKey, payloadBytes: encoder.encode(payload) }),
        );
        const place = placeOf(records);
        const bytes = encodeSegment(place, records);
        expect(plain(decodeSegment(place, bytes))).toEqual(plain({ records }));
        expect(Buffer.compare(encodeSegment(place, records), bytes)).toBe(0);
      }),
    );
  });

  test('a flipped bit anywhere, or a cut anywhere, is corrupt', () => {
    const records = [record(0), record(1)];
    const bytes = encodeSegment(placeOf(records), records);
    for (let at = 0; at < bytes.length; at++) {
      const flipped = Buffer.from(bytes);
      flipped[at]! ^= 1;
      // Bits of the header that nothing hangs on (the times) may be read; the records never.
      const read = outcome(placeOf(records), flipped);
      if (read !== 'cold_corrupt') expect(read).toEqual(plain({ records }));
      expect(outcome(placeOf(records), bytes.subarray(0, at))).toBe('cold_corrupt');
    }
  });

  test('the segment of another topic, partition or span is refused', () => {
    const records = [record(0), record(1)];
    const place = placeOf(records);
    const bytes = encodeSegment(place, records);
    for (const other of [{ topic: '0012' }, { partition: 4 }, { first: 1 }, { next: 3 }]) {
      expect(outcome({ ...place, ...other }, bytes)).toBe('cold_corrupt');
    }
  });

  test('only the records of the span, in order', () => {
    const place = { topic: 't', partition: 0, first: 0, next: 2 };
    for (const records of [[], [record(0)], [record(0), record(2)], [record(1), record(0)]]) {
      expect(() => encodeSegment(place, records)).toThrow(RangeError);
    }
  });

  test('names sort as offsets do', () => {
    const name = (first: number, next: number) => segmentName({ topic: '0011', partition: 3, first, next }, 2, 'ab');
    expect(name(0, 100)).toBe('0011/0003/0000000000000000-0000000000000099-00000002-ab.jsonl');
    expect([name(1_000, 1_001), name(999, 1_000), name(0, 1)].sort()).toEqual([
      name(0, 1),
      name(999, 1_000),
      name(1_000, 1_001),
    ]);
  });
});

function outcome(place: SegmentPlace, bytes: Uint8Array): unknown {
  try {
    return plain(decodeSegment(place, bytes));
  } catch (error) {
    return (error as { code?: string }).code ?? error;
  }
}

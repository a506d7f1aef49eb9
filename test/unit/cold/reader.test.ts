import { expect, test } from 'vitest';
import { createFileStore } from '../../../cold/file.ts';
import { createSegmentReader } from '../../../cold/reader.ts';
import { encodeSegment, segmentName } from '../../../cold/segment.ts';
import { tempDir } from '../../support/file-end.ts';

const never = new AbortController().signal;

test('a segment is read once and then kept; one that is gone is null, one of another place is corrupt', async () => {
  const store = createFileStore(await tempDir());
  const place = { topic: 'aa', partition: 0, first: 0, next: 1 };
  const name = segmentName(place, 1, 'up');
  const record = { offset: 0, appendedAt: '2026-05-01T10:00:00.000000000Z', partitionKey: 'k', deduplicationKey: 'd' };
  const bytes = encodeSegment(place, [{ ...record, payloadBytes: Buffer.from('{"a":1}') }]);
  await store.put(name, bytes, never);
  const reader = createSegmentReader(store);
  const ref = { first: 0, next: 1, name, bytes: bytes.length, lastTime: record.appendedAt };
  expect(await reader.read(ref, place)).toMatchObject([{ ...record, payload: { a: 1 } }]);
  await store.remove(name, never);
  expect(await reader.read(ref, place)).toHaveLength(1);
  expect(await reader.read({ ...ref, name: `${name}x` }, place)).toBeNull();
  await store.put(name, bytes, never);
  await expect(createSegmentReader(store).read({ ...ref, first: 1, next: 2 }, place)).rejects.toMatchObject({
    code: 'cold_corrupt',
  });
});

import { describe, expect, test } from 'vitest';
import {
  claim,
  coldThrough,
  expireBefore,
  findSegment,
  isRecorded,
  keepFrom,
  newManifest,
  record,
  type Claimed,
  type Manifest,
} from '../../../core/manifest.ts';

const stored = { bytes: 10, lastTime: '2026-05-01T10:00:00.000000000Z' };
const nameOf = ({ first, next }: { first: number; next: number }, epoch: number) => `${first}-${next}-${epoch}`;

function flushed(manifest: Manifest, hot: number, before: number): Manifest {
  const claimed = claim(manifest, { hot, before, recordsMax: 100, nowMs: 7, nameOf });
  if (claimed.kind !== 'claimed') throw new Error(claimed.kind);
  return record(claimed.manifest, claimed.intent, stored)!;
}

describe('flush', () => {
  test('claims once: more that became due meanwhile waits for the next one', () => {
    const first = claim(newManifest, { hot: 0, before: 5, recordsMax: 100, nowMs: 7, nameOf });
    expect(first).toMatchObject({ kind: 'claimed', intent: { first: 0, next: 5, name: '0-5-1' } });
    const manifest = (first as { manifest: Manifest }).manifest;
    expect(claim(manifest, { hot: 0, before: 45, recordsMax: 100, nowMs: 7, nameOf })).toEqual({
      kind: 'resumed',
      intent: manifest.intent,
    });
    const after = record(manifest, manifest.intent!, stored)!;
    expect(after).toMatchObject({ intent: null, segments: [{ first: 0, next: 5 }] });
    expect(isRecorded(after, manifest.intent!)).toBe(true);
    expect(record(after, manifest.intent!, stored)).toBeNull();
  });

  test('what is cold and not yet purged is not claimed again', () => {
    const manifest = flushed(newManifest, 0, 5);
    expect(claim(manifest, { hot: 0, before: 5, recordsMax: 100, nowMs: 7, nameOf }).kind).toBe('nothing');
    expect(claim(manifest, { hot: 0, before: 7, recordsMax: 100, nowMs: 7, nameOf })).toMatchObject({
      intent: { first: 5, next: 7 },
    });
    expect(coldThrough(manifest, 0)).toBe(5);
  });

  test('in pieces', () => {
    expect(claim(newManifest, { hot: 3, before: 50, recordsMax: 10, nowMs: 7, nameOf })).toMatchObject({
      intent: { first: 3, next: 13 },
    });
  });

  test('a late execution of another claim changes nothing', () => {
    const { manifest, intent } = claim(newManifest, { hot: 0, before: 5, recordsMax: 9, nowMs: 7, nameOf }) as Extract<
      Claimed,
      { kind: 'claimed' }
    >;
    expect(
      record({ ...manifest, intent: { first: 0, next: 9, name: 'other', epoch: 2, claimedAtMs: 7 } }, intent, stored),
    ).toBeNull();
  });
});

test('segments by offset, with the next readable one after a hole', () => {
  const manifest: Manifest = { ...newManifest, segments: [segment(0, 10), segment(20, 30)] };
  expect(findSegment(manifest, 9)).toMatchObject({ first: 0 });
  expect(findSegment(manifest, 12)).toEqual({ nextReadable: 20 });
  expect(findSegment(manifest, 20)).toMatchObject({ first: 20 });
  expect(findSegment(manifest, 30)).toEqual({ nextReadable: null });
});

test('a segment that reaches beyond the offset is not forgotten', () => {
  const manifest: Manifest = { ...newManifest, segments: [segment(0, 10), segment(10, 20)] };
  expect(expireBefore(manifest, 10, 5).expired).toMatchObject([{ first: 0 }]);
  expect(expireBefore(manifest, 9, 5).expired).toEqual([]);
  expect(expireBefore(manifest, 15, 5).manifest).toMatchObject({
    segments: [{ first: 10 }],
    floor: 10,
    leaving: [{ name: '0', removeAtMs: 5 }],
  });
  expect(expireBefore(manifest, 20, 5).manifest.segments).toEqual([]);
});

describe('what stays hot', () => {
  const hot = { maxAgeSeconds: 1, maxRecords: 1_000, maxBytes: 1_000 };

  test.each([
    [{ hot: 0, next: 4 }, { maxRecords: 2 }, 2],
    [{ hot: 0, next: 30 }, { maxRecords: 1 }, 29],
    [{ hot: 7, next: 8 }, { maxRecords: 5 }, 7],
    [{ hot: 3, next: 3 }, { maxRecords: 5 }, 3],
  ])('%j with %j: from %d', (log, bounds, from) => {
    expect(keepFrom(log, { ...hot, ...bounds }, null)).toBe(from);
  });

  test.each([
    [[30, 30, 30, 30], 12, 4],
    [[30, 30, 30, 30], 60, 2],
    [[30, 30, 30, 30], 61, 2],
    [[31, 31, 31], 8, 3],
    [[30, 30], 60, 0],
  ])('payloads of %j with %d bytes: from %d', (sizes, maxBytes, from) => {
    expect(keepFrom({ hot: 0, next: sizes.length }, { ...hot, maxBytes }, sizes)).toBe(from);
  });
});

function segment(first: number, next: number) {
  return { first, next, name: `${first}`, ...stored };
}

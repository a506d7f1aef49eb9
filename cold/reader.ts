import type { SegmentRef } from '../core/manifest.ts';
import type { ColdKind } from '../core/topic.ts';
import { decodeSegment, type SegmentRecord } from './segment.ts';
import type { ColdStore } from './store.ts';
import type { ColdStores } from './stores.ts';

/** Segments that are kept decoded: readers go through them in order. */
const segmentsKept = 8;

/** A cold record as readers of a topic have it. */
export interface ColdRecord {
  readonly offset: number;
  readonly partitionKey: string;
  readonly deduplicationKey: string;
  readonly payload: unknown;
  readonly payloadBytes: Uint8Array;
  readonly appendedAt: string;
}

export interface SegmentReader {
  /** null: the object is gone. Throws ReplayFault. */
  read(
    segment: SegmentRef,
    place: { topic: string; partition: number },
    signal?: AbortSignal,
  ): Promise<readonly ColdRecord[] | null>;
}

/** Reads segments of a cold store. They never change, so the last ones are kept. */
export function createSegmentReader(store: ColdStore): SegmentReader {
  const kept = new Map<string, readonly ColdRecord[]>();
  return {
    async read(segment, place, signal = new AbortController().signal) {
      const known = kept.get(segment.name);
      if (known !== undefined) return known;
      const bytes = await store.get(segment.name, signal);
      if (bytes === null) return null;
      const { records } = decodeSegment({ ...place, first: segment.first, next: segment.next }, bytes);
      const read = records.map(coldRecord);
      kept.set(segment.name, read);
      if (kept.size > segmentsKept) kept.delete(kept.keys().next().value!);
      return read;
    },
  };
}

/** One reader per kind of store. Throws `cold_unconfigured`. */
export function createSegmentReaders(stores: ColdStores): (kind: ColdKind) => SegmentReader {
  const readers = new Map<ColdKind, SegmentReader>();
  return (kind) => {
    const reader = readers.get(kind) ?? createSegmentReader(stores(kind));
    readers.set(kind, reader);
    return reader;
  };
}

function coldRecord(record: SegmentRecord): ColdRecord {
  return {
    ...record,
    get payload(): unknown {
      return JSON.parse(Buffer.from(record.payloadBytes).toString('utf8'));
    },
  };
}

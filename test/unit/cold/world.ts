import { decodeSegment, encodeSegment, parseSegmentName, segmentName } from '../../../cold/segment.ts';
import type { ColdStore } from '../../../cold/store.ts';
import type { SweepDeps } from '../../../activities/deps.ts';
import { coldThrough, findSegment, isRecorded, newManifest, record, type Manifest } from '../../../core/manifest.ts';
import { decideSweep } from '../../../core/sweep.ts';
import { checkSettings } from '../../../core/topic.ts';
import type { OpenedTopic } from '../../../jetstream/topics/registry.ts';
import type { TopicRecord } from '../../../jetstream/topics/wire.ts';

/** The actor is lost here: nothing of it goes on, but a request it has sent may still arrive. */
export class Lost extends Error {}

export type Fate = 'go' | 'lost_before' | 'lost_after' | 'arrives_late';

const maxRecords = 3;

/** One partition of a topic in memory: each effect is one turn, and may be the last of its actor. */
export class World {
  readonly objects = new Map<string, Uint8Array>();
  readonly late: (() => void)[] = [];
  manifest: Manifest = newManifest;
  revision = 0;
  next = 0;
  hot = 0;
  nowMs = 1_000_000;
  #uploads = 0;
  readonly #decoded = new Map<Uint8Array, readonly number[]>();
  readonly opened: OpenedTopic;

  constructor() {
    const settings = checkSettings({ partitions: 1, hot: { maxRecords }, cold: 'file' });
    const topic = { ...settings, id: 'aa', name: 't', hashVersion: 'fnv1a-utf16-v1' as const, createdAt: '' };
    this.opened = { topic, partitions: [{ topic, partition: 0, stream: 's', incarnation: '' }] };
  }

  get partition() {
    return this.opened.partitions[0]!;
  }

  /** `turn` decides what becomes of each effect. */
  deps(turn: () => Promise<Fate>): SweepDeps {
    const effect = async <T>(act: () => T): Promise<T> => {
      const fate = await turn();
      if (fate === 'go') return act();
      if (fate === 'lost_after') act();
      if (fate === 'arrives_late') this.late.push(() => unheard(act));
      throw new Lost();
    };
    const change: SweepDeps['topics']['change'] = async (_of, decide) => {
      for (;;) {
        const [before, revision] = await effect(() => [this.manifest, this.revision] as const);
        const { manifest, answer } = decide(before);
        if (manifest === null) return answer;
        const isWritten = await effect(() => {
          if (this.revision !== revision) return false;
          this.manifest = JSON.parse(JSON.stringify(manifest)) as Manifest;
          this.revision++;
          return true;
        });
        if (isWritten) return answer;
      }
    };
    const bounds = () => effect(() => ({ partition: 0, oldest: this.hot, hot: this.hot, next: this.next, bytes: 0 }));
    const store: ColdStore = {
      put: (name, bytes) =>
        effect(() => {
          if (this.objects.has(name)) return 'exists';
          this.objects.set(name, Uint8Array.from(bytes));
          return 'stored';
        }),
      get: (name) => effect(() => this.objects.get(name) ?? null),
      list: (prefix) => effect(() => [...this.objects.keys()].filter((name) => name.startsWith(prefix)).sort()),
      remove: (name) => effect(() => void this.objects.delete(name)),
      prove: async () => {},
    };
    return {
      cold: () => store,
      segments: { name: segmentName, parse: parseSegmentName, encode: encodeSegment, decode: decodeSegment },
      topics: {
        open: async () => this.opened,
        list: async () => ['t'],
        bounds,
        change,
        manifest: () => effect(() => this.manifest),
        mendCursors: async () => 0,
        isRecorded: (_of, intent) => effect(() => isRecorded(this.manifest, intent)),
        readHot: (_of, { first, next }) =>
          effect(() => {
            if (first < this.hot) throw new Error('not hot any more');
            return Array.from({ length: next - first }, (_, i) => recordAt(first + i));
          }),
        async next(of, nowMs, nameOf) {
          const { hot, next } = await bounds();
          const before = Math.max(hot, next - maxRecords);
          const facts = { hot, next, before, recordsMax: 4, mergeRecordsMax: 40, mergeBytesMax: 1_000_000, nowMs, nameOf };
          return await change(of, (manifest) => decideSweep(manifest, facts));
        },
        record: (of, intent, stored) =>
          change(of, (manifest) => {
            const after = record(manifest, intent, stored);
            return { manifest: after, answer: after !== null || isRecorded(manifest, intent) };
          }),
        purge: async (_of, before) => {
          const { hot } = await bounds();
          if (before <= hot) return 0;
          const cold = await effect(() => coldThrough(this.manifest, hot));
          if (before > cold) throw new Error('a purge of what is not cold');
          return await effect(() => {
            this.hot = Math.max(this.hot, before);
            return 0;
          });
        },
      },
    };
  }

  nameOf(span: { first: number; next: number }, epoch: number): string {
    return segmentName({ topic: 'aa', partition: 0, ...span }, epoch, `u${this.#uploads++}`);
  }

  /** What a reader finds at an offset. */
  read(offset: number): number | 'expired' | 'gone' {
    if (offset >= this.hot) return offset;
    const found = findSegment(this.manifest, offset);
    const bytes = 'name' in found ? this.objects.get(found.name) : undefined;
    if (bytes !== undefined && 'name' in found) {
      const payloads = this.#decoded.get(bytes) ?? decode(found, bytes);
      this.#decoded.set(bytes, payloads);
      return payloads[offset - found.first]!;
    }
    return offset < this.manifest.floor ? 'expired' : 'gone';
  }
}

function decode({ first, next }: { first: number; next: number }, bytes: Uint8Array): number[] {
  const { records } = decodeSegment({ topic: 'aa', partition: 0, first, next }, bytes);
  return records.map(({ payloadBytes }) => Number(Buffer.from(payloadBytes).toString()));
}

/** Nobody hears what becomes of it. */
function unheard(act: () => unknown): void {
  try {
    act();
  } catch {
    // The request was refused.
  }
}

function recordAt(offset: number): TopicRecord {
  return {
    offset,
    partitionKey: 'k',
    deduplicationKey: `d${offset}`,
    payload: offset,
    payloadBytes: Buffer.from(String(offset)),
    appendedAt: '2026-05-01T10:00:00.000000000Z',
  };
}

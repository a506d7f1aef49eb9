import { ReplayFault } from '../../core/errors.ts';
import { groupByPartition } from '../../core/partition.ts';
import { shown } from '../../core/problems.ts';
import { isOverBytes, type Topic } from '../../core/topic.ts';
import { TopicError } from '../../core/topic-errors.ts';
import { withFaults, type Link } from '../link.ts';
import type { TopicHooks } from './hooks.ts';
import { readManifest } from './manifest-store.ts';
import { readBounds, type Partition, type PartitionBounds } from './partition-stream.ts';
import { prepareGroup, type PushRecord } from './prepare.ts';
import { pushIntoPartition, type PushAnswer } from './push.ts';
import { offsetAt, readPage, type ColdReader, type Page } from './read.ts';
import type { OpenedTopic } from './registry.ts';
import { Slots } from './slots.ts';

/** The server takes 50 open batches of a stream; other clients need some of them. */
const pushesAtOnce = 16;
const pushesWaitingMax = 20_000;
const secondMs = 1_000;
/** How old the known size of a partition may be when a push goes by it. */
const sizeMsMax = 1_000;
const payloadMaxUnknown = 1_048_576;

/** What became of the records of one partition. */
export type PushGroup = {
  readonly partition: number;
  /** Which of the pushed records they are. */ readonly indexes: readonly number[];
} & (
  | { readonly status: 'accepted'; /** In the order of `indexes`. */ readonly offsets: readonly number[] }
  | { readonly status: 'rejected' | 'uncertain'; readonly error: TopicError | ReplayFault }
);

/** The log of an opened topic. */
export class TopicLog {
  readonly topic: Topic;
  readonly partitions: readonly Partition[];
  readonly #link: Link;
  readonly #hooks: TopicHooks;
  readonly #cold: ColdReader | null;
  readonly #slots: readonly Slots[];
  readonly #sizes = new Map<number, { readonly atMs: number; readonly isFull: Promise<boolean> }>();
  #second = { startMs: 0, records: 0 };

  constructor(link: Link, { topic, partitions }: OpenedTopic, hooks: TopicHooks, cold: ColdReader | null = null) {
    this.#cold = cold;
    this.#link = link;
    this.topic = topic;
    this.partitions = partitions;
    this.#hooks = hooks;
    this.#slots = partitions.map(() => new Slots(pushesAtOnce, pushesWaitingMax));
  }

  /** Groups the records by partition and pushes all groups at the same time. Throws `push_empty` before anything is written. */
  async push(records: readonly PushRecord[]): Promise<PushGroup[]> {
    if (records.length === 0) throw new TopicError('push_empty');
    const keyed = records.map(({ partitionKey }) => ({ partitionKey: typeof partitionKey === 'string' ? partitionKey : '' }));
    const groups = [...groupByPartition(keyed, this.topic.partitions)];
    return await Promise.all(groups.map(([partition, indexes]) => this.#pushGroup(partition, indexes, records)));
  }

  async #pushGroup(partition: number, indexes: readonly number[], records: readonly PushRecord[]): Promise<PushGroup> {
    const answer = await this.#answerOf(
      partition,
      indexes.map((index) => records[index]!),
    );
    this.#hooks.observe?.({
      kind: 'push',
      topic: this.topic.name,
      partition,
      status: answer.status,
      records: indexes.length,
      duplicates: answer.status === 'accepted' ? indexes.length - answer.stored : 0,
      code: answer.status === 'accepted' ? null : answer.error.code,
    });
    if (answer.status !== 'accepted') return { partition, indexes, status: answer.status, error: answer.error };
    return { partition, indexes, status: 'accepted', offsets: answer.offsets };
  }

  async #answerOf(partition: number, records: readonly PushRecord[]): Promise<PushAnswer> {
    try {
      const serverBytesMax = this.#link.nc.info?.max_payload ?? payloadMaxUnknown;
      const prepared = prepareGroup(records, this.topic, this.#hooks, serverBytesMax);
      this.#spend(records.length);
      const push = () => pushIntoPartition(this.#link, this.partitions[partition]!, prepared, () => this.#isFull(partition));
      const answer = await this.#slots[partition]!.run(push);
      return answer ?? { status: 'rejected', error: new TopicError('partition_busy') };
    } catch (error) {
      if (error instanceof TopicError || error instanceof ReplayFault) return { status: 'rejected', error };
      throw error;
    }
  }

  /** By bytes; records are counted by the server. Only the first push waits for the answer. Throws `topic_broken`. */
  #isFull(partition: number): Promise<boolean> {
    const nowMs = Date.now();
    const known = this.#sizes.get(partition);
    if (known !== undefined && nowMs - known.atMs < sizeMsMax) return known.isFull;
    const bounds = readBounds(this.#link, this.partitions[partition]!);
    const isFull = bounds.then(({ hot, next, bytes }) => isOverBytes(this.topic.hot, { records: next - hot, bytes }));
    this.#sizes.set(partition, { atMs: nowMs, isFull: known === undefined ? isFull : known.isFull });
    isFull.then(
      () => this.#sizes.set(partition, { atMs: nowMs, isFull }),
      () => this.#sizes.delete(partition),
    );
    return known?.isFull ?? isFull;
  }

  /** Throws `quota_exceeded`. */
  #spend(records: number): void {
    const most = this.topic.quota.recordsPerSecond;
    if (most === null) return;
    const nowMs = Date.now();
    if (nowMs - this.#second.startMs >= secondMs) this.#second = { startMs: nowMs, records: 0 };
    if (this.#second.records + records > most) throw new TopicError('quota_exceeded', `${most} records a second`);
    this.#second.records += records;
  }

  /** See readPage. */
  read(partition: number, from: number, limit: number, signal?: AbortSignal): Promise<Page> {
    return withFaults(signal, () => readPage(this.#link, this.partition(partition), { from, limit, signal }, this.#cold));
  }

  /** One line per partition. */
  bounds(): Promise<PartitionBounds[]> {
    return withFaults(undefined, () => Promise.all(this.partitions.map((partition) => this.#boundsWithCold(partition))));
  }

  boundsOf(partition: number): Promise<PartitionBounds> {
    return withFaults(undefined, () => this.#boundsWithCold(this.partition(partition)));
  }

  async #boundsWithCold(partition: Partition): Promise<PartitionBounds> {
    const bounds = await readBounds(this.#link, partition);
    if (this.topic.cold === null) return bounds;
    const [oldest] = (await readManifest(this.#link, this.topic, partition.partition)).segments;
    return { ...bounds, oldest: Math.min(bounds.hot, oldest?.first ?? bounds.hot) };
  }

  /** First offset appended at or after the time; the end of the log when there is none. */
  offsetAt(partition: number, timeNanos: bigint): Promise<number> {
    return withFaults(undefined, () => offsetAt(this.#link, this.partition(partition), timeNanos, this.#cold));
  }

  /** Throws `setting_invalid`. */
  partition(partition: number): Partition {
    const found = this.partitions[partition];
    if (found !== undefined) return found;
    throw new TopicError(
      'setting_invalid',
      `the partition is ${shown(partition)}; this topic has partitions 0 to ${this.partitions.length - 1}`,
    );
  }
}

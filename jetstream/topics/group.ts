import { randomBytes } from 'node:crypto';
import { ReplayFault } from '../../core/errors.ts';
import { secondsToTruncation } from '../../core/group-lag.ts';
import {
  commit,
  formatHandle,
  lease,
  parseHandle,
  release,
  renew,
  reset,
  startOf,
  type CommitResult,
  type Gap,
  type GroupState,
  type LogEnds,
  type ResetLine,
  type Span,
  type TruncationPolicy,
} from '../../core/group.ts';
import { shown } from '../../core/problems.ts';
import { checkName, pageRecordsMax } from '../../core/topic.ts';
import { TopicError, truncated } from '../../core/topic-errors.ts';
import { withFaults, type Link } from '../link.ts';
import { storeDeadLetter } from './dead-letter.ts';
import { changeGroup, deleteGroups, readGroup, type Decision, type GroupKey } from './group-store.ts';
import type { TopicHooks } from './hooks.ts';
import type { TopicLog } from './log.ts';
import { appendedAtMs, type Page } from './read.ts';
import type { TopicRecord } from './wire.ts';

const idBytes = 8;
const leaseDefaultMs = 30_000;
const leaseMsMax = 86_400_000;
const parallelMax = 64;
const attemptsMaxMax = 1_000;

export interface ConsumeRequest {
  readonly partition: number;
  /** Default and at most 100. */
  readonly limit?: number | undefined;
  /** Default `stop`: records that are gone end in `truncated` until a reset. */
  readonly onTruncated?: TruncationPolicy | undefined;
}

export interface ConsumedPage extends Page {
  /** For `commit`: fenced once somebody leased or reset. */
  readonly handle: string;
  /** Records that were gone before this group came to them; only with `earliest`. */
  readonly gap: Span | null;
}

export interface LeaseOptions extends ConsumeRequest {
  /** How long the lease lasts without a renewal; default 30 s, at most a day. */
  readonly leaseMs?: number | undefined;
  /** Leases held in this partition at a time; default 1, at most 64. */
  readonly parallel?: number | undefined;
  /** Deliveries of a record until it becomes a dead letter; default: never. */
  readonly attemptsMax?: number | undefined;
  /** Shown by `positions`. */
  readonly owner?: string | undefined;
}

/** A range of records that nobody else of the group has. */
export interface Lease {
  readonly handle: string;
  readonly partition: number;
  readonly records: readonly TopicRecord[];
  readonly nextOffset: number;
  /** 1 the first time. */
  readonly attempt: number;
  readonly gap: Span | null;
  /** All of it is settled, or all before `nextOffset`. */
  commit(nextOffset?: number): Promise<CommitAnswer>;
  /** Puts off its end. False: it is no longer held. */
  renew(): Promise<boolean>;
  /** Gives it back: its records go out again. False: it is no longer held. */
  release(): Promise<boolean>;
}

export interface CommitAnswer {
  readonly result: CommitResult;
  /** Of the group now; null: nothing was ever settled from the front. */
  readonly cursor: number | null;
}

export type ResetTarget =
  | { readonly to: 'earliest' | 'latest' }
  | { readonly to: 'offset'; readonly offset: number }
  | { readonly to: 'time'; readonly timeNanos: bigint };

export interface Position {
  readonly partition: number;
  readonly cursor: number | null;
  /** Records from the cursor, or from the oldest, to the end of the log. */
  readonly lag: number;
  /** Age of the first of them; null: none, or it is gone. */
  readonly lagSeconds: number | null;
  /** Since the cursor moved. */
  readonly cursorAgeSeconds: number | null;
  /** Until the first of them leaves the hot window, at the pace so far; null: none. */
  readonly truncatesInSeconds: number | null;
  readonly held: number;
  readonly gaps: readonly Gap[];
  readonly resets: readonly ResetLine[];
}

/** One consumer group of a topic: an independent position in each partition. */
export class ConsumerGroup {
  readonly name: string;
  readonly #link: Link;
  readonly #log: TopicLog;
  readonly #hooks: TopicHooks;

  constructor(link: Link, log: TopicLog, name: string, hooks: TopicHooks) {
    this.name = checkName('group', name);
    this.#link = link;
    this.#log = log;
    this.#hooks = hooks;
  }

  /** Reads at the group's position, without a lease. Throws `truncated`, `gap`. */
  async consume({ partition, limit = pageRecordsMax, onTruncated = 'stop' }: ConsumeRequest): Promise<ConsumedPage> {
    return await withFaults(undefined, async () => {
      const state = await readGroup(this.#link, this.#key(partition));
      const ends = await this.#log.boundsOf(partition);
      const start = startOf(state, ends, onTruncated);
      if (start.kind === 'truncated') throw truncated(start.nextReadable);
      const page = await this.#log.read(partition, start.offset, limit);
      return { ...page, handle: formatHandle({ kind: 'epoch', epoch: state.epoch }), gap: start.gap };
    });
  }

  /** null: nothing to lease now. Throws `truncated`, `gap`; a record that became a dead letter counts as nothing, once. */
  async lease(options: LeaseOptions): Promise<Lease | null> {
    const {
      partition,
      limit = pageRecordsMax,
      leaseMs = leaseDefaultMs,
      parallel = 1,
      attemptsMax = null,
      owner = '',
    } = options;
    inRange('limit', limit, 1, Number.MAX_SAFE_INTEGER);
    inRange('leaseMs', leaseMs, 1, leaseMsMax);
    inRange('parallel', parallel, 1, parallelMax);
    if (attemptsMax !== null) inRange('attemptsMax', attemptsMax, 1, attemptsMaxMax);
    const id = randomBytes(idBytes).toString('hex');
    const policy = options.onTruncated ?? 'stop';
    const recordsMax = Math.min(limit, pageRecordsMax);
    const leased = await this.#change(partition, async (state, ends) => {
      const request = { id, owner, nowMs: Date.now(), leaseMs, recordsMax, parallel, attemptsMax, policy };
      const answer = lease(state, ends, request);
      if (answer.kind === 'truncated') throw truncated(answer.nextReadable);
      if (answer.kind === 'poisoned') await this.#setAside(partition, answer.offset, answer.attempts);
      return { state: 'state' in answer ? answer.state : null, answer };
    });
    if (leased.kind !== 'leased') return null;
    const { first, next, attempt } = leased.lease;
    const handle = formatHandle({ kind: 'lease', id });
    const records = await this.#readRange(partition, { first, next }).catch(async (error: unknown) => {
      await this.#giveBack(partition, id);
      throw error;
    });
    return {
      handle,
      partition,
      records,
      nextOffset: next,
      attempt,
      gap: leased.gap,
      commit: (nextOffset = next) => this.commit({ partition, nextOffset, handle }),
      renew: () => this.#change(partition, (state) => held(renew(state, id, { nowMs: Date.now(), leaseMs }))),
      release: () => this.#giveBack(partition, id),
    };
  }

  /** Everything before `nextOffset` is settled. Without a handle it is fenced only while somebody holds a lease. */
  async commit(request: { partition: number; nextOffset: number; handle?: string | undefined }): Promise<CommitAnswer> {
    const { partition, nextOffset } = request;
    inRange('nextOffset', nextOffset, 0, Number.MAX_SAFE_INTEGER);
    const handle = request.handle === undefined ? null : parseHandle(request.handle);
    if (handle === null && request.handle !== undefined)
      throw new TopicError('setting_invalid', 'this is not a handle of consume');
    const answer = await this.#change(partition, (state, ends): Decision<CommitAnswer> => {
      const { result, state: after } = commit(state, ends, { nextOffset, handle, nowMs: Date.now() });
      return { state: after, answer: { result, cursor: (after ?? state).cursor } };
    });
    const { result } = answer;
    this.#hooks.observe?.({ kind: 'commit', topic: this.#log.topic.name, group: this.name, partition, result });
    return answer;
  }

  /**
   * Sets the position, forward or back, in one partition or in all of them, and fences whoever holds an older one. `by` stands in
   * the audit line. Throws `truncated` and `out_of_range` before anything is changed. Resolves to the new offsets by partition.
   */
  async reset(
    target: ResetTarget,
    { partition, by }: { partition?: number | undefined; by: string },
  ): Promise<Map<number, number>> {
    const partitions = partition === undefined ? [...this.#log.partitions.keys()] : [partition];
    const offsets = await Promise.all(partitions.map((one) => this.#offsetOf(one, target)));
    const done = new Map<number, number>();
    for (const [i, one] of partitions.entries()) {
      const to = offsets[i]!;
      await this.#change(one, (state) => ({ state: reset(state, { to, by, nowMs: Date.now() }), answer: null }));
      done.set(one, to);
    }
    return done;
  }

  /** Where the group stands, one line per partition; of all of them unless told. */
  async positions(partitions: readonly number[] = [...this.#log.partitions.keys()]): Promise<Position[]> {
    return await withFaults(undefined, () => Promise.all(partitions.map((one) => this.#position(one))));
  }

  /** Forgets the group in all partitions. */
  async delete(): Promise<void> {
    await withFaults(undefined, () => deleteGroups(this.#link, this.#log.topic, this.name));
  }

  async #position(partition: number): Promise<Position> {
    const [state, bounds] = await Promise.all([readGroup(this.#link, this.#key(partition)), this.#log.boundsOf(partition)]);
    const nowMs = Date.now();
    const at = state.cursor ?? bounds.oldest;
    const lag = Math.max(0, bounds.next - at);
    const firstMs = lag === 0 ? null : await appendedAtMs(this.#link, this.#log.partition(partition), at);
    const seconds = (ms: number | null) => (ms === null ? null : Math.max(0, Math.round((nowMs - ms) / 1_000)));
    const facts = { nowMs, lag, hotRecords: bounds.next - bounds.hot, hotBytes: bounds.bytes };
    return {
      partition,
      cursor: state.cursor,
      lag,
      lagSeconds: seconds(firstMs),
      cursorAgeSeconds: seconds(state.movedAtMs),
      truncatesInSeconds:
        firstMs === null || this.#log.topic.cold !== null
          ? null
          : secondsToTruncation({ ...facts, appendedAtMs: firstMs }, this.#log.topic.hot),
      held: state.ranges.filter((range) => range.kind === 'held' && range.expiresAtMs > nowMs).length,
      gaps: state.gaps,
      resets: state.resets,
    };
  }

  async #offsetOf(partition: number, target: ResetTarget): Promise<number> {
    const { oldest, next } = await this.#log.boundsOf(partition);
    switch (target.to) {
      case 'earliest':
        return oldest;
      case 'latest':
        return next;
      case 'time':
        return Math.max(oldest, await this.#log.offsetAt(partition, target.timeNanos));
      case 'offset':
        inRange('offset', target.offset, 0, Number.MAX_SAFE_INTEGER);
        if (target.offset < oldest) throw truncated(oldest);
        if (target.offset > next) throw new TopicError('out_of_range', `partition ${partition} ends at ${next}`);
        return target.offset;
    }
  }

  /** Stores the dead letter first: only then may the position move over the record. */
  async #setAside(partition: number, offset: number, attempts: number): Promise<void> {
    const [record] = await this.#readRange(partition, { first: offset, next: offset + 1 });
    await storeDeadLetter(this.#link, this.#key(partition), record!, attempts);
    this.#hooks.observe?.({ kind: 'dead_letter', topic: this.#log.topic.name, group: this.name, partition, offset });
  }

  /** All of a range, or an error: settling it would settle what was never shown. */
  async #readRange(partition: number, { first, next }: Span): Promise<TopicRecord[]> {
    const records: TopicRecord[] = [];
    while (first + records.length < next) {
      const at = first + records.length;
      const page = await this.#log.read(partition, at, next - at);
      if (page.records.length === 0) throw new ReplayFault('nats_timeout', 'the records of the lease are not there yet');
      records.push(...page.records);
    }
    return records;
  }

  #giveBack(partition: number, id: string): Promise<boolean> {
    return this.#change(partition, (state) => held(release(state, id, Date.now())));
  }

  #change<T>(partition: number, decide: (state: GroupState, ends: LogEnds) => Decision<T> | Promise<Decision<T>>): Promise<T> {
    const { name } = this;
    const observed = { topic: this.#log.topic.name, group: name, partition };
    return withFaults(undefined, () =>
      changeGroup(
        this.#link,
        this.#key(partition),
        async (state) => decide(state, await this.#log.boundsOf(partition)),
        () => this.#hooks.observe?.({ kind: 'contended', ...observed }),
      ),
    );
  }

  #key(partition: number): GroupKey {
    this.#log.partition(partition);
    return { topic: this.#log.topic, group: this.name, partition };
  }
}

function held(state: GroupState | null): Decision<boolean> {
  return { state, answer: state !== null };
}

function inRange(name: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  const upper = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw new TopicError('setting_invalid', `${name} is ${shown(value)}; expected a whole number ${upper}`);
}

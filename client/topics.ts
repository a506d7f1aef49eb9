/**
 * Topics as a library: produce, read, consume, commit.
 *
 *     const topics = await connectTopics();
 *     const orders = await topics.create('orders');
 *     const groups = await orders.push([{ partitionKey: 'user-1', deduplicationKey: 'o-1', payload: { id: 1 } }]);
 *     const billing = orders.group('billing');
 *     const lease = await billing.lease({ partition: groups[0].partition });
 *     await lease?.commit();
 *     await topics.close();
 *
 * Every call throws TopicError (a stable `code`, what it means, what to do `next`) or ReplayFault (the server does not answer).
 */
import { createSegmentReaders } from '../cold/reader.ts';
import { createColdStores } from '../cold/stores.ts';
import type { ReplayFault } from '../core/errors.ts';
import { formatProblems } from '../core/problems.ts';
import { TopicError } from '../core/topic-errors.ts';
import type { ColdKind, Topic, TopicOptions } from '../core/topic.ts';
import { closeNats, connectNats, readNatsSettings, type NatsSettings } from '../jetstream/connection.ts';
import { openLink, withFaults, type Link } from '../jetstream/link.ts';
import { deleteDeadLetters } from '../jetstream/topics/dead-letter.ts';
import { deleteGroups, listGroups } from '../jetstream/topics/group-store.ts';
import {
  ConsumerGroup,
  type CommitAnswer,
  type ConsumedPage,
  type ConsumeRequest,
  type Lease,
  type LeaseOptions,
  type Position,
  type ResetTarget,
} from '../jetstream/topics/group.ts';
import type { TopicAccess, TopicEvent, TopicHooks } from '../jetstream/topics/hooks.ts';
import { TopicLog, type PushGroup } from '../jetstream/topics/log.ts';
import type { PartitionBounds } from '../jetstream/topics/partition-stream.ts';
import type { PushRecord } from '../jetstream/topics/prepare.ts';
import type { ColdReader, Page } from '../jetstream/topics/read.ts';
import { expireCold, type ColdExpired, type ColdLimit } from '../jetstream/topics/expire-cold.ts';
import { deleteManifests } from '../jetstream/topics/manifest-store.ts';
import { createTopic, deleteTopic, listTopics, openTopic, type OpenedTopic } from '../jetstream/topics/registry.ts';
import { assertTopicServer } from '../jetstream/topics/server.ts';
import type { TopicRecord } from '../jetstream/topics/wire.ts';

export { TopicError, type ReplayFault };
export type {
  ColdExpired,
  ColdLimit,
  CommitAnswer,
  ConsumedPage,
  ConsumeRequest,
  Lease,
  LeaseOptions,
  Page,
  PartitionBounds,
  Position,
  PushGroup,
  PushRecord,
  ResetTarget,
  Topic,
  TopicAccess,
  TopicEvent,
  TopicHooks,
  TopicOptions,
  TopicRecord,
};

export interface TopicsOptions extends TopicHooks {
  /** `NATS_URL` and the others of the `nats` command, `REPLAY_COLD_*` and `AWS_*`; default: those of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface Topics {
  /** Throws `topic_exists`, `name_invalid`, `setting_invalid`. */
  create(name: string, options?: TopicOptions): Promise<TopicHandle>;
  /** Throws `topic_missing`, and `topic_broken` when a stream of it is not the one it was created with. */
  open(name: string): Promise<TopicHandle>;
  /** By name. */
  list(): Promise<Topic[]>;
  /** With everything in it: records, positions, dead letters. */
  delete(name: string): Promise<void>;
  close(): Promise<void>;
}

export interface TopicHandle {
  readonly topic: Topic;
  /**
   * Pushes each partition's records as a whole, all partitions at the same time; answers within 5 s of its turn, per partition:
   * `accepted` with offsets, `rejected` (nothing of the group stored), or `uncertain` (the same push again makes it certain).
   */
  push(records: readonly PushRecord[]): Promise<PushGroup[]>;
  /** At most 100 records of one partition. Throws `truncated`, `gap`, `out_of_range`. */
  read(request: { partition: number; from: number; limit?: number; signal?: AbortSignal }): Promise<Page>;
  bounds(): Promise<PartitionBounds[]>;
  group(name: string): GroupHandle;
  /**
   * Gives up cold segments all of whose records lie before an offset, or are older than a time: readers see them no more, and sweeps
   * remove their objects an hour later.
   */
  expireCold(request: { before: ColdLimit; partition?: number | undefined }): Promise<ColdExpired[]>;
  /** Names of the groups that have a position. */
  groups(): Promise<string[]>;
}

export interface GroupHandle {
  readonly name: string;
  consume(request: ConsumeRequest): Promise<ConsumedPage>;
  lease(options: LeaseOptions): Promise<Lease | null>;
  commit(request: { partition: number; nextOffset: number; handle?: string | undefined }): Promise<CommitAnswer>;
  reset(target: ResetTarget, options: { partition?: number | undefined; by: string }): Promise<Map<number, number>>;
  /** Of all partitions unless told. */
  positions(partitions?: readonly number[]): Promise<Position[]>;
  delete(): Promise<void>;
}

type ColdReaders = (kind: ColdKind) => ColdReader;

const pageDefault = 100;

/** Connects to NATS. Throws ReplayFault, or `server_too_old`. */
export async function connectTopics(options: TopicsOptions = {}): Promise<Topics> {
  const settings = readNatsSettings(options.env ?? process.env);
  if (!settings.ok) throw new TopicError('setting_invalid', formatProblems(settings.problems));
  return await openTopics(settings.value, options, createSegmentReaders(createColdStores(options.env ?? process.env)));
}

async function openTopics(settings: NatsSettings, hooks: TopicHooks, cold: ColdReaders): Promise<Topics> {
  const nc = await connectNats(settings);
  const link = openLink(nc, settings);
  try {
    assertTopicServer(link);
  } catch (error) {
    await nc.close();
    throw error;
  }
  const allowed = <T>(access: TopicAccess, act: () => Promise<T>) => ifAllowed(hooks, access, () => withFaults(undefined, act));
  const clean = async (topic: Topic) => {
    await deleteGroups(link, topic, null);
    await deleteDeadLetters(link, topic.id);
    await deleteManifests(link, topic);
  };
  return {
    create: (name, topicOptions = {}) =>
      allowed({ action: 'create', topic: name }, async () =>
        handleOf(link, await createTopic(link, name, topicOptions), hooks, cold),
      ),
    open: (name) =>
      allowed({ action: 'describe', topic: name }, async () => {
        const opened = await openTopic(link, name);
        const handle = handleOf(link, opened, hooks, cold);
        // A stream that is not the one it was created with would give out offsets anew.
        await new TopicLog(link, opened, {}).bounds();
        return handle;
      }),
    list: () => withFaults(undefined, () => listTopics(link)),
    delete: (name) => allowed({ action: 'delete', topic: name }, () => deleteTopic(link, name, clean)),
    close: () => closeNats(nc),
  };
}

async function ifAllowed<T>(hooks: TopicHooks, access: TopicAccess, act: () => Promise<T>): Promise<T> {
  if (hooks.authorize !== undefined && !(await hooks.authorize(access))) throw new TopicError('denied', access.action);
  return await act();
}

function handleOf(link: Link, opened: OpenedTopic, hooks: TopicHooks, cold: ColdReaders): TopicHandle {
  const log = new TopicLog(link, opened, hooks, opened.topic.cold === null ? null : lazyReader(cold, opened.topic.cold));
  const topic = log.topic.name;
  const allowed = <T>(action: TopicAccess['action'], act: () => Promise<T>) => ifAllowed(hooks, { action, topic }, act);
  return {
    topic: log.topic,
    push: (records) => allowed('push', () => log.push(records)),
    read: ({ partition, from, limit = pageDefault, signal }) => allowed('read', () => log.read(partition, from, limit, signal)),
    bounds: () => allowed('describe', () => log.bounds()),
    expireCold: ({ before, partition }) =>
      allowed('expire', () =>
        withFaults(undefined, async () => {
          const chosen = partition === undefined ? log.partitions : [log.partition(partition)];
          return await Promise.all(chosen.map((one) => expireCold(link, one, before, Date.now())));
        }),
      ),
    groups: () => allowed('groups', () => withFaults(undefined, () => listGroups(link, log.topic))),
    group: (name) => groupHandleOf(new ConsumerGroup(link, log, name, hooks), topic, hooks),
  };
}

/** Whoever only pushes needs no login for the cold store. */
function lazyReader(readers: ColdReaders, kind: ColdKind): ColdReader {
  return { read: async (segment, place, signal) => await readers(kind).read(segment, place, signal) };
}

function groupHandleOf(group: ConsumerGroup, topic: string, hooks: TopicHooks): GroupHandle {
  const { name } = group;
  const allowed = <T>(action: TopicAccess['action'], act: () => Promise<T>) =>
    ifAllowed(hooks, { action, topic, group: name }, act);
  return {
    name,
    consume: (request) => allowed('consume', () => group.consume(request)),
    lease: (options) => allowed('consume', () => group.lease(options)),
    commit: (request) => allowed('commit', () => group.commit(request)),
    reset: (target, options) => allowed('reset', () => group.reset(target, options)),
    positions: (partitions) => allowed('groups', () => group.positions(partitions)),
    delete: () => allowed('reset', () => group.delete()),
  };
}

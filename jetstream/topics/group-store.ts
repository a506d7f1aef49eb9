import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { newGroup, type GroupState } from '../../core/group.ts';
import { decodeName, encodeName, type Topic } from '../../core/topic.ts';
import { TopicError } from '../../core/topic-errors.ts';
import { callApi } from '../api.ts';
import { apiCode, faultOfApi } from '../faults.ts';
import type { Link } from '../link.ts';
import { ensureBucket, listEntries, listKeys, readEntry, writeEntry, type Entry } from './key-value.ts';

/** Positions of consumer groups: one key per topic, partition and group, changed by compare-and-set only. */

const bucket = 'replay-topic-groups';
/** Others may change the key in between so often. */
const attemptsMax = 40;
const pauseMs = 5;
const pauseMsMax = 100;
/** A write without an answer is asked for again so often, which cannot store it twice. */
const unknownMax = 5;
const unknownPauseMs = 200;
/** Names of the last writes, kept with the state: they tell whether a write without an answer was stored. */
const writesKept = 16;

interface Stored extends GroupState {
  readonly format: 1;
  readonly writes: readonly string[];
}

export interface GroupKey {
  readonly topic: Topic;
  readonly group: string;
  readonly partition: number;
}

/** `state` null: nothing is to be changed. */
export interface Decision<T> {
  readonly state: GroupState | null;
  readonly answer: T;
}

export async function readGroup(link: Link, key: GroupKey): Promise<GroupState> {
  return parse(await readEntry(link, bucket, keyOf(key)));
}

/**
 * Reads, decides and stores until nobody else came in between. `decide` may run several times and sees the state as it is then.
 * Throws `group_contended`, `group_quota`, `group_corrupt`, and `group_uncertain` when the connection broke for too long.
 */
export async function changeGroup<T>(
  link: Link,
  key: GroupKey,
  decide: (state: GroupState) => Decision<T> | Promise<Decision<T>>,
  onConflict: () => void,
): Promise<T> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const entry = await readEntry(link, bucket, keyOf(key));
    const before = parse(entry);
    const { state, answer } = await decide(before);
    if (state === null) return answer;
    if (entry.revision === 0) await admit(link, key);
    if (await store(link, key, entry, state, before.writes)) return answer;
    onConflict();
    await sleep(Math.random() * Math.min(pauseMsMax, pauseMs * attempt));
  }
  throw new TopicError('group_contended');
}

/** False: somebody else changed the key first. */
async function store(link: Link, key: GroupKey, entry: Entry, state: GroupState, writes: readonly string[]): Promise<boolean> {
  const name = randomBytes(6).toString('base64url');
  const stored: Stored = { ...state, format: 1, writes: [...writes, name].slice(-writesKept) };
  const value = JSON.stringify(stored);
  for (let unknown = 0; unknown < unknownMax; unknown++) {
    const write = await writeEntry(link, bucket, keyOf(key), { value, revision: entry.revision });
    if (write.kind === 'written') return true;
    if (write.kind === 'conflict') {
      // After a write without an answer the conflict may be with ourselves.
      return unknown > 0 && parse(await readEntry(link, bucket, keyOf(key))).writes.includes(name);
    }
    await sleep(unknownPauseMs * (unknown + 1));
  }
  throw new TopicError('group_uncertain');
}

/** A new key: makes the bucket when there is none, and counts the groups. */
async function admit(link: Link, { topic, group }: GroupKey): Promise<void> {
  await ensureBucket(link, bucket);
  const groups = new Set((await listKeys(link, bucket, `${topic.id}.`)).map((one) => one.split('.')[2]!));
  if (!groups.has(encodeName(group)) && groups.size >= topic.quota.maxGroups) throw new TopicError('group_quota');
}

/** Names of the groups that have a position somewhere. */
export async function listGroups(link: Link, topic: Topic): Promise<string[]> {
  const entries = await listEntries(link, bucket, `${topic.id}.`);
  return [...new Set([...entries.keys()].map((key) => decodeName(key.split('.')[2]!)))].sort();
}

/** Names of the groups that have a position in one partition. */
export async function listGroupsOf(link: Link, topic: Topic, partition: number): Promise<string[]> {
  const entries = await listEntries(link, bucket, `${topic.id}.${partition}.`);
  return [...entries.keys()].map((key) => decodeName(key.split('.')[2]!)).sort();
}

/** The positions of one group, or of all of a topic. They may be in the middle of a change: nobody holds them here. */
export async function deleteGroups(link: Link, topic: Topic, group: string | null): Promise<void> {
  const filter = `$KV.${bucket}.${topic.id}.*.${group === null ? '*' : encodeName(group)}`;
  const answer = await callApi(link, `STREAM.PURGE.KV_${bucket}`, { filter });
  if (!answer.ok && answer.error.err_code !== apiCode.streamNotFound) throw faultOfApi(answer.error, 'unexpected');
}

function keyOf({ topic, partition, group }: GroupKey): string {
  return `${topic.id}.${partition}.${encodeName(group)}`;
}

function parse({ value }: Entry): Stored {
  if (value === null) return { ...newGroup, format: 1, writes: [] };
  const stored = readJson(value);
  if (stored?.format !== 1 || !Array.isArray(stored.ranges) || !Number.isSafeInteger(stored.epoch)) {
    throw new TopicError('group_corrupt');
  }
  return stored as Stored;
}

function readJson(value: string): Partial<Stored> | null {
  try {
    return JSON.parse(value) as Partial<Stored> | null;
  } catch {
    return null;
  }
}

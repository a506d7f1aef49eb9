import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashVersion } from '../../core/partition.ts';
import { checkName, checkSettings, encodeName, type Topic, type TopicOptions } from '../../core/topic.ts';
import { TopicError } from '../../core/topic-errors.ts';
import type { Link } from '../link.ts';
import { ensureBucket, listEntries, readEntry, writeEntry, type Entry, type Write } from './key-value.ts';
import { createPartition, deletePartition, streamName, type Partition } from './partition-stream.ts';

const bucket = 'replay-topics';
const idBytes = 8;
/** Streams that are created or deleted at once. */
const streamsAtOnce = 8;
const writeAttemptsMax = 5;
const writeRetryMs = 200;

/** What the registry holds under the topic's encoded name. The entry is the commit point: streams without one are nothing. */
interface Registered extends Topic {
  readonly format: 1;
  readonly state: 'ready' | 'deleting';
  /** Creation times of the partitions' streams: a stream of the same name that was made later is another log. */
  readonly incarnations: readonly string[];
}

export interface OpenedTopic {
  readonly topic: Topic;
  readonly partitions: readonly Partition[];
}

/** Throws `topic_exists`, `name_invalid`, `setting_invalid`. A crash in between leaves no topic, at most unused streams. */
export async function createTopic(link: Link, name: string, options: TopicOptions): Promise<OpenedTopic> {
  checkName('topic', name);
  const settings = checkSettings(options);
  await ensureBucket(link, bucket);
  const before = await readEntry(link, bucket, encodeName(name));
  if (before.value !== null) throw taken(parse(before.value));
  const topic: Topic = {
    id: randomBytes(idBytes).toString('hex'),
    name,
    hashVersion,
    createdAt: new Date().toISOString(),
    ...settings,
  };
  const incarnations = await inTurn(topic.partitions, (partition) => createPartition(link, topic, partition));
  const registered: Registered = { format: 1, state: 'ready', ...topic, incarnations };
  if (await replace(link, registered, before.revision)) return opened(registered);
  await inTurn(topic.partitions, (partition) => deletePartition(link, topic.id, partition));
  throw new TopicError('topic_exists');
}

function taken(found: Registered): TopicError {
  return found.state === 'ready'
    ? new TopicError('topic_exists')
    : new TopicError('topic_exists', 'it is being deleted; delete it once more to finish that');
}

/** Throws `topic_missing`. */
export async function openTopic(link: Link, name: string): Promise<OpenedTopic> {
  const { value } = await readEntry(link, bucket, encodeName(checkName('topic', name)));
  const registered = value === null ? null : parse(value);
  if (registered?.state !== 'ready') throw new TopicError('topic_missing');
  return opened(registered);
}

/** By name. */
export async function listTopics(link: Link): Promise<Topic[]> {
  const entries = await listEntries(link, bucket, '');
  const topics = [...entries.values()].map(parse).filter(({ state }) => state === 'ready');
  return topics.map(topicOf).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Invisible first, then its streams, then what `clean` removes, then the entry: whatever is interrupted goes on when asked again. */
export async function deleteTopic(link: Link, name: string, clean: (topic: Topic) => Promise<void>): Promise<void> {
  const before = await readEntry(link, bucket, encodeName(checkName('topic', name)));
  if (before.value === null) throw new TopicError('topic_missing');
  const leaving: Registered = { ...parse(before.value), state: 'deleting' };
  if (!(await replace(link, leaving, before.revision))) throw new TopicError('topic_missing', 'somebody else changed it');
  await inTurn(leaving.partitions, (partition) => deletePartition(link, leaving.id, partition));
  await clean(topicOf(leaving));
  const now = await readEntry(link, bucket, encodeName(name));
  if (now.value === null || parse(now.value).id !== leaving.id) return;
  await settled(() => writeEntry(link, bucket, encodeName(name), { value: null, revision: now.revision }));
}

/** False when another one came first. Of a write without an answer, what stands there tells. */
async function replace(link: Link, registered: Registered, revision: number): Promise<boolean> {
  const key = encodeName(registered.name);
  const value = JSON.stringify(registered);
  const write = await settled(() => writeEntry(link, bucket, key, { value, revision }));
  if (write.kind === 'written') return true;
  const now: Entry = await readEntry(link, bucket, key);
  return now.value === value;
}

/** Asks again while there is no answer: a write that names its revision cannot happen twice. */
async function settled(write: () => Promise<Write>): Promise<Write> {
  for (let attempt = 1; ; attempt++) {
    const answer = await write();
    if (answer.kind !== 'unknown' || attempt === writeAttemptsMax) return answer;
    await sleep(writeRetryMs * attempt);
  }
}

async function inTurn<T>(count: number, act: (partition: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let from = 0; from < count; from += streamsAtOnce) {
    const some = Array.from({ length: Math.min(streamsAtOnce, count - from) }, (_, i) => act(from + i));
    results.push(...(await Promise.all(some)));
  }
  return results;
}

function opened(registered: Registered): OpenedTopic {
  const topic = topicOf(registered);
  const partitions = registered.incarnations.map((incarnation, partition) => ({
    topic,
    partition,
    stream: streamName(topic.id, partition),
    incarnation,
  }));
  return { topic, partitions };
}

function topicOf({ id, name, partitions, hashVersion: version, hot, quota, cold, createdAt }: Registered): Topic {
  return { id, name, partitions, hashVersion: version, hot, quota, cold, createdAt };
}

/** A hash that this version does not know would send records to wrong partitions. */
function parse(value: string): Registered {
  const registered = JSON.parse(value) as Registered;
  if (registered.format === 1 && registered.hashVersion === hashVersion) return registered;
  throw new TopicError('topic_broken', 'its registry entry was made by another version of this program');
}

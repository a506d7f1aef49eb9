import { setTimeout as sleep } from 'node:timers/promises';
import { newManifest, type Manifest } from '../../core/manifest.ts';
import type { Topic } from '../../core/topic.ts';
import { TopicError } from '../../core/topic-errors.ts';
import { callApi } from '../api.ts';
import { apiCode, faultOfApi } from '../faults.ts';
import type { Link } from '../link.ts';
import { ensureBucket, readEntry, writeEntry, type Entry } from './key-value.ts';

/** Manifests of partitions: one key each, changed by compare-and-set only. */

const bucket = 'replay-topic-manifests';
const attemptsMax = 40;
const pauseMs = 20;

/** `manifest` null: nothing is to be changed. */
export interface ManifestChange<T> {
  readonly manifest: Manifest | null;
  readonly answer: T;
}

export async function readManifest(link: Link, topic: Topic, partition: number): Promise<Manifest> {
  return parse(await readEntry(link, bucket, keyOf(topic, partition)));
}

/**
 * Reads, decides and stores until nobody else came in between. A write without an answer is decided anew, so `decide` must find
 * its own change and be content. Throws `group_contended`.
 */
export async function changeManifest<T>(
  link: Link,
  topic: Topic,
  partition: number,
  decide: (manifest: Manifest) => ManifestChange<T>,
): Promise<T> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const entry = await readEntry(link, bucket, keyOf(topic, partition));
    const { manifest, answer } = decide(parse(entry));
    if (manifest === null) return answer;
    if (entry.revision === 0) await ensureBucket(link, bucket);
    const value = JSON.stringify({ format: 1, ...manifest });
    const write = await writeEntry(link, bucket, keyOf(topic, partition), { value, revision: entry.revision });
    if (write.kind === 'written') return answer;
    await sleep(Math.random() * pauseMs * attempt);
  }
  throw new TopicError('group_contended', 'the manifest of a partition');
}

/** Of all partitions of a topic. Its objects stay in the cold store. */
export async function deleteManifests(link: Link, topic: Topic): Promise<void> {
  const answer = await callApi(link, `STREAM.PURGE.KV_${bucket}`, { filter: `$KV.${bucket}.${topic.id}.*` });
  if (!answer.ok && answer.error.err_code !== apiCode.streamNotFound) throw faultOfApi(answer.error, 'unexpected');
}

function keyOf({ id }: Topic, partition: number): string {
  return `${id}.${partition}`;
}

function parse({ value }: Entry): Manifest {
  if (value === null) return newManifest;
  const { format, ...manifest } = JSON.parse(value) as Partial<Manifest> & { format: number };
  if (format === 1) return { ...newManifest, ...manifest };
  throw new TopicError('topic_broken', 'its manifest was made by another version of this program');
}

import {
  connectTopics,
  TopicError,
  type PushGroup,
  type TopicHandle,
  type TopicOptions,
  type Topics,
  type TopicsOptions,
} from '../../../client/topics.ts';
import { atFileEnd } from '../../support/file-end.ts';
import { natsUrl, uniqueName } from '../../support/servers.ts';

/** Closed when this test file ends. */
export async function openTestTopics(options: TopicsOptions = {}): Promise<Topics> {
  const topics = await connectTopics({ env: { NATS_URL: natsUrl() }, ...options });
  atFileEnd(() => topics.close());
  return topics;
}

/** A topic of its own, deleted when this test file ends. One partition, unless asked otherwise. */
export async function addTopic(topics: Topics, options: TopicOptions = {}): Promise<TopicHandle> {
  const name = uniqueName('topic');
  const handle = await topics.create(name, { partitions: 1, ...options });
  atFileEnd(() => topics.delete(name));
  return handle;
}

export function records(...payloads: readonly unknown[]): { partitionKey: string; payload: unknown }[] {
  return payloads.map((payload) => ({ partitionKey: 'k', payload }));
}

export function keyed(...keys: readonly string[]): { partitionKey: string; deduplicationKey: string; payload: unknown }[] {
  return keys.map((key) => ({ partitionKey: 'k', deduplicationKey: key, payload: key }));
}

/** Of a push into one partition. */
export function offsetsOf(groups: readonly PushGroup[]): readonly number[] {
  const [group] = groups;
  if (groups.length !== 1 || group?.status !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(groups)}`);
  return group.offsets;
}

export function payloadsOf(page: { readonly records: readonly { readonly payload: unknown }[] }): unknown[] {
  return page.records.map(({ payload }) => payload);
}

export async function errorOf(act: Promise<unknown>): Promise<TopicError> {
  try {
    await act;
  } catch (error) {
    if (error instanceof TopicError) return error;
    throw error;
  }
  throw new Error('it did not throw');
}

import type { LogEnds } from '../../core/group.ts';
import { hardRecords, type Topic } from '../../core/topic.ts';
import { TopicError } from '../../core/topic-errors.ts';
import { callApi } from '../api.ts';
import { apiCode, faultOfApi } from '../faults.ts';
import type { Link } from '../link.ts';
import { incarnationOf, type StreamInfo } from '../stream.ts';

/** One stream per partition: offset = sequence - 1. A shared stream would interleave sequences and leave holes when purged. */

const idKey = 'replay.topic.id';
const nameKey = 'replay.topic.name';
const partitionKey = 'replay.topic.partition';

export interface Partition {
  readonly topic: Topic;
  readonly partition: number;
  readonly stream: string;
  /** Creation time of the stream when the topic was created. */
  readonly incarnation: string;
}

/** All that is read from JetStream of one partition. */
export interface PartitionBounds extends LogEnds {
  readonly partition: number;
  /** First offset in the hot window. */
  readonly hot: number;
  /** Stored bytes, with keys and headers. */
  readonly bytes: number;
}

export function streamName(id: string, partition: number): string {
  return `REPLAY-TOPIC-${id}-${partition}`;
}

/** Of a record with this hash of its deduplication key. */
export function recordSubject(id: string, partition: number, hash: string): string {
  return `replay-topic.${id}.${partition}.${hash}`;
}

/** Creates the stream of one partition. Resolves to its incarnation. */
export async function createPartition(link: Link, topic: Topic, partition: number): Promise<string> {
  const name = streamName(topic.id, partition);
  const config = {
    name,
    subjects: [recordSubject(topic.id, partition, '*')],
    retention: 'limits',
    storage: 'file',
    num_replicas: 1,
    // Overload is refused; the server itself never takes a record away.
    discard: 'new',
    max_msgs: hardRecords(topic.hot),
    // The server would set max_bytes aside when the stream is made: gigabytes for an empty topic. Pushes look at the size instead.
    max_bytes: -1,
    max_age: 0,
    deny_delete: true,
    allow_direct: true,
    allow_atomic: true,
    metadata: { [idKey]: topic.id, [nameKey]: topic.name, [partitionKey]: String(partition) },
  };
  const answer = await callApi<StreamInfo>(link, `STREAM.CREATE.${name}`, config);
  if (answer.ok) return incarnationOf(answer.value);
  throw faultOfApi(answer.error, 'unexpected');
}

/** No error when it is gone. */
export async function deletePartition(link: Link, id: string, partition: number): Promise<void> {
  const answer = await callApi(link, `STREAM.DELETE.${streamName(id, partition)}`, null);
  if (!answer.ok && answer.error.err_code !== apiCode.streamNotFound) throw faultOfApi(answer.error, 'unexpected');
}

/** Throws `topic_broken` when the stream is not the one that was made for this topic. */
export async function readBounds(link: Link, { topic, partition, stream, incarnation }: Partition): Promise<PartitionBounds> {
  const info = await callApi<StreamInfo>(link, `STREAM.INFO.${stream}`, null);
  if (!info.ok) {
    if (info.error.err_code !== apiCode.streamNotFound) throw faultOfApi(info.error, 'unexpected');
    throw new TopicError('topic_broken', `partition ${partition} of ${topic.partitions}: its stream is missing`);
  }
  if (incarnationOf(info.value) !== incarnation) {
    throw new TopicError('topic_broken', `partition ${partition} of ${topic.partitions}: its stream was created anew`);
  }
  const { state } = info.value;
  const next = state.last_seq;
  const hot = state.messages === 0 ? next : state.first_seq - 1;
  return { partition, oldest: hot, hot, next, bytes: state.bytes };
}

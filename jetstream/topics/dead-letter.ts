import { ReplayFault } from '../../core/errors.ts';
import { encodeName } from '../../core/topic.ts';
import { callApi } from '../api.ts';
import { apiCode, faultOfApi, isNoResponders, type ApiError } from '../faults.ts';
import { request, type Link } from '../link.ts';
import type { GroupKey } from './group-store.ts';
import { isWrongRevision } from './key-value.ts';
import { keyHeaders, type TopicRecord } from './wire.ts';

/** Records that a consumer group could not settle, one message each, kept until somebody takes them away. */

function deadLetterStream(id: string): string {
  return `REPLAY-TOPIC-${id}-DEAD`;
}

/** Stores one dead letter, once: its subject names topic, group, partition and offset, and takes one message only. */
export async function storeDeadLetter(link: Link, key: GroupKey, record: TopicRecord, attempts: number): Promise<void> {
  const { topic, group, partition } = key;
  const subject = `replay-topic.${topic.id}.dead.${encodeName(group)}.${partition}.${record.offset}`;
  const headers =
    `NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 0\r\n${keyHeaders(record.partitionKey, record.deduplicationKey)}` +
    `Topic-Offset: ${record.offset}\r\nTopic-Appended-At: ${record.appendedAt}\r\nTopic-Attempts: ${attempts}\r\n\r\n`;
  const publish = async () =>
    (await request(link, subject, record.payloadBytes, { headerBlock: Buffer.from(headers) })).string();
  const answer = JSON.parse(await publish().catch((error: unknown) => afterStreamIsMade(link, topic.id, error, publish))) as {
    error?: ApiError;
  };
  if (answer.error === undefined || isWrongRevision(answer.error)) return;
  throw new ReplayFault('dead_letter_refused', `JetStream error ${answer.error.err_code ?? answer.error.code}`);
}

/** The stream is made with the first dead letter: most topics need none. */
async function afterStreamIsMade(link: Link, id: string, error: unknown, publish: () => Promise<string>): Promise<string> {
  if (!isNoResponders(error)) throw error;
  const name = deadLetterStream(id);
  const made = await callApi(link, `STREAM.CREATE.${name}`, {
    name,
    subjects: [`replay-topic.${id}.dead.>`],
    retention: 'limits',
    storage: 'file',
    num_replicas: 1,
    allow_direct: true,
  });
  if (!made.ok) throw faultOfApi(made.error, 'dead_letter_refused');
  return await publish();
}

/** No error when there is none. */
export async function deleteDeadLetters(link: Link, id: string): Promise<void> {
  const answer = await callApi(link, `STREAM.DELETE.${deadLetterStream(id)}`, null);
  if (!answer.ok && answer.error.err_code !== apiCode.streamNotFound) throw faultOfApi(answer.error, 'unexpected');
}

import { randomUUID } from 'node:crypto';
import { hasLoneSurrogate } from '../../core/json-token.ts';
import { isStrictJson } from '../../core/payload.ts';
import { groupDigits } from '../../core/problems.ts';
import { envelopeBytes, keyBytesMax, pushRecordsMax, type Topic } from '../../core/topic.ts';
import { TopicError } from '../../core/topic-errors.ts';
import type { TopicHooks } from './hooks.ts';
import type { PreparedRecord } from './push.ts';

/** A record as a caller gives it. */
export interface PushRecord {
  readonly partitionKey: string;
  /** Without: one is made, so that retries within the push stay safe; another push of the same record stores it again. */
  readonly deduplicationKey?: string | undefined;
  /** Anything that JSON can hold. Not with `payloadJson`. */
  readonly payload?: unknown;
  /** A JSON text that is stored as it is: numbers and key order keep their spelling. */
  readonly payloadJson?: string | undefined;
}

/** A checked record, and what its message takes. */
export interface Prepared extends PreparedRecord {
  readonly bytes: number;
}

/** Checks one partition's records of a push. Throws TopicError: then nothing of the group may be stored. */
export function prepareGroup(
  records: readonly PushRecord[],
  topic: Topic,
  hooks: TopicHooks,
  serverBytesMax: number,
): Prepared[] {
  if (records.length > pushRecordsMax) {
    throw new TopicError('too_many_records', `${groupDigits(records.length)}; at most ${pushRecordsMax}`);
  }
  const prepared = records.map((record, i) => prepare(record, `record ${i + 1} of the group`, topic, hooks));
  for (const [i, { bytes }] of prepared.entries()) {
    const most = Math.min(topic.quota.maxRecordBytes, serverBytesMax - envelopeBytes);
    if (bytes > most) {
      throw new TopicError(
        'record_too_large',
        `record ${i + 1} of the group: ${groupDigits(bytes)} bytes; at most ${groupDigits(most)}`,
      );
    }
  }
  const total = prepared.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= topic.quota.maxPushBytes) return prepared;
  throw new TopicError('push_too_large', `${groupDigits(total)} bytes; at most ${groupDigits(topic.quota.maxPushBytes)}`);
}

function prepare(record: PushRecord, place: string, topic: Topic, hooks: TopicHooks): Prepared {
  const { partitionKey, deduplicationKey = randomUUID() } = record;
  const partitionKeyBytes = keyBytes(partitionKey);
  if (partitionKeyBytes === null) throw new TopicError('partition_key_invalid', place);
  const deduplicationKeyBytes = keyBytes(deduplicationKey);
  if (deduplicationKeyBytes === null || deduplicationKey === '') throw new TopicError('deduplication_key_invalid', place);
  const payload = payloadOf(record, place);
  const problem = hooks.checkSchema?.(topic.name, JSON.parse(payload.toString('utf8'))) ?? null;
  if (problem !== null) throw new TopicError('schema_refused', `${place}: ${problem}`);
  const bytes = payload.length + partitionKeyBytes + deduplicationKeyBytes;
  return { partitionKey, deduplicationKey, payload, bytes };
}

/** null when it is no key. */
function keyBytes(key: unknown): number | null {
  if (typeof key !== 'string' || hasLoneSurrogate(key)) return null;
  const bytes = Buffer.byteLength(key);
  return bytes <= keyBytesMax ? bytes : null;
}

function payloadOf({ payload, payloadJson }: PushRecord, place: string): Buffer {
  const invalid = (detail: string) => new TopicError('payload_invalid', `${place}: ${detail}`);
  if (payloadJson !== undefined) {
    if (payload !== undefined) throw invalid('both payload and payloadJson');
    const bytes = Buffer.from(payloadJson);
    if (isStrictJson(bytes)) return bytes;
    throw invalid('payloadJson is not strict JSON');
  }
  const text = serialised(payload);
  if (text === undefined) throw invalid('it has no form in JSON');
  return Buffer.from(text);
}

/** What a payload throws while it is written down is its caller's mistake, and one of this record only. */
function serialised(payload: unknown): string | undefined {
  try {
    const text: unknown = JSON.stringify(payload);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

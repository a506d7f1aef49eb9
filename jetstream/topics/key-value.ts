import { ReplayFault } from '../../core/errors.ts';
import { callApi, callApiOrThrow } from '../api.ts';
import { apiCode, faultOfApi, faultOfClient, isNoResponders, type ApiError } from '../faults.ts';
import { lastValue, readHeaders } from '../headers.ts';
import { request, type Link } from '../link.ts';
import type { StreamInfo } from '../stream.ts';
import { directGetBatch } from './direct-batch.ts';

/**
 * The few things asked of a key-value bucket, as the `nats kv` command knows it: reads from the leader, since a stale one would
 * make every compare-and-set lose once more, and writes that name the revision which they replace.
 */
export interface Entry {
  /** null: there is none, or it was deleted. */
  readonly value: string | null;
  /** 0: the key was never written. */
  readonly revision: number;
}

/** `unknown`: no answer in time; it may be stored. */
export type Write =
  { readonly kind: 'written'; readonly revision: number } | { readonly kind: 'conflict' } | { readonly kind: 'unknown' };

/** Subjects that the server lists at once, and values that it gives at once. */
const keysMax = 100_000;
const valuesMax = 1_024;

/** No error when it is there. */
export async function ensureBucket(link: Link, bucket: string): Promise<void> {
  const name = streamOf(bucket);
  const found = await callApi<StreamInfo>(link, `STREAM.INFO.${name}`, null);
  if (found.ok) return;
  if (found.error.err_code !== apiCode.streamNotFound) throw faultOfApi(found.error, 'unexpected');
  await callApiOrThrow(
    link,
    `STREAM.CREATE.${name}`,
    {
      name,
      subjects: [`${subjectOf(bucket, '')}>`],
      retention: 'limits',
      max_msgs_per_subject: 1,
      discard: 'new',
      storage: 'file',
      num_replicas: 1,
      allow_direct: true,
      allow_rollup_hdrs: true,
      deny_delete: true,
    },
    'unexpected',
  );
}

export async function readEntry(link: Link, bucket: string, key: string): Promise<Entry> {
  const answer = await callApi<{ message: { seq: number; hdrs?: string; data?: string } }>(
    link,
    `STREAM.MSG.GET.${streamOf(bucket)}`,
    { last_by_subj: subjectOf(bucket, key) },
  );
  if (answer.ok) {
    const { seq, hdrs = '', data = '' } = answer.value.message;
    const isMarker = isDeleted(Buffer.from(hdrs, 'base64'));
    return { value: isMarker ? null : Buffer.from(data, 'base64').toString(), revision: seq };
  }
  const code = answer.error.err_code;
  if (code === apiCode.noMessageFound || code === apiCode.streamNotFound) return { value: null, revision: 0 };
  throw faultOfApi(answer.error, 'unexpected');
}

/** Replaces exactly the revision that was read; null deletes. */
export function writeEntry(link: Link, bucket: string, key: string, entry: Entry): Promise<Write> {
  const marker = entry.value === null ? 'KV-Operation: PURGE\r\nNats-Rollup: sub\r\n' : '';
  const headers = `NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: ${entry.revision}\r\n${marker}\r\n`;
  return publish(link, subjectOf(bucket, key), entry.value ?? '', Buffer.from(headers));
}

async function publish(link: Link, subject: string, value: string, headerBlock: Buffer): Promise<Write> {
  try {
    const answer = JSON.parse((await request(link, subject, value, { headerBlock })).string()) as {
      seq: number;
      error?: ApiError;
    };
    if (answer.error === undefined) return { kind: 'written', revision: answer.seq };
    if (isWrongRevision(answer.error)) return { kind: 'conflict' };
    throw faultOfApi(answer.error, 'unexpected');
  } catch (error) {
    if (isNoResponders(error)) throw new ReplayFault('stream_missing', 'a key-value bucket of the topics');
    const fault = faultOfClient(error);
    if (fault instanceof ReplayFault && ['nats_timeout', 'nats_unreachable'].includes(fault.code)) return { kind: 'unknown' };
    throw fault;
  }
}

export function isWrongRevision({ err_code }: ApiError): boolean {
  return err_code === apiCode.wrongLastSequence || err_code === apiCode.wrongLastSequenceConstant;
}

/** Values by key below the prefix, which ends with a dot or is empty. Of a bucket that is not there: none. */
export async function listEntries(link: Link, bucket: string, prefix: string): Promise<Map<string, string>> {
  const keys = await listKeys(link, bucket, prefix);
  const entries = new Map<string, string>();
  for (let i = 0; i < keys.length; i += valuesMax) {
    const subjects = keys.slice(i, i + valuesMax).map((key) => subjectOf(bucket, key));
    await directGetBatch(link, streamOf(bucket), { multi_last: subjects }, ({ headerBlock, body }) => {
      const headers = readHeaders(headerBlock);
      if (headers.has('KV-Operation')) return;
      entries.set(lastValue(headers, 'Nats-Subject')!.slice(subjectOf(bucket, '').length), body.toString());
    });
  }
  return entries;
}

/** Of deleted ones too. */
export async function listKeys(link: Link, bucket: string, prefix: string): Promise<string[]> {
  const filter = `${subjectOf(bucket, prefix)}>`;
  const answer = await callApi<StreamInfo>(link, `STREAM.INFO.${streamOf(bucket)}`, { subjects_filter: filter });
  if (!answer.ok) {
    if (answer.error.err_code === apiCode.streamNotFound) return [];
    throw faultOfApi(answer.error, 'unexpected');
  }
  const subjects = Object.keys(answer.value.state.subjects ?? {});
  if (subjects.length >= keysMax) throw new ReplayFault('unexpected', 'more keys than the server lists at once');
  return subjects.map((subject) => subject.slice(subjectOf(bucket, '').length)).sort();
}

function isDeleted(headerBlock: Buffer): boolean {
  return readHeaders(headerBlock).has('KV-Operation');
}

function streamOf(bucket: string): string {
  return `KV_${bucket}`;
}

function subjectOf(bucket: string, key: string): string {
  return `$KV.${bucket}.${key}`;
}

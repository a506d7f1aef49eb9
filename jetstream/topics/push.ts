import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReplayFault } from '../../core/errors.ts';
import { pushTimeoutMs } from '../../core/topic.ts';
import { TopicError } from '../../core/topic-errors.ts';
import { callApi } from '../api.ts';
import { apiCode, faultOfApi, faultOfClient, isNoResponders, type ApiError } from '../faults.ts';
import { request, verbatim, type Link } from '../link.ts';
import { directGetBatch } from './direct-batch.ts';
import { isWrongRevision } from './key-value.ts';
import { recordSubject, type Partition } from './partition-stream.ts';
import { hashOfKey, keyHeaders, readTopicRecord } from './wire.ts';

/** Pauses between attempts of one push. */
const retryMs = 20;
const retryMsMax = 500;
/** Lookups by direct get, which a replica may answer that has not heard of a record yet; then the leader is asked. */
const quickLookups = 3;

/** A record as it goes into a partition. */
export interface PreparedRecord {
  readonly partitionKey: string;
  readonly deduplicationKey: string;
  readonly payload: Uint8Array;
}

export type PushAnswer =
  /** One offset per record, those of duplicates are the originals'. */
  | { readonly status: 'accepted'; readonly offsets: readonly number[]; readonly stored: number }
  /** Nothing of the group is stored. */
  | { readonly status: 'rejected'; readonly error: TopicError | ReplayFault }
  /** Some of it may be stored, or be stored soon. The same push again, with the same deduplication keys, makes it certain. */
  | { readonly status: 'uncertain'; readonly error: ReplayFault };

interface Entry {
  readonly subject: string;
  readonly deduplicationKey: string;
  readonly headers: string;
  readonly payload: Uint8Array;
}

/** Pushes into one partition, all records or none, in their order. Of equal deduplication keys the first record counts. */
export async function pushIntoPartition(
  link: Link,
  { topic, partition, stream }: Partition,
  records: readonly PreparedRecord[],
  isFull: () => Promise<boolean>,
): Promise<PushAnswer> {
  const entries = new Map<string, Entry>();
  const subjects = records.map(({ partitionKey, deduplicationKey, payload }) => {
    const subject = recordSubject(topic.id, partition, hashOfKey(deduplicationKey));
    if (!entries.has(subject)) {
      entries.set(subject, { subject, deduplicationKey, headers: keyHeaders(partitionKey, deduplicationKey), payload });
    }
    return subject;
  });
  const answer = await new Push(link, stream, [...entries.values()], isFull).run();
  if (answer.status !== 'accepted') return answer;
  return { status: 'accepted', offsets: subjects.map((subject) => answer.offsets.get(subject)!), stored: answer.stored };
}

type Answer =
  | { readonly status: 'accepted'; readonly offsets: ReadonlyMap<string, number>; readonly stored: number }
  | Exclude<PushAnswer, { status: 'accepted' }>;

type Sent =
  | { readonly kind: 'stored'; readonly last: number }
  /** A deduplication key is there already; nothing was stored. */
  | { readonly kind: 'duplicates' }
  /** No room; nothing was stored. */
  | { readonly kind: 'full' }
  /** Nothing was stored; another attempt may succeed. */
  | { readonly kind: 'later'; readonly error: TopicError | ReplayFault }
  | { readonly kind: 'refused'; readonly error: TopicError | ReplayFault }
  /** It may be stored, now or later. */
  | { readonly kind: 'silent'; readonly error: ReplayFault };

class Push {
  readonly #link: Link;
  readonly #stream: string;
  readonly #entries: readonly Entry[];
  readonly #isFull: () => Promise<boolean>;
  readonly #offsets = new Map<string, number>();
  readonly #deadline = Date.now() + pushTimeoutMs;
  #lookups = 0;

  constructor(link: Link, stream: string, entries: readonly Entry[], isFull: () => Promise<boolean>) {
    this.#link = link;
    this.#stream = stream;
    this.#entries = entries;
    this.#isFull = isFull;
  }

  /** An attempt that had no answer makes the push uncertain until a later one finds or stores everything. */
  async run(): Promise<Answer> {
    let doubt: ReplayFault | null = null;
    for (let pauseMs = retryMs; ; pauseMs = Math.min(2 * pauseMs, retryMsMax)) {
      const missing = this.#entries.filter(({ subject }) => !this.#offsets.has(subject));
      if (missing.length === 0) return { status: 'accepted', offsets: this.#offsets, stored: 0 };
      const sent = await this.#attempt(missing);
      if (sent === 'found') continue;
      if (sent.kind === 'stored') {
        for (const [i, { subject }] of missing.entries()) this.#offsets.set(subject, sent.last - missing.length + i);
        return { status: 'accepted', offsets: this.#offsets, stored: missing.length };
      }
      if (sent.kind === 'silent') doubt = sent.error;
      if (sent.kind === 'refused' || this.#leftMs() <= pauseMs) {
        return doubt === null ? { status: 'rejected', error: sent.error } : { status: 'uncertain', error: doubt };
      }
      await sleep(pauseMs);
    }
  }

  async #attempt(missing: readonly Entry[]): Promise<'found' | Exclude<Sent, { kind: 'duplicates' | 'full' }>> {
    try {
      const sent = (await this.#isFull()) ? ({ kind: 'full' } as const) : await this.#publish(missing);
      if (sent.kind !== 'duplicates' && sent.kind !== 'full') return sent;
      // Also where there is no room: what an earlier push stored is there, and must not be called rejected.
      if (await this.#lookUp(missing)) return 'found';
      return sent.kind === 'full'
        ? { kind: 'refused', error: new TopicError('partition_full') }
        : { kind: 'later', error: new TopicError('partition_busy') };
    } catch (error) {
      // Only reading throws: whatever was sent before has had its answer.
      const fault = faultOfClient(error);
      if (fault instanceof TopicError) return { kind: 'refused', error: fault };
      if (!(fault instanceof ReplayFault)) throw fault;
      return { kind: fault.kind === 'retry' ? 'later' : 'refused', error: fault };
    }
  }

  /** One atomic batch, each record only where its subject is still free. */
  async #publish(missing: readonly Entry[]): Promise<Sent> {
    try {
      this.#link.ensureUp();
    } catch (error) {
      return { kind: 'later', error: error as ReplayFault };
    }
    const batch = randomBytes(9).toString('base64url');
    const last = missing.length - 1;
    try {
      for (const [i, { subject, headers, payload }] of missing.entries()) {
        if (i < last)
          this.#link.nc.publish(subject, payload, { headers: verbatim(batchHeaders(batch, i + 1, headers, false)) });
      }
      const { subject, headers, payload } = missing[last]!;
      const options = {
        headerBlock: last === 0 ? aloneHeaders(headers) : batchHeaders(batch, last + 1, headers, true),
        timeoutMs: Math.max(retryMs, this.#leftMs()),
      };
      return readAnswer((await request(this.#link, subject, payload, options)).string());
    } catch (error) {
      if (isNoResponders(error)) return { kind: 'later', error: new TopicError('topic_broken', 'no stream takes its records') };
      const fault = faultOfClient(error);
      if (!(fault instanceof ReplayFault)) throw fault;
      return fault.kind === 'retry' ? { kind: 'silent', error: fault } : { kind: 'refused', error: fault };
    }
  }

  /** Whether one of the records is stored already. */
  async #lookUp(missing: readonly Entry[]): Promise<boolean> {
    const keys = new Map(missing.map(({ subject, deduplicationKey }) => [subject, deduplicationKey]));
    this.#lookups++;
    if (this.#lookups > quickLookups) return await this.#askLeader(missing);
    let found = false;
    let foreign = false;
    await directGetBatch(this.#link, this.#stream, { multi_last: [...keys.keys()] }, (message) => {
      const record = readTopicRecord(message);
      const subject = [...keys].find(([, key]) => key === record.deduplicationKey)?.[0];
      if (subject === undefined) foreign = true;
      else this.#offsets.set(subject, record.offset);
      found = true;
    });
    if (foreign) throw new TopicError('push_refused', 'two deduplication keys have the same hash');
    return found;
  }

  async #askLeader(missing: readonly Entry[]): Promise<boolean> {
    let found = false;
    for (const { subject } of missing) {
      const answer = await callApi<{ message: { seq: number } }>(this.#link, `STREAM.MSG.GET.${this.#stream}`, {
        last_by_subj: subject,
      });
      if (answer.ok) {
        this.#offsets.set(subject, answer.value.message.seq - 1);
        found = true;
      } else if (answer.error.err_code !== apiCode.noMessageFound) throw faultOfApi(answer.error, 'unexpected');
    }
    return found;
  }

  #leftMs(): number {
    return this.#deadline - Date.now();
  }
}

function batchHeaders(batch: string, sequence: number, keys: string, isLast: boolean): Buffer {
  const commit = isLast ? 'Nats-Batch-Commit: 1\r\n' : '';
  return Buffer.from(
    `NATS/1.0\r\nNats-Batch-Id: ${batch}\r\nNats-Batch-Sequence: ${sequence}\r\n${commit}` +
      `Nats-Expected-Last-Subject-Sequence: 0\r\n${keys}\r\n`,
  );
}

function aloneHeaders(keys: string): Buffer {
  return Buffer.from(`NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 0\r\n${keys}\r\n`);
}

function readAnswer(text: string): Sent {
  const answer = JSON.parse(text) as { seq?: number; error?: ApiError };
  const { error } = answer;
  if (error === undefined) return { kind: 'stored', last: answer.seq! };
  if (isWrongRevision(error)) return { kind: 'duplicates' };
  const code = error.err_code;
  if (code === apiCode.batchesInflight || code === apiCode.batchIncomplete) {
    return { kind: 'later', error: new TopicError('partition_busy') };
  }
  if (code === apiCode.storeFailed && /maximum (?:messages|bytes) exceeded/.test(error.description ?? '')) {
    return { kind: 'full' };
  }
  if (code === apiCode.messageTooLarge || code === apiCode.headerTooLarge) {
    return { kind: 'refused', error: new TopicError('record_too_large') };
  }
  const fault = faultOfApi(error, 'unexpected');
  if (fault.code === 'nats_timeout') return { kind: 'later', error: fault };
  return { kind: 'refused', error: new TopicError('push_refused', `JetStream error ${code ?? error.code}`) };
}

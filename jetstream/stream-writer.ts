import { randomUUID } from 'node:crypto';
import { createInbox, type Msg, type NatsConnection } from 'nats';
import { continuesConsumer } from '../core/batch.ts';
import { ReplayFault } from '../core/errors.ts';
import { callApi, callApiOrThrow } from './api.ts';
import { apiCode, faultOfClient, type ApiError } from './faults.ts';
import { openLink, verbatim, withFaults, type Link, type LinkOptions } from './link.ts';
import { pull } from './pull.ts';
import { sequenceAt } from './range.ts';
import type { StreamFacts } from './source.ts';
import { checkIncarnation, factsOf, readStream, type StreamInfo } from './stream.ts';

/**
 * What the jetstream sink asks of JetStream. Every call throws ReplayFault when the server cannot answer, and stops early when
 * its signal aborts.
 */
export interface StreamWriter {
  /** The largest message that the server takes, headers and body, in bytes. */
  readonly messageBytesMax: number;
  /** Throws `stream_missing`. */
  describe(stream: string, signal: AbortSignal): Promise<WrittenStream>;
  /** First sequence stored at or after the time; one past the end when there is none. */
  sequenceAt(stream: WrittenStream, timeNanos: bigint): Promise<number>;
  /** Tells the headers of every message in first..last that is there. */
  readHeaders(
    stream: WrittenStream,
    range: { readonly first: number; readonly last: number },
    each: (headers: ReadonlyMap<string, readonly string[]>) => void,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Publishes in this order, many on their way at a time, and waits for all answers. After the first answer that is not a
   * stored message nothing more is sent: `answers` ends there, or a little later.
   */
  publish(messages: readonly OutgoingMessage[], signal: AbortSignal): Promise<readonly PublishAnswer[]>;
}

/** A stream as a destination. */
export interface WrittenStream extends StreamFacts {
  readonly sealed: boolean;
  readonly duplicateWindowMs: number;
  /** Bytes of a message, headers and body; null: no limit of its own. */
  readonly messageBytesMax: number | null;
  /** It drops old messages to make room for new ones, or when they are old. */
  readonly dropsOld: boolean;
}

export interface OutgoingMessage {
  readonly subject: string;
  /** `NATS/1.0`, one line a header, a blank line. */
  readonly headerBlock: Uint8Array;
  readonly body: Uint8Array;
}

/** `error`: the code of the JetStream API; `unheard`: no stream listens to the subject. */
export type PublishAnswer =
  | { readonly kind: 'stored'; readonly sequence: number; readonly duplicate: boolean }
  | { readonly kind: 'refused'; readonly error: number }
  | { readonly kind: 'unheard' };

const nanosPerMilli = 1_000_000;
const scanRecordsMax = 5_000;
const scanBytesMax = 16_777_216;
/** A scan that was lost is removed by the server after this. */
const scanIdleNanos = 60_000_000_000;
const inFlightMax = 1_000;
const inFlightBytesMax = 8_388_608;
/** No answer for this long ends a publish; counted in ticks, so that a blocked event loop is not taken for a silent server. */
const silenceMaxMs = 5_000;
const tickMs = 500;

/** One writer for a connection. Takes the settings of the connection as options. */
export function createStreamWriter(nc: NatsConnection, options: LinkOptions = {}): StreamWriter {
  const link = openLink(nc, options);
  return {
    get messageBytesMax() {
      return nc.info?.max_payload ?? Number.POSITIVE_INFINITY;
    },
    describe: (stream, signal) => withFaults(signal, async () => writtenStream(await readStream(link, stream, signal))),
    sequenceAt: (stream, timeNanos) => withFaults(undefined, () => sequenceAt(link, stream, timeNanos)),
    readHeaders: (stream, range, each, signal) => withFaults(signal, () => readHeaders(link, { stream, range, each, signal })),
    publish: (messages, signal) => withFaults(signal, () => publishAll(link, messages, signal)),
  };
}

function writtenStream(info: StreamInfo): WrittenStream {
  const { sealed, duplicate_window: window, max_msg_size: size, max_age: age, discard, ...limits } = info.config;
  const counts = [limits.max_msgs, limits.max_bytes, limits.max_msgs_per_subject];
  return {
    ...factsOf(info, BigInt(Date.now()) * BigInt(nanosPerMilli)),
    sealed: sealed === true,
    duplicateWindowMs: (window ?? 0) / nanosPerMilli,
    messageBytesMax: size === undefined || size <= 0 ? null : size,
    dropsOld: (age ?? 0) > 0 || (discard !== 'new' && counts.some((limit) => limit !== undefined && limit > 0)),
  };
}

interface Scan {
  readonly stream: WrittenStream;
  readonly range: { readonly first: number; readonly last: number };
  readonly each: (headers: ReadonlyMap<string, readonly string[]>) => void;
  readonly signal: AbortSignal;
}

/** Through a consumer of its own that asks for no ACK and gets no bodies. */
async function readHeaders(link: Link, { stream, range, each, signal }: Scan): Promise<void> {
  if (range.first > range.last) return;
  const durable = `durable-replay-scan-${randomUUID()}`;
  const config = {
    name: durable,
    deliver_policy: 'by_start_sequence',
    opt_start_seq: range.first,
    ack_policy: 'none',
    replay_policy: 'instant',
    headers_only: true,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: scanIdleNanos,
  };
  const body = { stream_name: stream.stream, config, action: 'create' };
  await callApiOrThrow(link, `CONSUMER.CREATE.${stream.stream}.${durable}`, body, 'consumer_refused', { signal });
  try {
    await checkIncarnation(link, stream.stream, stream.incarnation, signal);
    const request = { stream: stream.stream, incarnation: stream.incarnation, durable, maxRecords: scanRecordsMax };
    for (let next = 1; ;) {
      const { records, end } = await pull(link, { ...request, maxBytes: scanBytesMax, waitMs: 0 }, signal);
      if (end === 'broken' || !continuesConsumer(records, next)) {
        throw new ReplayFault('nats_timeout', 'reading what the destination stream holds was interrupted');
      }
      next += records.length;
      for (const record of records) if (record.position <= range.last) each(record.headers);
      if (end === 'drained' || (records.at(-1)?.position ?? 0) >= range.last) return;
    }
  } finally {
    await callApi(link, `CONSUMER.DELETE.${stream.stream}.${durable}`, null).catch(() => undefined);
  }
}

function publishAll(link: Link, messages: readonly OutgoingMessage[], signal: AbortSignal): Promise<readonly PublishAnswer[]> {
  signal.throwIfAborted();
  link.ensureUp();
  if (messages.length === 0) return Promise.resolve([]);
  const subjects = new Set(messages.map(({ subject }) => subject));
  return new Promise((resolve, reject) => {
    const answers: (PublishAnswer | undefined)[] = [];
    let sent = 0;
    let answered = 0;
    let bytesInFlight = 0;
    let stopped = false;
    let silentTicks = 0;
    let ended = false;

    const end = (act: () => void) => {
      if (ended) return;
      ended = true;
      clearInterval(ticker);
      unwatch();
      signal.removeEventListener('abort', onAbort);
      if (!link.nc.isClosed()) subscription.unsubscribe();
      act();
    };
    const fail = (error: unknown) => end(() => reject(faultOfClient(error)));
    const onAbort = () => end(() => reject(signal.reason as Error));

    const send = () => {
      if (stopped) return;
      while (sent < messages.length && sent - answered < inFlightMax) {
        const message = messages[sent]!;
        const bytes = sizeOf(message);
        if (sent > answered && bytesInFlight + bytes > inFlightBytesMax) return;
        link.nc.publish(message.subject, message.body, {
          reply: `${inbox}.${sent}`,
          headers: verbatim(message.headerBlock),
        });
        bytesInFlight += bytes;
        sent++;
      }
    };
    // An exception in here would end the client's reader, and with it the whole connection.
    const receive = (error: Error | null, message: Msg) => {
      if (ended) return;
      try {
        const index = Number(message.subject.slice(inbox.length + 1));
        if (answers[index] !== undefined || index >= sent) return;
        silentTicks = 0;
        answers[index] = readAnswer(error, message);
        answered++;
        bytesInFlight -= sizeOf(messages[index]!);
        if (answers[index].kind !== 'stored') stopped = true;
        if (answered === sent && (stopped || sent === messages.length))
          end(() => resolve(answers.slice(0, sent) as PublishAnswer[]));
        else send();
      } catch (fault) {
        fail(fault);
      }
    };

    const inbox = createInbox(link.inboxPrefix);
    const subscription = link.nc.subscribe(`${inbox}.*`, { callback: receive });
    const ticker = setInterval(() => {
      silentTicks++;
      if (silentTicks * tickMs >= silenceMaxMs) fail(new ReplayFault('nats_timeout'));
    }, tickMs);
    const unwatch = link.watch((refused) => subjects.has(refused) || refused === `${inbox}.*`, fail);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      send();
    } catch (error) {
      fail(error);
    }
  });
}

function sizeOf({ headerBlock, body }: OutgoingMessage): number {
  return headerBlock.length + body.length;
}

interface PubAck {
  readonly stream?: string;
  readonly seq?: number;
  readonly duplicate?: boolean;
  readonly error?: ApiError;
}

function readAnswer(error: Error | null, message: Msg): PublishAnswer {
  if (error !== null || message.headers?.code === 503) return { kind: 'unheard' };
  let ack: PubAck;
  try {
    ack = JSON.parse(message.string()) as PubAck;
  } catch {
    return { kind: 'refused', error: apiCode.streamNotMatch };
  }
  if (ack.error !== undefined) return { kind: 'refused', error: ack.error.err_code ?? ack.error.code };
  return { kind: 'stored', sequence: ack.seq ?? 0, duplicate: ack.duplicate === true };
}

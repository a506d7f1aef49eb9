import { createInbox, type Msg } from 'nats';
import { ReplayFault } from '../core/errors.ts';
import type { ConsumerInfo } from './consumer-settings.ts';
import { headerBlockOf, openEnvelope } from './envelope.ts';
import { faultOfClient } from './faults.ts';
import { readDelivery } from './delivery.ts';
import { readStatus, type Status } from './headers.ts';
import type { Link } from './link.ts';
import { consumerInfo } from './replay-consumer.ts';
import type { Pulled, PulledRecord, PullRequest } from './source.ts';

/** Neither a message nor a heartbeat for this long ends a pull as broken. */
const silenceMaxMs = 5_000;
/** Silence is counted in ticks: a blocked event loop misses ticks, so that it cannot be taken for a silent server. */
const tickMs = 500;
const heartbeatMs = 1_000;
/** Requests of one pull that bring nothing although the server says that more is there. */
const emptyRoundsMax = 3;
const nanosPerMilli = 1_000_000;

/** What the server's word means for a pull. */
export type Word = 'heartbeat' | 'nothing_more' | 'too_large' | 'full' | 'over_limit' | 'broken';

export function readWord(status: Status): Word {
  switch (status.code) {
    case 100:
      return 'heartbeat';
    case 404:
    case 408:
      return 'nothing_more';
    case 409:
      if (/^message size exceeds maxbytes/i.test(status.description)) return 'too_large';
      if (/^batch completed/i.test(status.description)) return 'full';
      if (/^exceeded maxrequest/i.test(status.description)) return 'over_limit';
      // Consumer Deleted, Leadership Change, Server Shutdown, Exceeded MaxWaiting, Consumer is push based ...
      return 'broken';
    default:
      return 'broken';
  }
}

/** Caps that the consumer or the server puts on one pull request; 0 where there is none. */
interface Caps {
  readonly batch: number;
  readonly bytes: number;
  readonly waitMs: number;
}

interface Ask {
  readonly batch: number;
  /** null: a single message of any size. */
  readonly maxBytes: number | null;
  readonly waitMs: number;
}

/** See Source.pull. */
export async function pull(link: Link, request: PullRequest, signal: AbortSignal): Promise<Pulled> {
  const records: PulledRecord[] = [];
  let bytes = 0;
  let caps: Caps = { batch: 0, bytes: 0, waitMs: 0 };
  let alone = false;
  let emptyRounds = 0;
  for (;;) {
    const ask = nextAsk(request, { records: records.length, bytes }, caps, alone);
    if (ask === null) return { records, end: 'full' };
    const before = records.length;
    const round = await pullOnce(link, request, ask, records, signal);
    bytes += round.bytes;
    const brought = records.length - before;
    switch (round.word) {
      case 'full':
        break;
      case 'heartbeat':
      case 'broken':
        return { records, end: 'broken' };
      case 'too_large':
        if (records.length > 0) return { records, end: 'full' };
        alone = true;
        break;
      case 'over_limit': {
        const info = await lookAt(link, request, records, signal);
        if (info === null) return { records, end: 'broken' };
        caps = capsOf(info);
        break;
      }
      case 'nothing_more': {
        const info = await lookAt(link, request, records, signal);
        if (info === null || othersPulled(info, records)) return { records, end: 'broken' };
        if (info.num_pending === 0) return { records, end: 'drained' };
        break;
      }
    }
    emptyRounds = brought > 0 ? 0 : emptyRounds + 1;
    if (emptyRounds >= emptyRoundsMax) return { records, end: 'broken' };
  }
}

/** null when the durable is gone, or when records are here that would be lost with a fault that passes. */
async function lookAt(
  link: Link,
  request: PullRequest,
  records: readonly PulledRecord[],
  signal: AbortSignal,
): Promise<ConsumerInfo | null> {
  try {
    return await consumerInfo(link, request.stream, request.durable, { signal });
  } catch (error) {
    if (records.length > 0 && error instanceof ReplayFault && error.kind === 'retry') return null;
    throw error;
  }
}

/** null when the limits of the pull are reached. Only the first record is waited for. */
function nextAsk(request: PullRequest, had: { records: number; bytes: number }, caps: Caps, alone: boolean): Ask | null {
  const batch = request.maxRecords - had.records;
  const maxBytes = request.maxBytes - had.bytes;
  if (batch <= 0 || maxBytes <= 0) return null;
  const waitMs = had.records > 0 ? 0 : within(request.waitMs, caps.waitMs);
  if (alone) return had.records > 0 ? null : { batch: 1, maxBytes: null, waitMs };
  return { batch: within(batch, caps.batch), maxBytes: within(maxBytes, caps.bytes), waitMs };
}

function within(value: number, cap: number): number {
  return cap > 0 ? Math.min(value, cap) : value;
}

function capsOf(info: ConsumerInfo): Caps {
  const { max_batch = 0, max_bytes = 0, max_expires = 0 } = info.config;
  return { batch: max_batch, bytes: max_bytes, waitMs: Math.floor(max_expires / nanosPerMilli) };
}

/** The server has delivered more than we have: to somebody else, or into the void. */
export function othersPulled(
  info: Pick<ConsumerInfo, 'delivered'>,
  records: readonly Pick<PulledRecord, 'consumerSequence'>[],
): boolean {
  const last = records.at(-1);
  return last !== undefined && info.delivered.consumer_seq > last.consumerSequence;
}

interface Round {
  readonly word: Word;
  /** As the server counts them against `max_bytes`. */
  readonly bytes: number;
}

/**
 * One request with a subscription of its own: messages arrive under their own subjects, so that nothing else tells those of
 * an earlier request that came late. Records are added to `records` as they come.
 */
function pullOnce(link: Link, request: PullRequest, ask: Ask, records: PulledRecord[], signal: AbortSignal): Promise<Round> {
  signal.throwIfAborted();
  link.ensureUp();
  const subject = `${link.api}.CONSUMER.MSG.NEXT.${request.stream}.${request.durable}`;
  const wanted = records.length + ask.batch;
  return new Promise((resolve, reject) => {
    let bytes = 0;
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
    const finish = (word: Word) => end(() => resolve({ word, bytes }));
    const onAbort = () => end(() => reject(signal.reason as Error));

    // An exception in here would end the client's reader, and with it the whole connection.
    const receive = (error: Error | null, message: Msg) => {
      if (ended) return;
      try {
        if (error !== null) throw error;
        silentTicks = 0;
        const envelope = openEnvelope(message);
        const record = readDelivery(envelope, request);
        if (record === null) {
          const status = readStatus(headerBlockOf(envelope));
          if (status.code === 400) throw new ReplayFault('unexpected', 'the server does not understand the pull request');
          const word = readWord(status);
          if (word !== 'heartbeat') finish(word);
          return;
        }
        records.push(record);
        bytes += envelope.subject.length + envelope.reply.length + envelope.bytes.length;
        // The server says nothing more when the last message fills max_bytes to the byte.
        if (records.length === wanted || (ask.maxBytes !== null && bytes >= ask.maxBytes)) finish('full');
      } catch (fault) {
        end(() => reject(faultOfClient(fault)));
      }
    };

    const subscription = link.nc.subscribe(createInbox(link.inboxPrefix), { callback: receive });
    const inbox = subscription.getSubject();
    const ticker = setInterval(() => {
      silentTicks++;
      if (silentTicks * tickMs >= silenceMaxMs) finish('broken');
    }, tickMs);
    const unwatch = link.watch(
      (refused) => refused === subject || refused === inbox,
      (fault) => (fault.code === 'nats_denied' ? end(() => reject(fault)) : finish('broken')),
    );
    signal.addEventListener('abort', onAbort, { once: true });
    link.nc.publish(subject, JSON.stringify(pullBody(ask)), { reply: inbox });
  });
}

/** `no_wait` with `expires`: waits for a first message, then ends as soon as no more are there. */
function pullBody(ask: Ask): object {
  const heartbeat = ask.waitMs >= 2 * heartbeatMs ? { idle_heartbeat: heartbeatMs * nanosPerMilli } : {};
  return {
    batch: ask.batch,
    no_wait: true,
    ...(ask.maxBytes === null ? {} : { max_bytes: ask.maxBytes }),
    ...(ask.waitMs > 0 ? { expires: ask.waitMs * nanosPerMilli, ...heartbeat } : {}),
  };
}

import { setTimeout as sleep } from 'node:timers/promises';
import { ReplayFault } from '../core/errors.ts';
import { decodeRuns, type Receipt } from '../core/receipt.ts';
import type { ConsumerInfo } from './consumer-settings.ts';
import { faultOfClient, isNoResponders } from './faults.ts';
import { request, type Link } from './link.ts';
import { consumerInfo } from './replay-consumer.ts';
import { incarnationOf, readStream } from './stream.ts';

/** The server keeps silent about an ACK of something it has not delivered. */
const barrierTimeoutMs = 2_000;
/** Then the ACKs are sent once more, in case a reconnect swallowed some, and after a second round the ACK is deferred. */
const floorChecksMs = [0, 5, 20, 50, 100, 250, 500, 1_000];
const roundsMax = 2;

const ack = Buffer.from('+ACK');

/** See Source.acknowledge. `confirmed` is said only when the consumer's own floor says it. */
export async function acknowledge(link: Link, receipt: Receipt, signal: AbortSignal): Promise<'confirmed' | 'deferred'> {
  if (receipt.count === 0) return 'confirmed';
  for (let round = 0; round < roundsMax; round++) {
    // While the ACKs travel, the first look tells whether this durable can take them at all.
    const sent = sendAcks(link, receipt, signal);
    sent.catch(() => undefined);
    const early = judge(await readState(link, receipt, signal), receipt);
    if (early !== 'waiting') return early;
    if ((await sent) === 'gone') return 'deferred';
    for (const pauseMs of floorChecksMs) {
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      const verdict = judge(await readState(link, receipt, signal), receipt);
      if (verdict !== 'waiting') return verdict;
    }
  }
  return 'deferred';
}

export interface AckState {
  readonly incarnation: string | null;
  readonly consumer: Pick<ConsumerInfo, 'delivered' | 'ack_floor'> | null;
}

export function judge(state: AckState, receipt: Receipt): 'confirmed' | 'deferred' | 'waiting' {
  if (state.consumer === null || state.incarnation !== receipt.incarnation) return 'deferred';
  if (state.consumer.ack_floor.stream_seq >= receipt.lastSequence) return 'confirmed';
  // Put back, or forgotten by a killed server: the ACKs name what this durable has not delivered.
  return state.consumer.delivered.stream_seq < receipt.lastSequence ? 'deferred' : 'waiting';
}

async function readState(link: Link, receipt: Receipt, signal: AbortSignal): Promise<AckState> {
  try {
    const [consumer, stream] = await Promise.all([
      consumerInfo(link, receipt.stream, receipt.consumer, { signal }),
      readStream(link, receipt.stream, signal),
    ]);
    return { consumer, incarnation: incarnationOf(stream) };
  } catch (error) {
    // The put-back that follows says it is missing.
    if (error instanceof ReplayFault && error.code === 'stream_missing') return { consumer: null, incarnation: null };
    throw error;
  }
}

/**
 * All of them unanswered but the last, whose answer comes after the others were taken, and which shows a missing permission:
 * a refused plain publish throws nothing. `silent`: no answer in time, which the floor will explain.
 */
async function sendAcks(link: Link, receipt: Receipt, signal: AbortSignal): Promise<'sent' | 'silent' | 'gone'> {
  signal.throwIfAborted();
  link.ensureUp();
  const prefix = ackPrefix(receipt);
  try {
    for (const sequence of decodeRuns(receipt.runs)) {
      if (sequence !== receipt.lastSequence) link.nc.publish(ackSubject(prefix, sequence), ack);
    }
    await request(link, ackSubject(prefix, receipt.lastSequence), ack, { timeoutMs: barrierTimeoutMs, signal });
    return 'sent';
  } catch (error) {
    signal.throwIfAborted();
    if (isNoResponders(error)) return 'gone';
    const fault = faultOfClient(error);
    if (fault instanceof ReplayFault && fault.code === 'nats_timeout') return 'silent';
    throw fault;
  }
}

function ackPrefix(receipt: Receipt): string {
  return `$JS.ACK.${receipt.stream}.${receipt.consumer}.`;
}

/**
 * Of an explicit consumer the server reads the stream sequence only, and counts the tokens. The consumer sequence is 0 on
 * purpose: another one could pass for the next after the floor.
 */
export function ackSubject(prefix: string, sequence: number): string {
  return `${prefix}1.${sequence}.0.0.0`;
}

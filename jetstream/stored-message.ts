import { ReplayFault } from '../core/errors.ts';
import { timeNanos } from '../core/time.ts';
import { callApi, directGet } from './api.ts';
import { apiCode, faultOfApi } from './faults.ts';
import { lastValue, readHeaders } from './headers.ts';
import type { Link } from './link.ts';

/** Where a stored message stands. */
export interface Place {
  readonly sequence: number;
  readonly timeNanos: bigint;
}

/** A stored message as the stream's leader has it, byte for byte. */
export interface StoredMessage extends Place {
  readonly subject: string;
  readonly headerBlock: Buffer;
  readonly body: Buffer;
}

interface MessageAnswer {
  readonly message: {
    readonly subject: string;
    readonly seq: number;
    readonly time: string;
    readonly hdrs?: string;
    readonly data?: string;
  };
}

/** null when the message is gone. */
export function readStored(link: Link, stream: string, sequence: number, signal?: AbortSignal): Promise<StoredMessage | null> {
  return getMessage(link, stream, { seq: sequence }, signal);
}

/** The first message at or after the sequence that the filter takes; null when there is none. */
export function readNext(
  link: Link,
  stream: string,
  { sequence, filter }: { readonly sequence: number; readonly filter: string },
): Promise<StoredMessage | null> {
  return getMessage(link, stream, { seq: sequence, next_by_subj: filter });
}

async function getMessage(link: Link, stream: string, body: object, signal?: AbortSignal): Promise<StoredMessage | null> {
  const answer = await callApi<MessageAnswer>(link, `STREAM.MSG.GET.${stream}`, body, { signal });
  if (!answer.ok) {
    if (answer.error.err_code === apiCode.noMessageFound) return null;
    throw faultOfApi(answer.error, 'unexpected');
  }
  const { message } = answer.value;
  return {
    sequence: message.seq,
    timeNanos: timeNanos(message.time),
    subject: message.subject,
    headerBlock: Buffer.from(message.hdrs ?? '', 'base64'),
    body: Buffer.from(message.data ?? '', 'base64'),
  };
}

/** Place of the first message at or after the sequence; null when there is none. */
export async function nextPlace(link: Link, stream: string, sequence: number, allowDirect: boolean): Promise<Place | null> {
  const body = { seq: sequence, next_by_subj: '>' };
  if (allowDirect) {
    const answer = await directGet(link, stream, body);
    if (answer.kind === 'message') return readPlace(answer.headerBlock);
    if (answer.kind === 'none') return null;
  }
  return getMessage(link, stream, body);
}

/** Of a direct get's answer. */
export function readPlace(headerBlock: Buffer): Place & { readonly pendingAfter: number } {
  const headers = readHeaders(headerBlock);
  const sequence = Number(lastValue(headers, 'Nats-Sequence'));
  const time = lastValue(headers, 'Nats-Time-Stamp');
  if (!Number.isSafeInteger(sequence) || time === undefined)
    throw new ReplayFault('unexpected', 'direct get without its headers');
  return { sequence, timeNanos: timeNanos(time), pendingAfter: Number(lastValue(headers, 'Nats-Num-Pending') ?? NaN) };
}

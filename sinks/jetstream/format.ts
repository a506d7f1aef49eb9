import { createHash } from 'node:crypto';
import type { ReplayRecord } from '../../core/record.ts';
import { formatTime } from '../../core/time.ts';
import type { SinkContext } from '../sink.ts';

/** Where a stored message was copied from. */
export interface Origin {
  readonly stream: string;
  readonly incarnation: string;
  readonly sequence: number;
}

type Headers = ReadonlyMap<string, readonly string[]>;

const messageIdName = 'Nats-Msg-Id';
const madePrefix = 'replay-';
const originalPrefix = 'Replay-Original-';

/**
 * Headers of a copy: ours, then those of the record in their order. Names that would mean something to the server, or pass for
 * ours, are set aside as `Replay-Original-...`: Nats-Rollup would wipe the stream, Nats-TTL would expire the copy. Only
 * `Nats-Msg-Id` stays as it is, unless `id` is another.
 */
export function headerBlock(
  record: ReplayRecord,
  id: string,
  { stream, plan, run }: { readonly stream: string } & Pick<SinkContext, 'plan' | 'run'>,
): Buffer {
  const keepsId = record.headers.get(messageIdName)?.[0] === id;
  const lines = [
    'NATS/1.0',
    ...(keepsId ? [] : [`${messageIdName}: ${id}`]),
    `Nats-Expected-Stream: ${stream}`,
    `Replay-Source-Stream: ${record.stream}`,
    `Replay-Source-Incarnation: ${record.incarnation}`,
    `Replay-Source-Subject: ${record.subject}`,
    `Replay-Source-Sequence: ${record.sequence}`,
    `Replay-Source-Time: ${formatTime(record.timeNanos)}`,
    `Replay-Plan: ${plan}`,
    `Replay-Run: ${run}`,
  ];
  for (const [name, values] of record.headers) {
    const aside = /^(?:nats|replay)-/i.test(name) && !(keepsId && name === messageIdName);
    for (const value of values) lines.push(`${aside ? originalPrefix : ''}${name}: ${value}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
}

/** The same whichever plan copies the record: other than the record's own id, no other record has it. */
export function madeId({ stream, incarnation, sequence }: Pick<ReplayRecord, 'stream' | 'incarnation' | 'sequence'>): string {
  const text = JSON.stringify([stream, incarnation, String(sequence)]);
  return `${madePrefix}${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}

/** null for a message that no replay copied. */
export function originOf(headers: Headers): Origin | null {
  const [stream, incarnation] = [headers.get('Replay-Source-Stream')?.[0], headers.get('Replay-Source-Incarnation')?.[0]];
  const sequence = Number(headers.get('Replay-Source-Sequence')?.[0]);
  if (stream === undefined || incarnation === undefined || !Number.isSafeInteger(sequence)) return null;
  return { stream, incarnation, sequence };
}

/** The message id of whatever message, copied or not; undefined when it has none. */
export function messageIdOf(headers: Headers): string | undefined {
  return headers.get(messageIdName)?.[0];
}

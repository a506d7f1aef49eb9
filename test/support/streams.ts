import type { JetStreamManager, MsgHdrs, NatsConnection, StreamConfig } from 'nats';
import { uniqueName } from './servers.ts';

export interface TestStream {
  readonly name: string;
  /** First token of its subjects. */
  readonly prefix: string;
  readonly deadLetterSubject: string;
  readonly deadLetterStream: string;
}

const publishesInFlight = 500;

/** A stream with direct get, and a dead-letter stream beside it. */
export async function addStream(manager: JetStreamManager, config: Partial<StreamConfig> = {}): Promise<TestStream> {
  const name = uniqueName('S');
  const prefix = uniqueName('s');
  const deadLetterStream = `${name}-DLQ`;
  await manager.streams.add({ name, subjects: [`${prefix}.>`], allow_direct: true, ...config });
  await manager.streams.add({
    name: deadLetterStream,
    subjects: [`dlq-${prefix}`],
    allow_direct: true,
    duplicate_window: 3_600_000_000_000,
  });
  return { name, prefix, deadLetterSubject: `dlq-${prefix}`, deadLetterStream };
}

export interface TestMessage {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly headers?: MsgHdrs;
}

export function* repeat(count: number, make: (index: number) => TestMessage): Iterable<TestMessage> {
  for (let i = 0; i < count; i++) yield make(i);
}

/** Stores the messages in order. Every PubAck is awaited: a server that cannot keep up drops what nobody waits for. */
export async function publishAll(connection: NatsConnection, messages: Iterable<TestMessage>): Promise<void> {
  const stream = connection.jetstream();
  let waiting: Promise<unknown>[] = [];
  for (const { subject, body, headers } of messages) {
    waiting.push(stream.publish(subject, body, headers === undefined ? {} : { headers }));
    if (waiting.length < publishesInFlight) continue;
    await Promise.all(waiting);
    waiting = [];
  }
  await Promise.all(waiting);
}

const encoder = new TextEncoder();

/** Bodies of every kind that must land exactly: big integers, odd spellings, text, bytes. */
const odd: readonly (string | Uint8Array)[] = [
  '{"id": 7088992364139642880, "price": 1.10}',
  '{"emoji": "😀 日本 café", "e": 1e400}',
  '{"lone": "\\ud800", "ok": true}',
  '{\n  "pretty": [1,\r\n 2],\n\t"x": {}\n}',
  'plain text, with "quotes" and \u0000 a NUL',
  '',
  Uint8Array.of(0xff, 0xfe, 0x00, 0x80),
  '{"a": 1, "a": 2}',
  '{"n": NaN}',
  '\ufeff{"bom": true}',
  '"just a string"',
  '  [1, 2, 3]  ',
];

function oddBody(index: number): Uint8Array {
  const body = odd[index % odd.length]!;
  return typeof body === 'string' ? encoder.encode(body) : body;
}

export function* mixedMessages(
  prefix: string,
  count: number,
  kinds: readonly string[] = ['created', 'updated', 'paid'],
): Generator<TestMessage> {
  for (let i = 0; i < count; i++) {
    const subject = `${prefix}.${kinds[i % kinds.length]!}`;
    yield {
      subject,
      body: i % 10 === 0 ? oddBody(i / 10) : encoder.encode(`{"id": ${i}, "at": "2026-05-01", "sum": ${i}.50}`),
    };
  }
}

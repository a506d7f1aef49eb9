import { bodyOf, readDeliveryTokens, type Envelope } from './envelope.ts';
import { noHeaders, readHeaders, readMessageId, type Headers } from './headers.ts';
import type { PulledRecord } from './source.ts';

/** null for the server's own messages: they have no ACK subject. */
export function readDelivery(envelope: Envelope, from: { stream: string; incarnation: string }): PulledRecord | null {
  const tokens = readDeliveryTokens(envelope.reply);
  if (tokens === null) return null;
  const delivery = new Delivery(envelope);
  delivery.stream = from.stream;
  delivery.incarnation = from.incarnation;
  delivery.sequence = BigInt(tokens.streamSequence);
  delivery.subject = envelope.subject.toString();
  delivery.timeNanos = tokens.timeNanos;
  delivery.payload = bodyOf(envelope);
  delivery.redelivered = tokens.deliveries > 1;
  delivery.position = tokens.streamSequence;
  delivery.consumerSequence = tokens.consumerSequence;
  const messageId = readMessageId(envelope.bytes, envelope.headerBytes);
  if (messageId !== undefined) delivery.messageId = messageId;
  return delivery;
}

/** Headers are parsed each time they are asked for: maps kept for a whole batch cost more than the rest of pulling it. */
class Delivery implements PulledRecord {
  declare stream: string;
  declare incarnation: string;
  declare sequence: bigint;
  declare subject: string;
  declare timeNanos: bigint;
  declare payload: Uint8Array;
  declare redelivered: boolean;
  declare position: number;
  declare consumerSequence: number;
  declare messageId?: string;
  readonly #bytes: Buffer;
  readonly #headerBytes: number;

  constructor({ bytes, headerBytes }: Envelope) {
    this.#bytes = bytes;
    this.#headerBytes = headerBytes;
  }

  get headers(): Headers {
    return this.#headerBytes === 0 ? noHeaders : readHeaders(this.#bytes.subarray(0, this.#headerBytes));
  }
}

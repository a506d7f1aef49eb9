import type { ReplayRecord } from '../../core/record.ts';
import { SequenceIndex } from '../../core/sequence-set.ts';
import type { StreamWriter, WrittenStream } from '../../jetstream/stream-writer.ts';
import { messageIdOf, originOf } from './format.ts';

/** Clocks of servers may differ by so much, nanoseconds. */
const CLOCK_MARGIN_NANOS = 600_000_000_000n;

/**
 * What the destination holds, as far as it matters: a copy is younger than its record, so that only messages stored since the
 * first record at hand are looked through. Kept up to date by reading what was stored since the last look.
 */
export class Holdings {
  readonly #writer: StreamWriter;
  readonly #byId: boolean;
  #stream: WrittenStream | null = null;
  /** Everything from this time on, and from the first of these sequences to the last, has been read. */
  #sinceNanos = 0n;
  #read = { first: 1, last: 0 };
  #sequences = new SequenceIndex();
  readonly #ids = new Set<string>();

  constructor(writer: StreamWriter, { byId }: { readonly byId: boolean }) {
    this.#writer = writer;
    this.#byId = byId;
  }

  has(record: ReplayRecord): boolean {
    if (this.#byId) return this.#ids.has(record.messageId!);
    return this.#sequences.of(record.stream, record.incarnation).has(Number(record.sequence));
  }

  /** Reads what was stored up to now. Starts anew when the stream is another, or when older records come. */
  async update(stream: WrittenStream, oldestNanos: bigint, signal: AbortSignal): Promise<void> {
    if (this.#stream?.incarnation !== stream.incarnation || oldestNanos < this.#sinceNanos)
      await this.#begin(stream, oldestNanos);
    const range = { first: this.#read.last + 1, last: stream.lastSequence };
    await this.#writer.readHeaders(stream, range, (headers) => this.#note(headers), signal);
    this.#read.last = Math.max(this.#read.last, stream.lastSequence);
  }

  async #begin(stream: WrittenStream, oldestNanos: bigint): Promise<void> {
    const since = oldestNanos - CLOCK_MARGIN_NANOS;
    this.#sinceNanos = since > 0n ? since : 0n;
    const first = await this.#writer.sequenceAt(stream, this.#sinceNanos);
    this.#sequences = new SequenceIndex();
    this.#ids.clear();
    this.#stream = stream;
    this.#read = { first, last: first - 1 };
  }

  /** Our own message was stored there: nothing to read again where nobody else came between. */
  add(record: ReplayRecord, sequence: number): void {
    if (sequence === this.#read.last + 1) this.#read.last = sequence;
    if (this.#byId) this.#ids.add(record.messageId!);
    else this.#sequences.of(record.stream, record.incarnation).addRun(Number(record.sequence), 1);
  }

  #note(headers: ReadonlyMap<string, readonly string[]>): void {
    if (this.#byId) {
      const id = messageIdOf(headers);
      if (id !== undefined) this.#ids.add(id);
      return;
    }
    const origin = originOf(headers);
    if (origin !== null) this.#sequences.of(origin.stream, origin.incarnation).addRun(origin.sequence, 1);
  }
}

import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import type { OutgoingMessage, PublishAnswer, StreamWriter, WrittenStream } from '../../jetstream/stream-writer.ts';
import type { Finding, Sink, SinkCapabilities, SinkContext } from '../sink.ts';
import type { JetstreamConfig } from './config.ts';
import { asDestination, isTooLarge, refusedFault, unheardFault } from './faults.ts';
import { headerBlock, madeId } from './format.ts';
import { Holdings } from './holdings.ts';

const BATCH_RECORDS_MAX = 10_000;
/** Leaves room for the rest of the server's protocol line of 4,096 bytes. */
const SUBJECT_BYTES_MAX = 3_800;
/** Below this a repetition is recognised by reading only. */
const DUPLICATE_WINDOW_MS_MIN = 120_000;

const WRITTEN: Outcome = { kind: 'written' };
const DUPLICATE: Outcome = { kind: 'duplicate' };
const TOO_LARGE: Outcome = { kind: 'rejected', code: 'too_large' };
const SUBJECT_TOO_LONG: Outcome = { kind: 'rejected', code: 'value_too_long', field: 'subject' };
const NO_MESSAGE_ID: Outcome = { kind: 'rejected', code: 'key_missing', field: 'message_id' };

export function createJetstreamSink(config: JetstreamConfig, context: SinkContext): Sink {
  if (context.streams === undefined) throw new ReplayFault('unexpected', 'this worker hands its sinks no connection to NATS');
  return new JetstreamSink(config, context, context.streams);
}

class JetstreamSink implements Sink {
  readonly capabilities: SinkCapabilities = {
    keys: ['stream_sequence', 'message_id'],
    transactional: false,
    maxBatchRecords: BATCH_RECORDS_MAX,
  };
  readonly #config: JetstreamConfig;
  readonly #context: SinkContext;
  readonly #writer: StreamWriter;
  readonly #byId: boolean;
  readonly #holdings: Holdings;

  constructor(config: JetstreamConfig, context: SinkContext, writer: StreamWriter) {
    this.#config = config;
    this.#context = context;
    this.#writer = writer;
    this.#byId = context.idempotency?.key === 'message_id';
    this.#holdings = new Holdings(writer, { byId: this.#byId });
  }

  async open(signal: AbortSignal): Promise<void> {
    await this.#usableStream(signal);
  }

  async write(batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]> {
    signal.throwIfAborted();
    if (batch.length === 0) return [];
    const stream = await this.#usableStream(signal);
    await this.#updateHoldings(stream, batch, signal);
    const outcomes = new Map<ReplayRecord, Outcome>();
    const fresh = batch.filter((record) => {
      const outcome = this.#outcomeBefore(record);
      if (outcome !== null) outcomes.set(record, outcome);
      return outcome === null;
    });
    const doubtful = await this.#publish(
      fresh,
      { stream, outcomes, idOf: (record) => record.messageId ?? madeId(record) },
      signal,
    );
    if (doubtful.length > 0) await this.#resolve(doubtful, outcomes, signal);
    return batch.map((record) => outcomes.get(record)!);
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    signal.throwIfAborted();
    return findingsOf(await asDestination(this.#writer.describe(this.#config.stream, signal)), this.#config);
  }

  async close(): Promise<void> {}

  async #usableStream(signal: AbortSignal): Promise<WrittenStream> {
    const stream = await asDestination(this.#writer.describe(this.#config.stream, signal));
    const error = findingsOf(stream, this.#config).find(({ severity }) => severity === 'error');
    if (error !== undefined) throw new ReplayFault(stream.sealed ? 'sink_denied' : 'sink_unfit', error.message);
    return stream;
  }

  async #updateHoldings(stream: WrittenStream, batch: readonly ReplayRecord[], signal: AbortSignal): Promise<void> {
    const oldest = batch.reduce((nanos, record) => (record.timeNanos < nanos ? record.timeNanos : nanos), batch[0]!.timeNanos);
    await asDestination(this.#holdings.update(stream, oldest, signal));
  }

  /** What is clear before anything is sent; null: nothing is. */
  #outcomeBefore(record: ReplayRecord): Outcome | null {
    if (this.#byId && record.messageId === undefined) return NO_MESSAGE_ID;
    if (this.#holdings.has(record)) return DUPLICATE;
    return Buffer.byteLength(this.#subjectOf(record)) > SUBJECT_BYTES_MAX ? SUBJECT_TOO_LONG : null;
  }

  #subjectOf({ subject }: ReplayRecord): string {
    const { subject_prefix: prefix } = this.#config;
    return prefix === undefined ? subject : `${prefix}.${subject}`;
  }

  /** Sends in order until all have an outcome. Returns those whose message id the stream has seen, from whatever record. */
  async #publish(records: readonly ReplayRecord[], use: Use, signal: AbortSignal): Promise<ReplayRecord[]> {
    const doubtful: ReplayRecord[] = [];
    const sendable: { readonly record: ReplayRecord; readonly message: OutgoingMessage }[] = [];
    for (const record of records) {
      const message = this.#messageOf(record, use.idOf(record));
      const bytes = message.headerBlock.length + message.body.length;
      if (bytes > Math.min(this.#writer.messageBytesMax, use.stream.messageBytesMax ?? Infinity))
        use.outcomes.set(record, TOO_LARGE);
      else sendable.push({ record, message });
    }
    for (let next = 0; next < sendable.length;) {
      const rest = sendable.slice(next);
      const answers = await asDestination(
        this.#writer.publish(
          rest.map(({ message }) => message),
          signal,
        ),
      );
      answers.forEach((answer, i) => this.#note(rest[i]!.record, answer, { ...use, doubtful }));
      next += answers.length;
    }
    return doubtful;
  }

  #note(
    record: ReplayRecord,
    answer: PublishAnswer,
    { outcomes, doubtful }: Use & { readonly doubtful: ReplayRecord[] },
  ): void {
    if (answer.kind === 'unheard') throw unheardFault();
    if (answer.kind === 'refused') {
      if (!isTooLarge(answer.error)) throw refusedFault(answer.error);
      outcomes.set(record, TOO_LARGE);
    } else if (answer.duplicate) doubtful.push(record);
    else {
      outcomes.set(record, WRITTEN);
      this.#holdings.add(record, answer.sequence);
    }
  }

  /**
   * The stream has seen the id of these within its duplicate window: by now it can be read whether they are there, or whether
   * another record has the same id. Such a one is stored under an id of ours, since it is a record of its own.
   */
  async #resolve(doubtful: readonly ReplayRecord[], outcomes: Map<ReplayRecord, Outcome>, signal: AbortSignal): Promise<void> {
    const stream = await this.#usableStream(signal);
    await this.#updateHoldings(stream, doubtful, signal);
    const isThere = (record: ReplayRecord) => this.#byId || this.#holdings.has(record);
    for (const record of doubtful) if (isThere(record)) outcomes.set(record, DUPLICATE);
    const others = doubtful.filter((record) => !isThere(record));
    const again = await this.#publish(others, { stream, outcomes, idOf: madeId }, signal);
    // Only a copy of the same record has that id: another writer stored it a moment ago.
    for (const record of again) outcomes.set(record, DUPLICATE);
  }

  #messageOf(record: ReplayRecord, id: string): OutgoingMessage {
    return {
      subject: this.#subjectOf(record),
      headerBlock: headerBlock(record, id, { stream: this.#config.stream, plan: this.#context.plan, run: this.#context.run }),
      body: record.payload,
    };
  }
}

interface Use {
  readonly stream: WrittenStream;
  readonly outcomes: Map<ReplayRecord, Outcome>;
  readonly idOf: (record: ReplayRecord) => string;
}

function findingsOf(stream: WrittenStream, config: JetstreamConfig): Finding[] {
  const findings: Finding[] = [];
  const { retention, isMirror, sealed, duplicateWindowMs, dropsOld } = stream;
  if (retention !== 'limits') {
    const message = `The stream has ${retention} retention: what is consumed is gone, so that a repetition could not be recognised.`;
    findings.push({ severity: 'error', message, next: 'Name a stream with limits retention.' });
  }
  if (isMirror)
    findings.push({
      severity: 'error',
      message: 'The stream is a mirror: nothing can be stored there.',
      next: 'Name another stream.',
    });
  if (sealed)
    findings.push({ severity: 'error', message: 'The stream is sealed.', next: 'Name another stream; a sealed one stays so.' });
  if (duplicateWindowMs < DUPLICATE_WINDOW_MS_MIN) {
    findings.push({
      severity: 'warning',
      message: `The stream recognises repeated message ids for ${duplicateWindowMs / 1_000} s only; two runs that write the same records at the same time could store some twice.`,
      next: `nats stream edit ${config.stream} --dupe-window 2m`,
    });
  }
  if (dropsOld) {
    findings.push({
      severity: 'warning',
      message: 'The stream drops old messages (max_age, or a limit with discard old): what was written may be gone again.',
      next: 'Compare its limits with what the plan will store.',
    });
  }
  return findings;
}

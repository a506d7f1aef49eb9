import type { NatsConnection } from 'nats';
import type { Receipt } from '../core/receipt.ts';
import type { Reject, ReplayRecord } from '../core/record.ts';
import { acknowledge } from './acknowledgements.ts';
import { duplicateWindowMs, isBound, publishDeadLetter } from './dead-letters.ts';
import { openLink, withFaults, type LinkOptions } from './link.ts';
import { pull } from './pull.ts';
import { count, sequenceAt, timesRise } from './range.ts';
import { deleteConsumer, markCompleted, putBack, readConsumer } from './replay-consumer.ts';
import { describe } from './stream.ts';

/**
 * All that a replay asks of JetStream. Every call throws ReplayFault (core/errors.ts) when the server cannot answer, and stops
 * early when its signal aborts. Sequences are JavaScript numbers: a stream beyond 2^53-1 is refused by `describe`.
 */
export interface Source {
  /** Throws `stream_missing`. */
  describe(stream: string): Promise<StreamFacts>;
  /** First sequence stored at or after the time; `facts.lastSequence + 1` when there is none. Read-only. */
  sequenceAt(facts: StreamFacts, timeNanos: bigint): Promise<number>;
  /** Messages of the scope in first..last, and their bytes. Read-only: no consumer is made. */
  count(facts: StreamFacts, scope: Scope): Promise<Count>;
  /** True when times never fall within the sampled range (mirrors and sources may break this). Read-only, bounded. */
  timesRise(facts: StreamFacts, first: number, last: number): Promise<boolean>;

  /** null when the durable does not exist. */
  readConsumer(stream: string, durable: string): Promise<ConsumerFacts | null>;
  /**
   * Deletes the durable, if it is there, and creates it at the cursor: everything below is thereby acknowledged, nothing
   * stays pending, and a lost attempt's waiting pull ends. Throws `consumer_taken` when somebody creates it in between,
   * `consumer_refused` when the stream's limits do not allow it.
   */
  putBack(spec: ConsumerSpec, cursor: number): Promise<void>;
  /** No error when it is already gone. */
  deleteConsumer(stream: string, durable: string): Promise<void>;
  /** Records in the durable's metadata that its replay is complete (`keep_consumer`). */
  markCompleted(spec: ConsumerSpec): Promise<void>;

  /** Raw pull. Ends as soon as the server has said that nothing more is there, or that the limits are reached. */
  pull(request: PullRequest, signal: AbortSignal): Promise<Pulled>;
  /**
   * ACKs what the receipt names, pipelined, and confirms by consumer info that the server took it.
   * `deferred`: the consumer is gone or was put back to before the receipt's last; the next put-back settles it.
   */
  acknowledge(receipt: Receipt, signal: AbortSignal): Promise<'confirmed' | 'deferred'>;

  /** True when some stream takes messages of this subject. Stores nothing. */
  isBound(subject: string): Promise<boolean>;
  /** Duplicate window of the stream that takes the subject, in milliseconds; null when it may not be asked. */
  duplicateWindowMs(subject: string): Promise<number | null>;
  /** Stores one dead letter and waits for the server's PubAck. `duplicate` is the PubAck's own word. */
  publishDeadLetter(
    letter: DeadLetter,
    signal: AbortSignal,
  ): Promise<{ duplicate: boolean; body: 'kept' | 'lost' | 'too_large' }>;
}

export interface StreamFacts {
  readonly stream: string;
  /** Creation time: RFC 3339, nine decimals, `Z`. */
  readonly incarnation: string;
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly messages: number;
  readonly bytes: number;
  readonly retention: 'limits' | 'interest' | 'workqueue';
  readonly subjects: readonly string[];
  readonly allowDirect: boolean;
  readonly isMirror: boolean;
  /** Streams that the server copies into this one: of a mirror, and of sources. */
  readonly origins: readonly string[];
  /** Caps the stream puts on its consumers; null where it has none. */
  readonly consumerLimits: { readonly inactiveThresholdMs: number | null; readonly maxAckPending: number | null };
  /** Server time of the answer, nanoseconds since the epoch. */
  readonly serverTimeNanos: bigint;
}

export interface Scope {
  readonly filters: readonly string[];
  readonly first: number;
  readonly last: number;
}

export interface Count {
  readonly messages: number;
  readonly bytes: number;
  readonly exact: { readonly messages: boolean; readonly bytes: boolean };
}

/** Who may pull from a durable, kept in its metadata. The owner is a workflow's whole continue-as-new chain. */
export interface ConsumerOwner {
  /** Temporal cluster id. */
  readonly cluster: string;
  readonly namespace: string;
  readonly workflowId: string;
  readonly firstRunId: string;
  readonly fingerprint: string;
}

export interface ConsumerSpec {
  readonly stream: string;
  readonly incarnation: string;
  readonly durable: string;
  readonly filters: readonly string[];
  /** Most records that may be pulled and not yet ACKed; at least twice the batch. */
  readonly maxAckPending: number;
  readonly owner: ConsumerOwner;
}

export interface ConsumerFacts {
  /** null: not made by a replay. */
  readonly owner: ConsumerOwner | null;
  readonly completed: boolean;
  /** Where it was created at; what a replay of a topic, which pulls nothing from it, has settled lies before. */
  readonly startSequence: number;
  /** Every sequence up to this one is acknowledged. */
  readonly ackFloor: number;
  readonly delivered: { readonly stream: number; readonly consumer: number };
  /** Matching messages not yet delivered. */
  readonly pending: number;
  readonly ackPending: number;
  /** Settings of the durable that differ from what `putBack` would make; empty when it is as it should be. */
  readonly altered: readonly string[];
}

export interface PullRequest {
  readonly stream: string;
  readonly incarnation: string;
  readonly durable: string;
  readonly maxRecords: number;
  /** A single larger record comes alone. */
  readonly maxBytes: number;
  /** How long to wait for a first record when none is there; 0 asks only for what is there. */
  readonly waitMs: number;
}

export interface Pulled {
  /** In the order of delivery. */
  readonly records: readonly PulledRecord[];
  /**
   * `full`: as many records or bytes as asked. `drained`: the server said that nothing more is there (now).
   * `broken`: the pull ended early (consumer deleted, connection or leader lost, event loop too slow): records may be on
   * their way or lost, so the durable must be put back before the next pull.
   */
  readonly end: 'full' | 'drained' | 'broken';
}

export interface PulledRecord extends ReplayRecord {
  /** The stream sequence as a number. */
  readonly position: number;
  readonly consumerSequence: number;
}

export interface DeadLetter {
  readonly subject: string;
  readonly source: { readonly stream: string; readonly incarnation: string };
  readonly reject: Reject;
  /** Hash of (stream, incarnation, sequence, durable, target); also the message id. */
  readonly replayId: string;
  readonly plan: string;
  readonly run: string;
  readonly attempt: number;
  /** The refused record itself, where the stream is not asked for it. */
  readonly record?: ReplayRecord;
}

/** One source for a connection: it serves any number of replays at a time. Takes the settings of the connection as options. */
export function createSource(nc: NatsConnection, options: LinkOptions = {}): Source {
  const link = openLink(nc, options);
  const asked = <T>(act: () => Promise<T>) => withFaults(undefined, act);
  return {
    describe: (stream) => asked(() => describe(link, stream)),
    sequenceAt: (facts, timeNanos) => asked(() => sequenceAt(link, facts, timeNanos)),
    count: (facts, scope) => asked(() => count(link, facts, scope)),
    timesRise: (facts, first, last) => asked(() => timesRise(link, facts, first, last)),
    readConsumer: (stream, durable) => asked(() => readConsumer(link, stream, durable)),
    putBack: (spec, cursor) => asked(() => putBack(link, spec, cursor)),
    deleteConsumer: (stream, durable) => asked(() => deleteConsumer(link, stream, durable)),
    markCompleted: (spec) => asked(() => markCompleted(link, spec)),
    pull: (request, signal) => withFaults(signal, () => pull(link, request, signal)),
    acknowledge: (receipt, signal) => withFaults(signal, () => acknowledge(link, receipt, signal)),
    isBound: (subject) => asked(() => isBound(link, subject)),
    duplicateWindowMs: (subject) => asked(() => duplicateWindowMs(link, subject)),
    publishDeadLetter: (letter, signal) => withFaults(signal, () => publishDeadLetter(link, letter, signal)),
  };
}

import type { ChildTally } from '../core/children.ts';
import type { IdempotencyKey, Outcome, ReplayRecord } from '../core/record.ts';
import type { StreamWriter } from '../jetstream/stream-writer.ts';

/**
 * A destination. The deliver step calls `open` once, then `write` for each batch, one call at a time; `probe` may be called
 * on a sink that was never opened. After any throw the instance is closed and thrown away, and the same batch is written
 * again through a new one: everything here must bear repetition.
 *
 * Faults are thrown as ReplayFault with a code of core/errors.ts: `retry` codes are tried again, `stop` codes turn the plan
 * `blocked`. Anything else thrown counts as `unexpected` (retry). A bad record is never thrown: it is a `rejected` outcome,
 * so that one poison record cannot hold back the rest of its batch.
 */
export interface Sink {
  readonly capabilities: SinkCapabilities;
  /** Makes ready to write: connects, creates what the target asks to create, recovers what a crash left. */
  open(signal: AbortSignal): Promise<void>;
  /**
   * Resolves when every record it calls written or duplicate is durable. One outcome per record, in the same order.
   * Records arrive in stream order without repetition; an empty batch resolves to an empty list. When `signal` aborts, it
   * rejects as soon as it safely can and leaves a state in which the same batch can be written again.
   */
  write(batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]>;
  /** Of a sink with children: what became of the last batch in each. */
  childTallies?(): readonly ChildTally[];
  /** Read-only look at the destination. Findings say what to do; throws a ReplayFault when it cannot look. */
  probe(signal: AbortSignal): Promise<readonly Finding[]>;
  /** Never throws for work already durable; first error wins. */
  close(): Promise<void>;
}

export interface SinkCapabilities {
  readonly keys: readonly IdempotencyKey[];
  /** A batch is in or not in, as a whole. */
  readonly transactional: boolean;
  readonly maxBatchRecords: number;
  readonly maxRecordBytes?: number;
}

export interface Finding {
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
  /** What to do about it, with the statement to run where there is one. */
  readonly next?: string;
}

/** What a worker gives a sink besides its own configuration. */
export interface SinkContext {
  /** Absolute path under which relative directories of the target live. */
  readonly dataRoot: string;
  /** The plan's durable consumer and the Temporal run id: written into every record. */
  readonly plan: string;
  readonly run: string;
  /**
   * The run has settled records here before: what is missing now (a directory, a table) must not be created anew, or the
   * replay would go on into an empty destination. False for a probe.
   */
  readonly begun: boolean;
  /** How the target recognises records that come again. Absent: by stream, incarnation and sequence. */
  readonly idempotency?: {
    readonly key: IdempotencyKey;
    readonly field: string | null;
    readonly key_conflicts: 'reject' | 'keep';
  };
  /** Resolves a secret by the name of its environment variable; throws ReplayFault('secret_missing'). */
  readonly secret: (name: string) => string;
  readonly log: SinkLog;
  /** Builds the sink of a child, not opened, from the `sink` object that stands in the configuration. */
  readonly child?: (sink: Readonly<Record<string, unknown>>, use: { readonly begun: boolean }) => Promise<Sink>;
  /** The worker's own connection to NATS, for sinks that write into a stream. Absent: this worker has none to give. */
  readonly streams?: StreamWriter;
}

export interface SinkLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

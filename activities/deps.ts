import type { Owner } from '../core/consumer.ts';
import type { ColdKind } from '../core/topic.ts';
import type { Parsed } from '../core/problems.ts';
import type { ReplayTarget } from '../core/target.ts';
import type { Sink } from '../sinks/sink.ts';
import type { SpoolDrain } from '../sinks/spool-drain.ts';
import type { Segment, SegmentPlace, SegmentRecord } from '../cold/segment.ts';
import type { ColdObject } from '../core/reconcile.ts';
import type { ColdStore } from '../cold/store.ts';
import type { Source } from '../jetstream/source.ts';
import type { TopicSource } from '../jetstream/topics/sweep-source.ts';
import type { TopicReader } from '../jetstream/topics/replay-log.ts';

/** What the worker hands to the durable steps. */
export interface Deps {
  readonly source: Source;
  readonly sinks: SinkProvider;
  readonly targets: Targets;
  readonly spools: Spools;
  readonly runs: Runs;
  readonly reports: ReportFolder;
  readonly dataRoot: DataRoot;
  readonly topics: TopicReader;
  readonly sweeps: SweepDeps;
  readonly log: Log;
}

/** What sweeps of topics need. */
export interface SweepDeps {
  readonly topics: TopicSource;
  /** Throws `cold_unconfigured`. */
  readonly cold: (kind: ColdKind) => ColdStore;
  readonly segments: SegmentFormat;
}

/** See cold/segment.ts. */
interface SegmentFormat {
  name(place: SegmentPlace, epoch: number, upload: string): string;
  /** null: the name of something else. */
  parse(name: string): ColdObject | null;
  encode(place: SegmentPlace, records: readonly SegmentRecord[]): Uint8Array;
  /** Throws `cold_corrupt`. */
  decode(place: SegmentPlace, bytes: Uint8Array): Segment;
}

export interface SinkProvider {
  /**
   * An opened sink for this run of this target. It is kept open between batches, and handed to one caller at a time: a caller
   * that comes while it is out gets one of its own.
   */
  borrow(use: SinkUse, signal: AbortSignal): Promise<BorrowedSink>;
}

export interface SinkUse {
  readonly target: ReplayTarget;
  readonly plan: string;
  readonly run: string;
  /** The run has settled records there before. */
  readonly begun: boolean;
}

export interface BorrowedSink {
  readonly sink: Sink;
  /** `broken` closes and forgets it: after any throw. */
  giveBack(state: 'good' | 'broken'): Promise<void>;
}

/** Knows the sink types and the worker's targets folder. */
export interface Targets {
  /** Takes a target document, or the name of a file in the targets folder. */
  resolve(target: unknown): Promise<Parsed<ReplayTarget>>;
  /** The type of the sink, or of a child of it, for which the contract suite has not passed in the mode that it asks for; null: none. */
  uncertified(sink: ReplayTarget['sink']): { readonly type: string; readonly mode: string } | null;
  /** Whether the sink lives below this machine's data root. */
  isLocal(sink: ReplayTarget['sink']): boolean;
  /** The streams that the sink writes into. */
  streamsWritten(sink: ReplayTarget['sink']): readonly string[];
  /** A sink that was not opened, to probe. */
  unopened(use: SinkUse): Promise<Sink>;
}

/** Sinks that only keep records for a while, and what takes them out again. */
export interface Spools {
  /** Whether the sink type can be drained. */
  isSpool(type: string): boolean;
  open(sink: ReplayTarget['sink']): Promise<SpoolDrain>;
}

/** What the steps ask of Temporal itself. */
export interface Runs {
  /** Id of the Temporal cluster: part of the owner of a durable. */
  clusterId(): Promise<string>;
  readonly namespace: string;
  /** Whether the owner's workflow chain is still open. */
  isOpen(owner: Pick<Owner, 'workflowId' | 'firstRunId'>): Promise<boolean>;
  cancel(workflowId: string, runId: string): Promise<void>;
  /** Whether the server knows all our search attributes. */
  hasSearchAttributes(): Promise<boolean>;
}

export interface ReportFolder {
  /** Replaces the file as a whole; throws ReplayFault('report_unwritable'). */
  write(file: string, content: string): Promise<void>;
}

export interface DataRoot {
  /** Id of the data root, made by the first execution on it; null when there is none yet. */
  read(): Promise<string | null>;
  readOrCreate(): Promise<string>;
}

export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

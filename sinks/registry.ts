import type { z } from 'zod';
import type { Problem } from '../core/problems.ts';
import type { IdempotencyKey } from '../core/record.ts';
import type { Idempotency } from './sql/columns.ts';
import type { Sink, SinkContext } from './sink.ts';
import type { SpoolDrain } from './spool-drain.ts';
import { fanOutSpec } from './fan-out/config.ts';
import { fileSpec } from './file/config.ts';
import { jetstreamSpec } from './jetstream/config.ts';
import { mysqlSpec } from './mysql/config.ts';
import { oracleSpec } from './oracle/config.ts';
import { spoolSpec } from './spool/config.ts';

/** Describes a sink type without loading its driver: what CLI, docs and plan checks need. */
export interface SinkSpec {
  readonly type: string;
  /** One sentence for the reference page. */
  readonly summary: string;
  /** Strict schema of the `sink` object of the target file, `type` included; every field described, secrets marked by `meta({ secret: true })`. */
  readonly config: z.ZodType;
  readonly keys: readonly IdempotencyKey[];
  /** Lives below the worker's data root, so that the run must stay on workers that share it. */
  readonly local: boolean;
  /** An example of the `sink` object. */
  readonly example: Readonly<Record<string, unknown>>;
  /** Where `npm run certify` keeps what the contract suite found; see sinks/certification.ts. Absent: not certified. */
  readonly evidence?: URL;
  /** The part of a configuration that is certified by itself, such as `insert` and `upsert`. Absent: `default` for all. */
  readonly modeOf?: (sink: Readonly<Record<string, unknown>>) => string;
  /** Rules between the fields of a configuration that passed the schema, and with the idempotency of the target. */
  readonly problems?: (sink: Readonly<Record<string, unknown>>, idempotency: Idempotency) => readonly Problem[];
  /** The network hosts that a configuration reaches: a worker may be limited to some. Absent: none. */
  readonly hosts?: (sink: Readonly<Record<string, unknown>>) => readonly string[];
  /** The streams that a configuration writes into: a plan must not read them. Absent: none. */
  readonly streams?: (sink: Readonly<Record<string, unknown>>) => readonly string[];
  /** Its configuration has children, each a sink of its own at `sinks.NAME.sink`. */
  readonly fansOut?: true;
  /** Loads the driver; `config` has passed the schema above. */
  load(): Promise<(config: never, context: SinkContext) => Sink>;
  /** For a sink that only keeps records for a while: what takes them out again. Absent: it cannot be drained. */
  readonly loadDrain?: () => Promise<(config: never, context: Pick<SinkContext, 'dataRoot' | 'secret' | 'log'>) => SpoolDrain>;
}

const known: SinkSpec[] = [fileSpec, mysqlSpec, oracleSpec, spoolSpec, jetstreamSpec, fanOutSpec];

/** The one list of destinations. Order: as the reference page shows them, then those of packages. */
export const sinkSpecs: readonly SinkSpec[] = known;

/** Those that packages bring (sinks/packages.ts), once, before any target is read. */
export function addSinkSpecs(specs: readonly SinkSpec[]): void {
  known.push(...specs);
}

export function findSinkSpec(type: string): SinkSpec | undefined {
  return sinkSpecs.find((spec) => spec.type === type);
}

type SinkObject = { readonly type: string } & Readonly<Record<string, unknown>>;

/** This `sink` object of a target, or its children where it has some. */
export function leavesOf(sink: SinkObject): readonly SinkObject[] {
  if (findSinkSpec(sink.type)?.fansOut !== true) return [sink];
  return Object.values(sink['sinks'] as Readonly<Record<string, { readonly sink: SinkObject }>>).map((child) => child.sink);
}

/** The streams that this `sink` object of a target writes into. */
export function streamsWritten(sink: SinkObject): readonly string[] {
  return leavesOf(sink).flatMap((leaf) => findSinkSpec(leaf.type)?.streams?.(leaf) ?? []);
}

import type { Parsed } from './problems.ts';

/** A parsed plan: the fields of the plan file with their defaults filled in. */
export interface ReplayPlan {
  readonly stream: string;
  readonly subject_filters: readonly string[];
  readonly durable_consumer: string;
  readonly start_sequence: number | null;
  readonly start_time: string | null;
  readonly end_sequence: number | null;
  readonly end_time: string | null;
  readonly max_messages: number;
  /** null: adaptive. */
  readonly batch_size: number | null;
  readonly batch_bytes: number;
  readonly stop_after_idle_seconds: number;
  readonly dry_run: boolean;
  readonly report_file: string | null;
  readonly rate_limit_per_second: number | null;
  readonly max_rejects: number;
  readonly keep_consumer: boolean;
  readonly production_consumer: string | null;
}

/** Takes the document, `{ "replay": { ... } }`. All problems at once. */
export function parsePlan(_document: unknown): Parsed<ReplayPlan> {
  throw new Error('not written yet');
}

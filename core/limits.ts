/** Limits of plan and target files, each once: schemas, reference pages and workflows read them here. No zod in this file. */

export const fileBytesMax = 1_048_576;
export const fileDepthMax = 64;
/** Stream and consumer names, in bytes of UTF-8; the server's own limit. */
export const nameBytesMax = 255;
/** Subjects and filters, in bytes of UTF-8; leaves room for the server's 4,096-byte protocol line. */
export const subjectBytesMax = 1_024;
export const subjectFiltersMax = 64;
export const reportFileBytesMax = 1_024;
export const jsonPointerBytesMax = 1_024;
/** Problems shown for one file; the rest is counted. */
export const problemsMax = 100;

export interface IntegerLimits {
  readonly min: number;
  readonly max: number;
}

export const planLimits = {
  sequence: { min: 1, max: Number.MAX_SAFE_INTEGER },
  offset: { min: 0, max: Number.MAX_SAFE_INTEGER - 1 },
  max_messages: { min: 1, max: 1_000_000_000 },
  batch_size: { min: 1, max: 10_000 },
  batch_bytes: { min: 64 * 1024, max: 64 * 1024 * 1024 },
  stop_after_idle_seconds: { min: 1, max: 3_600 },
  rate_limit_per_second: { min: 1, max: 1_000_000 },
  rate_limit_bytes_per_second: { min: 1_024, max: 10 * 1024 * 1024 * 1024 },
  pace_factor: { min: 0.001, max: 100_000 },
  pace_gap_seconds_max: { min: 1, max: 30 * 86_400 },
  approval_timeout_seconds: { min: 1, max: 30 * 86_400 },
  max_rejects: { min: 0, max: 1_000_000 },
} as const satisfies Record<string, IntegerLimits>;

export const planDefaults = {
  batch_bytes: 8 * 1024 * 1024,
  stop_after_idle_seconds: 5,
  dry_run: true,
  pace_factor: 1,
  pace_gap_seconds_max: 3_600,
  require_approval: false,
  approval_timeout_seconds: 86_400,
  max_rejects: 100,
  keep_consumer: false,
} as const;

export const drainDefaults = {
  dry_run: true,
  batch_size: 5_000,
  max_rejects: planDefaults.max_rejects,
} as const;

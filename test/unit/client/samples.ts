import { noCounts } from '../../../core/progress.ts';
import type { Report } from '../../../core/report.ts';

export function report(fields: Partial<Report> = {}): Report {
  return {
    schema_version: 1,
    state: 'completed',
    stop_reason: 'end_of_range',
    plan: {
      stream: 'ORDERS',
      durable_consumer: 'orders-replay',
      subject_families: ['orders.>'],
      max_messages: 10_000,
      window: null,
      fingerprint: '0123456789abcdef',
      resumed: false,
    },
    approval: null,
    sink: { type: 'file', key: 'stream_sequence', duplicates_safe: true, dead_letter: true },
    counts: noCounts,
    range: {
      incarnation: '2026-05-01T10:00:00.000000000Z',
      first: 1,
      last: 5_000,
      cursor: 5_001,
      count: 5_000,
      count_exact: true,
      bytes: 1_048_576,
      bytes_exact: false,
      not_reached: 0,
    },
    warnings: ['the plan has no end'],
    rejects: [{ sequence: 8, code: 'not_json' }] as unknown as Report['rejects'],
    rejects_not_listed: 0,
    batches: [],
    batches_not_listed: 0,
    timings: {
      started_at: '2026-05-01T10:00:00.000Z',
      ended_at: '2026-05-01T10:01:05.000Z',
      total_seconds: 65,
      pull_seconds: 1,
      write_seconds: 1,
      paused_seconds: 0,
      blocked_seconds: 0,
      records_per_second: 77,
    },
    ...fields,
  };
}

import { ReplayFault } from '../../core/errors.ts';
import type { FaultCode } from '../../core/errors.ts';
import type { Layout } from './columns.ts';

/** A finding of a preflight (`Finding` of sinks/sink.ts) that, when it is an error, is also what opening the sink fails with. */
export interface Judged {
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
  readonly next?: string;
  readonly code?: FaultCode;
}

export function faultOfFinding({ code, message }: Judged): ReplayFault {
  return new ReplayFault(code ?? 'sink_unfit', message);
}

/** What it means that a table does not tell which record a row is of. */
export function judgeOrigin(layout: Layout, mode: 'insert' | 'upsert'): Judged[] {
  if (layout.origin !== null) return [];
  const next =
    'Add columns for { "field": "incarnation" } and { "field": "sequence" } to the table and to "columns" of the target.';
  const message =
    mode === 'upsert'
      ? 'The table does not keep incarnation and sequence: a late writer can put an older state over a newer one, and every record counts as written.'
      : 'The table does not keep incarnation and sequence: another record with the same key counts as a duplicate.';
  return [{ severity: 'warning', message, next }];
}

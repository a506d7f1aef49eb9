import { ReplayFault } from 'durable-replay/sinks';
import type { FaultCode } from 'durable-replay/sinks';

/** By the beginning of SQLite's result code; the first that fits. */
const meanings: readonly (readonly [string, FaultCode])[] = [
  ['SQLITE_BUSY', 'sink_busy'],
  ['SQLITE_LOCKED', 'sink_busy'],
  ['SQLITE_FULL', 'sink_full'],
  ['SQLITE_READONLY_DBMOVED', 'sink_missing'],
  ['SQLITE_READONLY', 'sink_denied'],
  ['SQLITE_PERM', 'sink_denied'],
  ['SQLITE_CANTOPEN', 'sink_missing'],
  ['SQLITE_NOTADB', 'sink_unfit'],
  ['SQLITE_CORRUPT', 'sink_corrupt'],
  ['SQLITE_ERROR', 'sink_unfit'],
];

/** The message of the error stays behind: it may hold a path. */
export function asFault(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (error instanceof ReplayFault || !code.startsWith('SQLITE_')) return error;
  const meaning = meanings.find(([beginning]) => code.startsWith(beginning));
  return new ReplayFault(meaning?.[1] ?? 'unexpected', code);
}

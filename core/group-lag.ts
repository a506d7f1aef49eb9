import type { HotBounds } from './topic.ts';

export interface LagFacts {
  readonly nowMs: number;
  /** Of the first record that is not settled. */
  readonly appendedAtMs: number;
  /** Records from there to the end of the log. */
  readonly lag: number;
  /** Of the whole hot window. */
  readonly hotRecords: number;
  readonly hotBytes: number;
}

/**
 * Seconds until the first unsettled record leaves the hot window, if the group stands still and records come as fast as they
 * did since it was appended. 0: it may go with the next sweep.
 */
export function secondsToTruncation(facts: LagFacts, hot: HotBounds): number {
  const { nowMs, appendedAtMs, lag, hotRecords, hotBytes } = facts;
  const ageSeconds = Math.max(0, nowMs - appendedAtMs) / 1_000;
  const byAge = hot.maxAgeSeconds - ageSeconds;
  const perSecond = lag / Math.max(ageSeconds, 1);
  const byCount = (hot.maxRecords - lag) / perSecond;
  const recordBytes = hotRecords === 0 ? 0 : hotBytes / hotRecords;
  const byBytes = recordBytes === 0 ? Infinity : (hot.maxBytes / recordBytes - lag) / perSecond;
  return Math.max(0, Math.round(Math.min(byAge, byCount, byBytes)));
}

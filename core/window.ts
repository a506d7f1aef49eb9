import { durationSeconds } from './duration.ts';
import type { ReplayPlan } from './plan.ts';
import { formatTime } from './time.ts';

/** A window stands in a plan instead of a start and an end: what a plan that runs again and again replays each time. */

/** From where the last successful run of the same Schedule stopped. */
const sinceLastSuccess = 'since_last_success';
/** Seconds; a year and a day. */
const windowSecondsMax = 366 * 86_400;
const expected = `expected "${sinceLastSuccess}", or a length of time up to 366d such as "90m", "24h" or "7d"`;

export function windowProblem(text: string): string | undefined {
  if (text === sinceLastSuccess) return undefined;
  const seconds = durationSeconds(text);
  if (seconds === null) return `is no window; ${expected}`;
  return seconds > windowSecondsMax ? `is too long; ${expected}` : undefined;
}

/** Where a successful run stopped: the next sequence of that incarnation of the stream. */
export interface LastSuccess {
  readonly incarnation: string;
  readonly cursor: number;
}

/** When a run is due, and what ran before it. */
export interface Occasion {
  /** Nanoseconds since the epoch: the time for which a Schedule meant this run, else its start. The window ends there. */
  readonly atNanos: bigint;
  /** null: nothing of the same Schedule has succeeded yet. */
  readonly lastSuccess: LastSuccess | null;
}

/** The plan with the boundaries that its window means now; it still says which window. Without a window, the plan itself. */
export function boundWindow(
  plan: ReplayPlan,
  { atNanos, lastSuccess }: Occasion,
  stream: { readonly incarnation: string; readonly firstSequence: number },
): ReplayPlan {
  if (plan.window === null) return plan;
  const end_time = formatTime(atNanos);
  const seconds = durationSeconds(plan.window);
  if (seconds !== null) {
    const startNanos = atNanos - BigInt(seconds) * 1_000_000_000n;
    return { ...plan, start_time: formatTime(startNanos > 0n ? startNanos : 0n), end_time };
  }
  const known = lastSuccess !== null && lastSuccess.incarnation === stream.incarnation;
  return { ...plan, start_sequence: known ? lastSuccess.cursor : Math.max(1, stream.firstSequence), end_time };
}

/**
 * Where a run begins that takes over from an unfinished one whose floor is `resumeAt` (null: there is none). Boundaries of the
 * same plan are the same, so that it goes on at the floor. Those of a window move: what lies between the floor and the window
 * is still owed, and what lies before the floor may belong to this window alone.
 */
export function beginning(plan: ReplayPlan, first: number, resumeAt: number | null): number {
  if (resumeAt === null) return first;
  return plan.window === null ? Math.max(first, resumeAt) : Math.min(first, resumeAt);
}

/** What the result of an earlier run says; null for anything that is not a report. */
export function lastSuccessOf(result: unknown): LastSuccess | null {
  const range: unknown = typeof result === 'object' && result !== null && 'range' in result ? result.range : null;
  if (typeof range !== 'object' || range === null || !('incarnation' in range) || !('cursor' in range)) return null;
  const { incarnation, cursor } = range;
  return typeof incarnation === 'string' && typeof cursor === 'number' ? { incarnation, cursor } : null;
}

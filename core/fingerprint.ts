import type { ReplayPlan } from './plan.ts';
import type { ReplayTarget } from './target.ts';
import { formatTime, timeNanos } from './time.ts';

/**
 * Canonical text of what makes a replay the same replay: stream, scope, boundaries, durable, sink and key. Its hash is the
 * fingerprint. Pace, limits, reporting and the dead-letter subject are left out: they may change between an interrupted run
 * and the one that goes on. Secrets are in it by name only, since a target holds nothing else.
 */
export function fingerprintText(plan: ReplayPlan, target: ReplayTarget): string {
  return JSON.stringify({
    version: 1,
    stream: plan.stream,
    subject_filters: plan.subject_filters.toSorted(byCodeUnits),
    durable_consumer: plan.durable_consumer,
    ...(plan.from == null ? {} : { from: typeof plan.from === 'string' ? startOf(plan.from) : sorted(plan.from) }),
    // The boundaries of a window move from run to run of the same replay.
    ...(plan.window === null ? boundaries(plan) : { window: plan.window }),
    sink: sorted(target.sink),
    key: target.idempotency.key,
    field: target.idempotency.field,
  });
}

function boundaries(plan: ReplayPlan): object {
  return {
    start_sequence: plan.start_sequence,
    start_time: sameInstant(plan.start_time),
    end_sequence: plan.end_sequence,
    end_time: sameInstant(plan.end_time),
  };
}

function startOf(from: string): string | null {
  return from === 'earliest' ? from : sameInstant(from);
}

function sameInstant(time: string | null): string | null {
  return time === null ? null : formatTime(timeNanos(time));
}

/** Objects with their keys in order, so that the order in a file does not matter. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => byCodeUnits(a, b))
      .map(([key, item]) => [key, sorted(item)]),
  );
}

function byCodeUnits(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

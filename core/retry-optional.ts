import type { ChildTally } from './children.ts';
import { nameBytesMax } from './limits.ts';
import type { ReplayPlan } from './plan.ts';
import type { ReplayRequest } from './steps.ts';
import type { ReplayTarget } from './target.ts';

/**
 * The replay that brings an optional child of a fan-out what it missed: from the first to the last record of that, routed as
 * before, into that child alone. The child is then required: what it refuses becomes a dead letter.
 */
export function retryRequest(
  { plan, target }: { readonly plan: ReplayPlan; readonly target: ReplayTarget },
  { name, missing }: ChildTally,
  dryRun: boolean,
): ReplayRequest {
  const [first, last] = [missing[0]![0], missing.at(-1)![1]];
  const { stream, subject_filters, batch_size, batch_bytes, max_rejects, production_consumer } = plan;
  const { rate_limit_per_second, rate_limit_bytes_per_second, allowed_hours } = plan;
  return {
    plan: {
      replay: {
        stream,
        subject_filters,
        durable_consumer: durableOf(plan.durable_consumer, `-retry-${name}`),
        start_sequence: first,
        end_sequence: last,
        max_messages: Math.min(last - first + 1, 1_000_000_000),
        batch_size,
        batch_bytes,
        rate_limit_per_second,
        rate_limit_bytes_per_second,
        allowed_hours,
        max_rejects,
        production_consumer,
        dry_run: dryRun,
      },
    },
    target: { ...target, sink: { ...target.sink, only: name } },
  };
}

/** No longer than the server allows. */
function durableOf(durable: string, suffix: string): string {
  const characters = [...durable];
  const bytes = () => new TextEncoder().encode(characters.join('') + suffix).length;
  while (bytes() > nameBytesMax) characters.pop();
  return characters.join('') + suffix;
}

import { groupDigits } from '../core/problems.ts';
import type { CheckedRequest } from './request.ts';

/** One line for Temporal's list of workflows. No address, path or value of a secret: Temporal keeps it. */
export function startSummary({ plan, target, request }: CheckedRequest): string {
  return `${plan.dry_run ? 'Dry run' : 'Replay'} of ${plan.stream} into ${target?.sink.type ?? `target ${String(request.target)}`}`;
}

/** Markdown, lists only: Temporal's UI does not draw tables. */
export function startDetails({ plan, target, request }: CheckedRequest): string {
  return [
    `- stream \`${plan.stream}\`, ${plan.subject_filters.map((filter) => `\`${filter}\``).join(', ')}`,
    `- ${rangeText(plan)}, at most ${groupDigits(plan.max_messages)} messages`,
    `- durable consumer \`${plan.durable_consumer}\``,
    target === null
      ? `- target \`${String(request.target)}\` of the worker`
      : `- sink ${target.sink.type}, idempotency key ${target.idempotency.key}, dead letters ${target.dead_letter === null ? 'none' : `to \`${target.dead_letter.subject}\``}`,
    `- ${plan.dry_run ? 'dry run: nothing is written' : plan.require_approval ? 'execution, once somebody approves' : 'execution'}`,
  ].join('\n');
}

function rangeText(plan: CheckedRequest['plan']): string {
  if (plan.window !== null) return `window ${plan.window}, up to when the run is due`;
  const start = plan.start_sequence === null ? `time ${plan.start_time}` : `sequence ${plan.start_sequence}`;
  const ends = [
    plan.end_sequence === null ? null : `sequence ${plan.end_sequence}`,
    plan.end_time === null ? null : `time ${plan.end_time}`,
  ].filter((end) => end !== null);
  return `from ${start} ${ends.length === 0 ? 'to the end of the stream' : `to ${ends.join(' or ')}`}`;
}

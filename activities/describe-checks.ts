import { Context } from '@temporalio/activity';
import type { Problem } from '../core/problems.ts';
import type { DescribeRequest } from '../core/steps.ts';
import type { ReplayTarget } from '../core/target.ts';
import type { ConsumerFacts } from '../jetstream/source.ts';
import type { Deps } from './deps.ts';

/** What is looked at before any run, whatever it reads. */

/** Below this a dead letter that is stored twice by a late retry may count as two. */
const duplicateWindowMsMin = 10 * 60_000;

export function checkCertified({ targets }: Deps, { sink }: ReplayTarget): Problem[] {
  const lacking = targets.uncertified(sink);
  if (lacking === null) return [];
  const { type, mode } = lacking;
  const message = `the sink "${type}" has no certification for its mode "${mode}"; certify it (docs/certification.md), then start again`;
  return [{ path: 'sink.type', message }];
}

/** Why this run may not take the durable over; null: it may. */
export async function objectionTo(
  { owner }: ConsumerFacts,
  asking: {
    readonly runs: Deps['runs'];
    readonly request: DescribeRequest;
    readonly fingerprint: string;
    readonly cluster: string;
  },
): Promise<string | null> {
  const { runs, request, fingerprint, cluster } = asking;
  if (owner === null) return 'is a consumer that no replay made; choose another name';
  if (owner.cluster !== cluster || owner.namespace !== runs.namespace) {
    return `belongs to a replay of another Temporal cluster or namespace ("${owner.namespace}"); cancel it there, or choose another name`;
  }
  const self =
    owner.workflowId === Context.current().info.workflowExecution?.workflowId && owner.firstRunId === request.firstRunId;
  if (!self && (await runs.isOpen(owner))) {
    return `belongs to the running replay "${owner.workflowId}"; wait for it, cancel it, or choose another name`;
  }
  if (owner.fingerprint !== fingerprint) {
    return 'belongs to an unfinished replay of another plan or target; start that plan again to finish it, delete the consumer, or choose another name';
  }
  return null;
}

export async function checkDeadLetter({ source }: Deps, target: ReplayTarget): Promise<Problem[]> {
  if (target.dead_letter === null || (await source.isBound(target.dead_letter.subject))) return [];
  return [
    {
      path: 'dead_letter.subject',
      message: `no stream takes "${target.dead_letter.subject}"; create one, for example: nats stream add DLQ --subjects "${target.dead_letter.subject}" --defaults --dupe-window 1h`,
    },
  ];
}

export async function deadLetterWarnings({ source }: Deps, { dead_letter: letter }: ReplayTarget): Promise<string[]> {
  if (letter === null) return ['No dead letter is configured: the first record the sink refuses blocks the plan.'];
  const windowMs = await source.duplicateWindowMs(letter.subject);
  if (windowMs === null || windowMs >= duplicateWindowMsMin) return [];
  return [
    `The dead-letter stream forgets message ids after ${windowMs / 1_000} s: a late retry may store a dead letter twice (same Replay-Id). Ten minutes or more are better.`,
  ];
}

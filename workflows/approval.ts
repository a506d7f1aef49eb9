import { ApplicationFailure, condition, setHandler } from '@temporalio/workflow';
import { approvalProblem, type Approval, type Approved, type AwaitedApproval } from '../core/approval.ts';
import type { Rehearsal, Rehearsed } from '../core/description.ts';
import { formatProblems, type Problem } from '../core/problems.ts';
import { isoTime } from '../core/report.ts';
import { approveUpdate } from './messages.ts';

/** Where an approval is given and judged. Lives as long as one workflow run. */
export interface ApprovalDesk {
  /** null: nothing awaits an approval just now. */
  awaited: AwaitedApproval | null;
  /** Given, and being judged. */
  given: { readonly approval: Approved; answer: 'taken' | { readonly refused: string } | null } | null;
}

export function createApprovalDesk(): ApprovalDesk {
  return { awaited: null, given: null };
}

export function handleApproval(desk: ApprovalDesk): void {
  setHandler(
    approveUpdate,
    async ({ by, reason, fingerprint }: Approval) => {
      const given: NonNullable<ApprovalDesk['given']> = {
        approval: { by, reason, fingerprint, at: isoTime(Date.now()) },
        answer: null,
      };
      desk.given = given;
      desk.awaited = null;
      await condition(() => given.answer !== null);
      if (given.answer !== null && given.answer !== 'taken')
        throw ApplicationFailure.nonRetryable(given.answer.refused, 'ApprovalRefused');
      return given.approval;
    },
    {
      description:
        'Approve what was rehearsed, with the fingerprint that Current Details shows: {"by":"ann","reason":"INC-42","fingerprint":"0123456789abcdef"}. Refused when something has changed since.',
      validator: (input: Approval | undefined) => {
        const problem = approvalProblem(input, desk.awaited);
        if (problem !== null) throw ApplicationFailure.nonRetryable(problem, 'InvalidApproval');
      },
    },
  );
}

interface Waiting {
  /** Looks anew at stream and destination. */
  readonly rehearse: () => Promise<Rehearsed>;
  readonly show: (rehearsal: Rehearsal) => void;
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number;
}

/** What was approved, as it stands at the approval; null: nobody approved in time. */
export async function untilApproved(
  desk: ApprovalDesk,
  rehearsal: Rehearsal,
  { rehearse, show, deadlineMs }: Waiting,
): Promise<{ readonly rehearsal: Rehearsal; readonly approved: Approved } | null> {
  for (let latest = rehearsal; ;) {
    putUp(desk, awaitedOf(latest, deadlineMs));
    show(latest);
    const inTime = await condition(() => desk.given !== null, Math.max(1, deadlineMs - Date.now()));
    const { given } = desk;
    desk.awaited = null;
    if (!inTime || given === null) return null;
    const now = await rehearse();
    if (now.kind === 'rehearsed' && now.fingerprint === given.approval.fingerprint) {
      given.answer = 'taken';
      return { rehearsal: now, approved: given.approval };
    }
    given.answer = { refused: now.kind === 'refused' ? refusedText(now.problems) : driftText };
    if (now.kind === 'rehearsed') latest = now;
  }
}

function putUp(desk: ApprovalDesk, awaited: AwaitedApproval): void {
  desk.awaited = awaited;
  desk.given = null;
}

const driftText =
  'Not approved: the stream, the target or the destination has changed since the rehearsal. It was rehearsed anew; look at what it found now, and approve that with its fingerprint.';

function refusedText(problems: readonly Problem[]): string {
  return `Not approved: the plan would be refused now. Mend this, then approve again.\n${formatProblems(problems)}`;
}

function awaitedOf({ fingerprint, description, preflight }: Rehearsal, deadlineMs: number): AwaitedApproval {
  const { messages, bytes, exact } = description.count;
  return { fingerprint, expires_at: isoTime(deadlineMs), messages, bytes, exact: exact.messages, preflight };
}

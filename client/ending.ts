import { CancelledFailure, WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, TerminatedFailure, TimeoutFailure } from '@temporalio/common';
import { isFaultCode, ReplayFault } from '../core/errors.ts';
import type { Problem } from '../core/problems.ts';
import type { Report } from '../core/report.ts';
import { refusedFailure } from '../workflows/messages.ts';
import { exitOfReport, exitStatus, type ExitStatus } from './exit.ts';

/** How a run ended. */
export interface ReplayResult {
  readonly state: 'completed' | 'rehearsed' | 'canceled' | 'failed' | 'refused';
  /** null: refused before there was anything to report, or out of reach just now (no worker answers). */
  readonly report: Report | null;
  readonly exit: ExitStatus;
  /** What went wrong, one problem a line; null: nothing did. */
  readonly message: string | null;
  readonly problems: readonly Problem[];
  /** The named fault behind a failure, where there is one. */
  readonly fault: ReplayFault | null;
}

/** A completed run. */
export function completed(report: Report): ReplayResult {
  const state = report.state === 'rehearsed' ? 'rehearsed' : 'completed';
  return { state, report, exit: exitOfReport(report), message: null, problems: [], fault: null };
}

/** A run that ended otherwise, without its report yet. Throws what is not the end of a run. */
export function endedOtherwise(error: unknown): ReplayResult {
  if (!(error instanceof WorkflowFailedError)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) {
    return { state: 'canceled', report: null, exit: exitStatus('canceled'), message: null, problems: [], fault: null };
  }
  if (cause instanceof ApplicationFailure && cause.type === refusedFailure) {
    return {
      state: 'refused',
      report: null,
      exit: exitStatus('refused'),
      message: cause.message,
      problems: problemsOf(cause.details?.[0]),
      fault: null,
    };
  }
  return {
    state: 'failed',
    report: null,
    exit: exitStatus('failed'),
    message: failedMessage(cause),
    problems: [],
    fault: faultBehind(cause),
  };
}

/** The query `report` of a run that was ended from outside still says what the run itself last knew. */
export function withReport(result: ReplayResult, report: Report | null): ReplayResult {
  if (report === null || result.state === 'refused') return result;
  const state = result.state === 'rehearsed' ? 'completed' : result.state;
  const stopReason = result.state === 'failed' ? 'failed' : (report.stop_reason ?? 'canceled');
  return { ...result, report: { ...report, state, stop_reason: stopReason } };
}

function failedMessage(cause: Error | undefined): string {
  if (cause instanceof TerminatedFailure) {
    return `The replay was terminated (${cause.message}). The same plan started again goes on where it stopped.`;
  }
  if (cause instanceof TimeoutFailure)
    return 'The replay ran into a time limit of its workflow. The same plan started again goes on where it stopped.';
  return `The replay failed: ${innermost(cause)?.message ?? 'Temporal gives no reason; see its UI.'}`;
}

function innermost(cause: Error | undefined): Error | undefined {
  let at = cause;
  while (at?.cause instanceof Error) at = at.cause;
  return at;
}

function faultBehind(cause: Error | undefined): ReplayFault | null {
  for (let at: unknown = cause; at instanceof Error; at = at.cause) {
    if (!(at instanceof ApplicationFailure) || at.type == null || !isFaultCode(at.type)) continue;
    const detail: unknown = at.details?.[0];
    return new ReplayFault(at.type, typeof detail === 'string' ? detail : undefined, { cause: at });
  }
  return null;
}

function problemsOf(detail: unknown): readonly Problem[] {
  return Array.isArray(detail) ? (detail as readonly Problem[]) : [];
}

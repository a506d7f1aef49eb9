import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity';
import { ReplayFault } from '../core/errors.ts';
import type { Log } from './deps.ts';

/**
 * Turns what an effect threw into what the workflow reads: the failure's type is the fault's code, its only detail is the
 * fault's detail. `stop` faults are not retried. A cancelled step reports its cancellation, whatever the effect threw when
 * its signal aborted. Causes go to the worker's log only: a driver's text may hold values of records.
 */
export function asFailure(error: unknown, log: Log): Error {
  const { cancellationSignal, info } = Context.current();
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return error;
  if (cancellationSignal.aborted) return asCancellation(cancellationSignal.reason);
  const fault = error instanceof ReplayFault ? error : new ReplayFault('unexpected', undefined, { cause: error });
  const { activityType, attempt, workflowExecution } = info;
  const fields = {
    code: fault.code,
    step: activityType,
    attempt,
    workflow: workflowExecution?.workflowId,
    error: fault.cause ?? fault,
  };
  if (attempt === 1) log.warn(fields, `step failed: ${fault.message}`);
  return ApplicationFailure.create({
    message: fault.message,
    type: fault.code,
    details: [fault.detail ?? null],
    nonRetryable: fault.kind === 'stop',
  });
}

function asCancellation(reason: unknown): Error {
  return reason instanceof Error ? reason : new CancelledFailure('CANCELLED');
}

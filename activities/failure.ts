import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity';
import { ReplayFault } from '../core/errors.ts';
import { stepOf, type FaultLog } from './fault-log.ts';

/**
 * Turns what an effect threw into what the workflow reads: the failure's type is the fault's code, its only detail is the
 * fault's detail. `stop` faults are not retried. A cancelled step reports its cancellation, whatever the effect threw when
 * its signal aborted. Causes go to the worker's log only: a driver's text may hold values of records.
 */
export function asFailure(error: unknown, faults: FaultLog): Error {
  const { cancellationSignal, info } = Context.current();
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return error;
  if (cancellationSignal.aborted) return asCancellation(cancellationSignal.reason);
  const fault = error instanceof ReplayFault ? error : new ReplayFault('unexpected', undefined, { cause: error });
  faults.failed(stepOf(info), fault);
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

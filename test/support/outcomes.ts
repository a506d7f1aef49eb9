import { ReplayFault } from '../../core/errors.ts';
import type { Outcome } from '../../core/record.ts';

/** `written`, `duplicate`, or the code of the reject with its field. */
export function inWords(outcomes: readonly Outcome[]): string[] {
  return outcomes.map((outcome) =>
    outcome.kind === 'rejected'
      ? [outcome.code, ...(outcome.field === undefined ? [] : [outcome.field])].join(' ')
      : outcome.kind,
  );
}

/** Code of the fault that it ends with. */
export async function faultCode(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ReplayFault) return error.code;
    throw error;
  }
  return 'no fault';
}

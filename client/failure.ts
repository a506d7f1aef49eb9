import { faultEntry, ReplayFault } from '../core/errors.ts';
import { exitStatus, type ExitName, type ExitStatus } from './exit.ts';

/** Ends a command with a message for a person (what, where, what next) and an exit status. */
export class CommandFailure extends Error {
  readonly exit: ExitStatus;

  constructor(message: string, exit: ExitName = 'failed', options?: ErrorOptions) {
    super(message, options);
    this.name = 'CommandFailure';
    this.exit = exitStatus(exit);
  }
}

export function failureExit(error: unknown): ExitStatus {
  return error instanceof CommandFailure ? error.exit : exitStatus('failed');
}

/** Stack traces are for those who develop: only with `debug`. */
export function failureText(error: unknown, logLevel: string | undefined): string {
  if (logLevel === 'debug' && error instanceof Error) return stackWithCauses(error);
  if (error instanceof ReplayFault) return `${error.message} ${faultEntry(error.code).next}`;
  if (error instanceof Error && error.message !== '') return error.message;
  return `An unexpected fault (${error instanceof Error ? error.name : String(error)}). REPLAY_LOG_LEVEL=debug shows where it came from.`;
}

const causesMax = 5;

function stackWithCauses(error: Error): string {
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length < causesMax; at = at.cause)
    stacks.push(at.stack ?? at.message);
  return stacks.join('\ncaused by: ');
}

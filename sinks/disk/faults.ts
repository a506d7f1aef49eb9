import { ReplayFault } from '../../core/errors.ts';
import type { FaultCode } from '../../core/errors.ts';

const CODES: Readonly<Record<string, FaultCode>> = {
  ENOSPC: 'sink_full',
  EDQUOT: 'sink_full',
  EFBIG: 'sink_full',
  EROFS: 'sink_denied',
  EACCES: 'sink_denied',
  EPERM: 'sink_denied',
  ELOOP: 'sink_denied',
  ENOENT: 'sink_missing',
  ENOTDIR: 'sink_missing',
};

/** The name of an operating system error (`ENOSPC`); undefined for all else. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('syscall' in error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Turns an operating system error into a fault; the message of the error stays behind because it holds a path. */
export function asFault(error: unknown): unknown {
  const errno = errnoOf(error);
  return errno === undefined ? error : new ReplayFault(CODES[errno] ?? 'unexpected', errno);
}

/** Whether the error says that there was no room: nothing else is wrong with what is already there. */
export function isNoRoom(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno !== undefined && CODES[errno] === 'sink_full';
}

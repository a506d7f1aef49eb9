import { faultEntry, type ReplayFault } from '../../../core/errors.ts';
import { TopicError, type TopicErrorCode } from '../../../core/topic-errors.ts';
import type { ExitName } from '../../exit.ts';

export function errorText(error: TopicError | ReplayFault): string {
  return `${error.message} ${error instanceof TopicError ? error.next : faultEntry(error.code).next}`;
}

export function errorJson(error: TopicError | ReplayFault): object {
  const nextReadable = error instanceof TopicError ? error.nextReadable : undefined;
  return { code: error.code, message: error.message, ...(nextReadable === undefined ? {} : { nextReadable }) };
}

const notReadable: readonly TopicErrorCode[] = ['truncated', 'gap', 'out_of_range'];
const failures: readonly TopicErrorCode[] = ['topic_broken', 'group_corrupt', 'group_contended', 'group_uncertain'];

export function exitOf(code: TopicErrorCode): ExitName {
  if (notReadable.includes(code)) return 'rejects';
  return failures.includes(code) ? 'failed' : 'refused';
}

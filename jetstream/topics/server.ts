import { TopicError } from '../../core/topic-errors.ts';
import type { Link } from '../link.ts';

/** Older ones have no atomic batches, or wiped whole streams on a purge up to sequence 1. */
const minimum = [2, 14, 2] as const;

/** Throws `server_too_old`. */
export function assertTopicServer(link: Link): void {
  const version = link.nc.info?.version ?? '';
  if (!isNewEnough(version)) throw new TopicError('server_too_old', version === '' ? undefined : `this one is ${version}`);
}

export function isNewEnough(version: string): boolean {
  const parts = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number) ?? [];
  if (parts.length === 0) return false;
  const differs = minimum.findIndex((part, i) => parts[i] !== part);
  return differs < 0 || parts[differs]! > minimum[differs]!;
}

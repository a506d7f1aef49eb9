import type { ReplayRecord } from '../../core/record.ts';
import type { SpoolConfig } from './config.ts';

/** From 0, the most urgent, to 9. */
const PRIORITY_DEFAULT = 4;

const words: Readonly<Record<string, number>> = { urgent: 0, high: 2, normal: 4, low: 6, routine: 8 };

/** All the same in a spool that is drained oldest first. */
export function priorityOf(
  record: ReplayRecord,
  { order, priority_header: header }: Pick<SpoolConfig, 'order' | 'priority_header'>,
): number {
  return order === 'fifo' ? PRIORITY_DEFAULT : readPriority(valueOf(record, header));
}

export function readPriority(value: string | undefined): number {
  const word = value?.trim().toLowerCase() ?? '';
  if (/^[0-9]$/.test(word)) return Number(word);
  return Object.hasOwn(words, word) ? words[word]! : PRIORITY_DEFAULT;
}

function valueOf({ headers }: ReplayRecord, name: string): string | undefined {
  const exact = headers.get(name)?.[0];
  if (exact !== undefined) return exact;
  const wanted = name.toLowerCase();
  for (const [other, values] of headers) if (other.toLowerCase() === wanted) return values[0];
  return undefined;
}

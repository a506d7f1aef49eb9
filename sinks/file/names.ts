import { randomUUID } from 'node:crypto';

/**
 * What lies in a directory of the file sink:
 *
 *   00000002-000001.jsonl[.gz]   segment: epoch, then number within the epoch, so that names sort in write order
 *   .index/00000002.claim        says that epoch 2 was begun; made exclusively
 *   .index/00000002.journal      which sequences are in, and which bytes of which segment are theirs
 *   .index/00000002-*.tmp        a journal or the cut copy of a segment before it is renamed into place
 *
 * Nothing but segments has `.jsonl` in its name. Other files are not ours and are left alone.
 */
export const INDEX_FOLDER = '.index';
export const SEGMENT_SUFFIXES = { none: '.jsonl', gzip: '.jsonl.gz' } as const;

const EPOCH_DIGITS = 8;
const SEGMENT_DIGITS = 6;
export const EPOCH_MAX = 10 ** EPOCH_DIGITS - 1;
export const SEGMENT_NUMBER_MAX = 10 ** SEGMENT_DIGITS - 1;

export function segmentName(epoch: number, number: number, compression: keyof typeof SEGMENT_SUFFIXES): string {
  return `${pad(epoch)}-${String(number).padStart(SEGMENT_DIGITS, '0')}${SEGMENT_SUFFIXES[compression]}`;
}

export function claimName(epoch: number): string {
  return `${pad(epoch)}.claim`;
}

export function journalName(epoch: number): string {
  return `${pad(epoch)}.journal`;
}

/** Never the same twice: what a crash left must not be in the way. */
export function temporaryName(epoch: number): string {
  return `${pad(epoch)}-${randomUUID().replaceAll('-', '')}.tmp`;
}

const OURS = /^(?<epoch>\d{8})(?<rest>-\d{6}\.jsonl(\.gz)?|\.claim|\.journal|-[0-9a-z]+\.tmp)$/;

/** null: not one of ours. */
export function parseName(name: string): { kind: 'segment' | 'claim' | 'journal' | 'temporary'; epoch: number } | null {
  const groups = OURS.exec(name)?.groups;
  if (groups === undefined) return null;
  const rest = groups['rest']!;
  const epoch = Number(groups['epoch']);
  if (rest === '.claim') return { kind: 'claim', epoch };
  if (rest === '.journal') return { kind: 'journal', epoch };
  return { kind: rest.endsWith('.tmp') ? 'temporary' : 'segment', epoch };
}

function pad(epoch: number): string {
  return String(epoch).padStart(EPOCH_DIGITS, '0');
}

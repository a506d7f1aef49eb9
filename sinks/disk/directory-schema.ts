import { ruledText } from '../../core/schema.ts';

/** What file systems allow for one name, in bytes of UTF-8. */
const NAME_BYTES_MAX = 255;
const DIRECTORY_BYTES_MAX = 1_024;

/** A directory below the data root of the worker, as a target names it. */
export const directorySchema = ruledText(directoryProblem);

function directoryProblem(directory: string): string | undefined {
  const wrong = directoryFault(directory);
  return wrong && `${wrong}; expected a directory relative to the data root, such as orders/2026-05`;
}

function directoryFault(directory: string): string | undefined {
  if (directory === '') return 'is empty';
  if (directory.startsWith('/')) return 'is absolute';
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\\]/u.test(directory)) return 'has a control character or a backslash';
  if (utf8Bytes(directory) > DIRECTORY_BYTES_MAX) return `is longer than ${DIRECTORY_BYTES_MAX} bytes`;
  for (const name of directory.split('/')) {
    if (name === '') return 'has an empty part';
    if (name.startsWith('.')) return 'has a part that begins with a dot';
    if (name.trim() !== name) return 'has a part that begins or ends with a space';
    if (utf8Bytes(name) > NAME_BYTES_MAX) return `has a part longer than ${NAME_BYTES_MAX} bytes`;
  }
  return undefined;
}

function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

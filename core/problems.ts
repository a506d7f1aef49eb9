import { problemsMax } from './limits.ts';

/** One thing wrong with a plan, a target or their surroundings. `path` as the user writes it: `replay.start_sequence`. */
export interface Problem {
  readonly path: string;
  readonly message: string;
}

export type Parsed<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: readonly Problem[] };

/** Keys and list indexes from the root of a file down to a value. */
export type Path = readonly (string | number)[];

/** One problem a line: the form in which the CLI, Temporal's UI and the worker's log show them. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map((problem) => (problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`)).join('\n');
}

export function problemAt(path: Path, message: string): Problem {
  return { path: formatPath(path), message };
}

/** Without repetitions, and no more than `problemsMax`: a file of a megabyte can hold a hundred thousand mistakes. */
export function boundedProblems(problems: readonly Problem[]): Problem[] {
  const unique = [...new Map(problems.map((problem) => [JSON.stringify([problem.path, problem.message]), problem])).values()];
  if (unique.length <= problemsMax) return unique;
  return [
    ...unique.slice(0, problemsMax),
    { path: '', message: 'there are more problems; they are shown once these are mended' },
  ];
}

/** `replay.subject_filters[2]`; a key that is not a plain name stands in brackets and quotes. */
export function formatPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (!/^[A-Za-z_$][\w$-]*$/.test(step) || step.length > shownCharactersMax) text += `[${quoted(step)}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}

/** A value as a message may show it: one line, short, nothing unprintable. Never for a field that can hold a secret. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'bigint' || typeof value === 'number') return cut(String(value));
  if (typeof value === 'boolean' || value === null) return String(value);
  return kindOf(value);
}

/** What kind of value it is, without showing it. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${groupDigits(value.length)}`;
  switch (typeof value) {
    case 'string':
      return value === '' ? 'an empty string' : 'a string';
    case 'number':
    case 'bigint':
      return 'a number';
    case 'boolean':
      return String(value);
    case 'object':
      return 'an object';
    default:
      return 'nothing';
  }
}

/** `a`, `a or b`, `a, b or c`. */
export function anyOf(words: readonly string[]): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

/** 1,048,576 */
export function groupDigits(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `1 record`, `2,000 records` */
export function counted(count: number, noun: string): string {
  return `${groupDigits(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** The known name that a mistyped one most likely means. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > shownCharactersMax) return undefined;
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(plain(name), plain(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  if (best === undefined) return undefined;
  return best.distance <= Math.max(1, Math.floor(best.candidate.length / 4)) ? best.candidate : undefined;
}

const shownCharactersMax = 60;

function cut(text: string): string {
  const characters = [...text.slice(0, 4 * shownCharactersMax)];
  return characters.length > shownCharactersMax ? `${characters.slice(0, shownCharactersMax).join('')}…` : text;
}

function quoted(text: string): string {
  return JSON.stringify(cut(text)).replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    const hex = character.codePointAt(0)!.toString(16);
    return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`;
  });
}

/** Letters to insert, drop, replace or swap with their neighbour. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const replaced = rows[row - 1]![column - 1]! + (same ? 0 : 1);
      const dropped = rows[row - 1]![column]! + 1;
      const inserted = current[column - 1]! + 1;
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = isSwap ? rows[row - 2]![column - 2]! + 1 : replaced;
      current.push(Math.min(replaced, dropped, inserted, swapped));
    }
    rows.push(current);
  }
  return rows[a.length]![b.length]!;
}

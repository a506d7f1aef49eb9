/**
 * Names as Oracle reads them: without quotes they mean upper case, in double quotes exactly what stands there. Statements
 * always quote, so that reserved words do no harm.
 */

const NAME_BYTES_MAX = 128;
/** Of names that need no quotes: a letter, then letters, digits, _ $ #. */
const plain = /^\p{L}[\p{L}\p{N}_$#]*$/u;
const expected =
  'expected 1 to 128 bytes: a letter, then letters, digits, _ $ or # (taken as upper case), or anything in double quotes (taken exactly)';

/** What is wrong with a name as a target writes it. */
export function nameProblem(name: string): string | undefined {
  const exact = unquoted(name);
  if (name === '' || exact === '') return `is empty; ${expected}`;
  if (exact === null && !plain.test(name)) return `has a character that needs double quotes; ${expected}`;
  if (exact !== null && /["\p{Cc}\p{Cs}]/u.test(exact)) return `has a quote or an unprintable character within; ${expected}`;
  return Buffer.byteLength(foldName(name)) > NAME_BYTES_MAX ? `is longer than 128 bytes; ${expected}` : undefined;
}

/** The name that the database keeps. */
export function foldName(name: string): string {
  return unquoted(name) ?? name.toUpperCase();
}

/** `ORDERS` becomes `"ORDERS"`. */
export function quoteName(folded: string): string {
  return `"${folded}"`;
}

export interface TableName {
  /** null: the current schema of the user. */
  readonly schema: string | null;
  readonly table: string;
}

/** What is wrong with `table` or `schema.table` as a target writes it. */
export function tableProblem(text: string): string | undefined {
  const parts = splitTable(text);
  if (parts.length > 2) return 'has more than one dot; expected table or schema.table';
  return parts.map(nameProblem).find((problem) => problem !== undefined);
}

/** Of a text without problems. */
export function parseTable(text: string): TableName {
  const parts = splitTable(text).map(foldName);
  return { schema: parts.length === 2 ? parts[0]! : null, table: parts.at(-1)! };
}

export function quoteTable({ schema, table }: TableName): string {
  return schema === null ? quoteName(table) : `${quoteName(schema)}.${quoteName(table)}`;
}

/** At the dots outside quotes. */
function splitTable(text: string): string[] {
  const parts = [''];
  let inQuotes = false;
  for (const character of text) {
    if (character === '"') inQuotes = !inQuotes;
    if (character === '.' && !inQuotes) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts;
}

function unquoted(name: string): string | null {
  return name.length >= 2 && name.startsWith('"') && name.endsWith('"') ? name.slice(1, -1) : null;
}

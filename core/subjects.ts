/** NATS subjects: tokens separated by dots; in a filter `*` stands for one token and a last `>` for one or more. */
import { nameBytesMax, subjectBytesMax } from './limits.ts';
import { groupDigits } from './problems.ts';

// Unassigned and private characters are left to the server; what breaks a protocol line, a terminal or a path is not.
const unsafe = /[\s\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
const filterExpected = 'expected a subject such as orders.created, orders.* or orders.>';
const literalExpected = 'expected a subject without wildcards, such as dlq.orders';

/** What is wrong with a filter, or undefined. The message goes after the text: `"a..b" has an empty token; expected ...`. */
export function filterProblem(filter: string): string | undefined {
  const general = subjectProblem(filter, filterExpected);
  if (general !== undefined) return general;
  const tokens = filter.split('.');
  if (tokens.indexOf('>') !== -1 && tokens.indexOf('>') !== tokens.length - 1) {
    return `has a > that is not the last token; ${filterExpected}`;
  }
  if (tokens.some((token) => token.length > 1 && /[*>]/.test(token))) {
    return `has a wildcard inside a token, where it matches nothing; ${filterExpected}`;
  }
  return undefined;
}

/** What is wrong with a subject to publish to, or undefined. */
export function literalSubjectProblem(subject: string): string | undefined {
  const general = subjectProblem(subject, literalExpected);
  if (general !== undefined) return general;
  if (/[*>]/.test(subject)) return `has a wildcard; ${literalExpected}`;
  if (subject.startsWith('$') || subject.split('.')[0] === '_INBOX') {
    return `belongs to the server ($..., _INBOX); ${literalExpected}`;
  }
  return undefined;
}

/** What is wrong with the name of a stream or consumer, or undefined. */
export function nameProblem(name: string): string | undefined {
  const expected = 'expected a name such as ORDERS or orders-replay-2026-05';
  if (name === '') return `is empty; ${expected}`;
  if (unsafe.test(name)) return `has a space or an unprintable character; ${expected}`;
  if (/[.*>/\\]/.test(name)) return `has one of . * > / \\, which NATS does not allow in names; ${expected}`;
  if (byteLength(name) > nameBytesMax) return `is longer than ${nameBytesMax} bytes; ${expected}`;
  return undefined;
}

/** Whether a filter takes messages of a subject. Both legal. */
export function matches(filter: string, subject: string): boolean {
  return overlaps(filter, subject);
}

/** Whether some subject exists that both filters take. Both legal. */
export function overlaps(a: string, b: string): boolean {
  const left = a.split('.');
  const right = b.split('.');
  const shorter = Math.min(left.length, right.length);
  for (let i = 0; i < shorter; i++) {
    if (left[i] === '>' || right[i] === '>') return true;
    if (left[i] !== right[i] && left[i] !== '*' && right[i] !== '*') return false;
  }
  return left.length === right.length;
}

/** The family of a subject or filter, for reports: its first token, then `.>`. A subject of one token is its own family. */
export function familyOf(subject: string): string {
  const end = subject.indexOf('.');
  return end === -1 ? subject : `${subject.slice(0, end)}.>`;
}

function subjectProblem(subject: string, expected: string): string | undefined {
  if (subject === '') return `is empty; ${expected}`;
  if (unsafe.test(subject)) return `has a space or an unprintable character; ${expected}`;
  if (subject.split('.').includes('')) return `has an empty token; ${expected}`;
  if (byteLength(subject) > subjectBytesMax) return `is longer than ${groupDigits(subjectBytesMax)} bytes; ${expected}`;
  return undefined;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

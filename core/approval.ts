import type { Description } from './description.ts';

/** Rehearse, approve, execute: what a person approves, and what makes an approval void. */

/** Given with the update `approve`. */
export interface Approval {
  readonly by: string;
  readonly reason: string;
  readonly fingerprint: string;
}

/** An approval that was taken. */
export interface Approved extends Approval {
  /** RFC 3339. */
  readonly at: string;
}

/** What the destination said when it was looked at. */
export interface Preflight {
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
  readonly next?: string;
}

/** What a plan in the state `awaiting_approval` shows. */
export interface AwaitedApproval {
  readonly fingerprint: string;
  /** RFC 3339: then the plan ends, and nothing was written. */
  readonly expires_at: string;
  readonly messages: number;
  readonly bytes: number;
  readonly exact: boolean;
  readonly preflight: readonly Preflight[];
}

const approverCharactersMax = 200;
const reasonCharactersMax = 1_000;

/**
 * Canonical text of what is approved: the stream as it stands, scope, boundaries, target, and what the destination answered.
 * Numbers that move by themselves (free space, records that are there) do not make an approval void; nor does the number of
 * messages, since an old stream loses some all the time.
 */
export function approvalText({ fingerprint, range, target }: Description, preflight: readonly Preflight[]): string {
  return JSON.stringify({
    version: 1,
    fingerprint,
    incarnation: range.incarnation,
    first: range.first,
    last: range.last,
    dead_letter: target.dead_letter?.subject ?? null,
    key_conflicts: target.idempotency.key_conflicts,
    preflight: preflight.map(({ severity, message }) => `${severity}: ${message.replaceAll(/\d+/g, '#')}`).toSorted(),
  });
}

/** What is wrong with the input of the update; null: nothing. `awaited`: null while nothing awaits an approval. */
export function approvalProblem(input: unknown, awaited: AwaitedApproval | null): string | null {
  if (awaited === null) return 'this plan does not await an approval';
  const given: Readonly<Record<string, unknown>> = typeof input === 'object' && input !== null ? { ...input } : {};
  const example = JSON.stringify({ by: 'ann', reason: 'INC-42', fingerprint: awaited.fingerprint });
  const problems: string[] = [];
  const text = (name: string, what: string, charactersMax: number): void => {
    const value = given[name];
    if (typeof value !== 'string' || value.trim() === '' || value.length > charactersMax)
      problems.push(`${name}: expected ${what}, 1 to ${charactersMax} characters`);
  };
  text('by', 'who approves', approverCharactersMax);
  text('reason', 'why', reasonCharactersMax);
  if (given['fingerprint'] !== awaited.fingerprint) {
    const missing = given['fingerprint'] === undefined;
    problems.push(`fingerprint: ${missing ? 'missing' : 'is not the one of the last rehearsal'}; look again at what it found`);
  }
  return problems.length === 0 ? null : `${problems.join('\n')}\nfor example ${example}`;
}

/** One thing wrong with a plan, a target or their surroundings. `path` as the user writes it: `replay.start_sequence`. */
export interface Problem {
  readonly path: string;
  readonly message: string;
}

export type Parsed<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: readonly Problem[] };

/** One problem a line: the form in which the CLI, Temporal's UI and the worker's log show them. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map((problem) => (problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`)).join('\n');
}

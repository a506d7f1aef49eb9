import type { Parsed, Problem } from './problems.ts';
import type { IdempotencyKey } from './record.ts';
import type { ReplayPlan } from './plan.ts';
import type { SinkSpec } from '../sinks/registry.ts';

/** A parsed target. Secrets are still names: they are resolved only in the worker. */
export interface ReplayTarget {
  /** Validated by the sink's own schema, defaults filled in. */
  readonly sink: { readonly type: string } & Readonly<Record<string, unknown>>;
  readonly idempotency: {
    readonly key: IdempotencyKey;
    readonly field: string | null;
    readonly key_conflicts: 'reject' | 'keep';
  };
  readonly dead_letter: { readonly subject: string } | null;
}

/** Takes the document and the registry's specs. All problems at once; never a secret's value in a message. */
export function parseTarget(_document: unknown, _specs: readonly SinkSpec[]): Parsed<ReplayTarget> {
  throw new Error('not written yet');
}

/** Problems that only plan and target together show: a dead-letter subject inside the plan's own scope. */
export function checkPlanAgainstTarget(_plan: ReplayPlan, _target: ReplayTarget): readonly Problem[] {
  throw new Error('not written yet');
}

import { checkStartTime, parsePlan, type ReplayPlan } from '../core/plan.ts';
import type { Parsed, Problem } from '../core/problems.ts';
import type { ReplayRequest } from '../core/steps.ts';
import { checkPlanAgainstTarget, parseTarget, type ReplayTarget } from '../core/target.ts';
import { sinkSpecs, streamsWritten } from '../sinks/registry.ts';

/** A request that nothing but the worker can still refuse. */
export interface CheckedRequest {
  readonly request: ReplayRequest;
  readonly plan: ReplayPlan;
  /** null: the target is a name, which only the worker can look up. */
  readonly target: ReplayTarget | null;
}

/** All problems of plan and target at once. `nowMs`: milliseconds since the epoch. */
export function checkRequest(request: ReplayRequest, nowMs: number): Parsed<CheckedRequest> {
  const plan = parsePlan(request.plan);
  const named = typeof request.target === 'string';
  const target = named ? ({ ok: true, value: null } as const) : parseTarget(request.target, sinkSpecs);
  if (!plan.ok || !target.ok) {
    return { ok: false, problems: [...(plan.ok ? [] : plan.problems), ...(target.ok ? [] : target.problems)] };
  }
  const between = problemsBetween(plan.value, target.value, nowMs);
  const problems = [...between.plan, ...between.target];
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, value: { request, plan: plan.value, target: target.value } };
}

export interface ProblemsBetween {
  readonly plan: readonly Problem[];
  readonly target: readonly Problem[];
}

/** What a plan and a target that are right each for themselves may still have against them, by the file to mend. */
export function problemsBetween(plan: ReplayPlan, target: ReplayTarget | null, nowMs: number): ProblemsBetween {
  return {
    plan: checkStartTime(plan, BigInt(nowMs) * 1_000_000n),
    target: target === null ? [] : checkPlanAgainstTarget(plan, target, streamsWritten(target.sink)),
  };
}

/** The plan document with the operator's choice of --dry-run or --execute instead of its own. */
export function withDryRun(document: unknown, dryRun: boolean): unknown {
  const { replay } = document as { readonly replay: object };
  return { ...(document as object), replay: { ...replay, dry_run: dryRun } };
}

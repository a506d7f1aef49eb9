import { parsePlan } from '../core/plan.ts';
import type { Problem } from '../core/problems.ts';
import type { ReplayRequest } from '../core/steps.ts';
import type { Finding } from '../sinks/sink.ts';
import { step, type StepDeps } from './step.ts';

export type Probed =
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }
  | { readonly kind: 'probed'; readonly findings: readonly Finding[] };

/** Looks at the destination from where the worker stands; writes nothing. */
export function makeProbeTarget(deps: StepDeps): (request: ReplayRequest) => Promise<Probed> {
  return (request) =>
    step(deps.faults, async (signal) => {
      const [plan, target] = [parsePlan(request.plan), await deps.targets.resolve(request.target)];
      if (!plan.ok || !target.ok) {
        return { kind: 'refused', problems: [...(plan.ok ? [] : plan.problems), ...(target.ok ? [] : target.problems)] };
      }
      const sink = await deps.targets.unopened({
        target: target.value,
        plan: plan.value.durable_consumer,
        run: 'probe',
        begun: false,
      });
      try {
        return { kind: 'probed', findings: await sink.probe(signal) };
      } finally {
        await sink.close();
      }
    });
}

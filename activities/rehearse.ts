import { createHash } from 'node:crypto';
import { approvalText } from '../core/approval.ts';
import type { Description, Rehearsed } from '../core/description.ts';
import type { DescribeRequest } from '../core/steps.ts';
import type { Finding } from '../sinks/sink.ts';
import type { Deps } from './deps.ts';
import { describeStream } from './describe-stream.ts';
import { step, type StepDeps } from './step.ts';

/** Describes the plan and looks at its destination, read-only: what a person approves, with its fingerprint. */
export function makeRehearse(deps: StepDeps): (request: DescribeRequest) => Promise<Rehearsed> {
  return (request) =>
    step(deps.faults, async (signal) => {
      const described = await describeStream(deps, request);
      if (described.kind === 'refused') return described;
      const { description, predecessor } = described;
      const preflight = await lookAtTarget(deps, description, signal);
      const fingerprint = createHash('sha256').update(approvalText(description, preflight)).digest('hex').slice(0, 16);
      return { kind: 'rehearsed', description, predecessor, preflight, fingerprint };
    });
}

async function lookAtTarget(
  { targets }: Deps,
  { plan, target }: Description,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const sink = await targets.unopened({ target, plan: plan.durable_consumer, run: 'rehearsal', begun: false });
  try {
    return await sink.probe(signal);
  } finally {
    await sink.close();
  }
}

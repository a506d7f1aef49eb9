import { ApplicationFailure } from '@temporalio/workflow';
import { formatProblems } from '../core/problems.ts';
import type { ReplayRequest } from '../core/steps.ts';
import { probeTarget } from './activities.ts';
import { refusedFailure } from './messages.ts';

/** `replay-stream check --connect`: lets a worker look at the destination. Returns its findings. */
export async function checkTarget(request: ReplayRequest) {
  const probed = await probeTarget(request);
  if (probed.kind === 'probed') return probed.findings;
  throw ApplicationFailure.create({
    message: formatProblems(probed.problems),
    type: refusedFailure,
    nonRetryable: true,
    details: [probed.problems],
  });
}

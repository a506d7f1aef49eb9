import { Context } from '@temporalio/activity';
import { step, type StepDeps } from './step.ts';

/** The signal `cancel` asks Temporal for a real cancellation, so that the run ends Canceled however it was asked for. */
export function makeRequestCancel({ runs, faults }: StepDeps): () => Promise<void> {
  return () =>
    step(faults, async () => {
      const { workflowId, runId } = Context.current().info.workflowExecution!;
      await runs.cancel(workflowId, runId);
    });
}

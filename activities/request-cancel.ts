import { Context } from '@temporalio/activity';
import type { Deps } from './deps.ts';
import { step } from './step.ts';

/** The signal `cancel` asks Temporal for a real cancellation, so that the run ends Canceled however it was asked for. */
export function makeRequestCancel({ runs, log }: Deps): () => Promise<void> {
  return () =>
    step(log, async () => {
      const { workflowId, runId } = Context.current().info.workflowExecution!;
      await runs.cancel(workflowId, runId);
    });
}

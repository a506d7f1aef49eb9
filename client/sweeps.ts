import { WorkflowFailedError, type Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { Swept } from '../core/sweep.ts';
import * as messages from '../workflows/messages.ts';
import type { sweepTopic as sweepTopicWorkflow } from '../workflows/sweep-topic.ts';

/** Sweeps a topic once, or waits for the sweep that runs already. Throws Error with the words of what went wrong. */
export async function sweepTopic(client: Client, topic: string): Promise<readonly Swept[]> {
  try {
    return await client.workflow.execute<typeof sweepTopicWorkflow>('sweepTopic', {
      taskQueue: messages.taskQueue,
      workflowId: `sweep:${topic}`,
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowTaskTimeout: '5s',
      args: [topic],
      staticSummary: 'sweep of a topic',
    });
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      if (at instanceof ApplicationFailure) throw new Error(`The sweep failed: ${at.message}`, { cause: error });
    }
    throw error;
  }
}

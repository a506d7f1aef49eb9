import { WorkflowFailedError, type Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { Reconciled } from '../core/reconcile.ts';
import type { Swept } from '../core/sweep.ts';
import * as messages from '../workflows/messages.ts';
import type { reconcileTopics as reconcileTopicsWorkflow } from '../workflows/reconcile-topics.ts';
import type { sweepTopic as sweepTopicWorkflow } from '../workflows/sweep-topic.ts';

/** Sweeps a topic once, or waits for the sweep that runs already. Throws Error with the words of what went wrong. */
export async function sweepTopic(client: Client, topic: string): Promise<readonly Swept[]> {
  return await inWords('The sweep failed', () =>
    client.workflow.execute<typeof sweepTopicWorkflow>('sweepTopic', {
      taskQueue: messages.taskQueue,
      workflowId: `sweep:${topic}`,
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowTaskTimeout: '5s',
      args: [topic],
      staticSummary: 'sweep of a topic',
    }),
  );
}

/** Of one topic; null: of all. Waits for the one that runs already. Throws as above. */
export async function reconcile(client: Client, topic: string | null): Promise<Reconciled> {
  return await inWords('Reconciling failed', () =>
    client.workflow.execute<typeof reconcileTopicsWorkflow>(messages.reconcileType, {
      taskQueue: messages.taskQueue,
      workflowId: messages.reconcileWorkflowId(topic),
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowTaskTimeout: '5s',
      args: [{ topic }],
      staticSummary: 'repair of topics',
    }),
  );
}

async function inWords<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      if (at instanceof ApplicationFailure) throw new Error(`${what}: ${at.message}`, { cause: error });
    }
    throw error;
  }
}

import type { Client } from '@temporalio/client';
import type { Runs } from '../activities/deps.ts';
import { chainStatus, clusterId, knownSearchAttributes } from '../platform/temporal.ts';
import { searchAttributeNames } from '../workflows/messages.ts';

/** What the durable steps ask of Temporal, through the worker's own client. */
export function createRuns(client: Client): Runs {
  let id: Promise<string> | undefined;
  return {
    namespace: client.options.namespace,
    clusterId: () => (id ??= clusterId(client)),
    async isOpen(owner) {
      const chain = await chainStatus(client, owner.workflowId);
      return chain !== null && chain.open && chain.firstRunId === owner.firstRunId;
    },
    async cancel(workflowId, runId) {
      await client.workflow.getHandle(workflowId, runId).cancel();
    },
    async hasSearchAttributes() {
      // Without the permission to ask, plans run without search attributes: they must not stop for that.
      const known = await knownSearchAttributes(client).catch(() => new Set<string>());
      return searchAttributeNames.every((name) => known.has(name));
    },
  };
}

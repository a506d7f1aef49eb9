import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';

/** How Temporal is reached: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TLS and profiles, as the `temporal` command knows them. */
export interface TemporalSettings {
  readonly address: string;
  readonly namespace: string;
  readonly connection: ReturnType<typeof loadClientConnectConfig>['connectionOptions'];
}

export function readTemporalSettings(): TemporalSettings {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  return {
    address: connectionOptions.address ?? 'localhost:7233',
    namespace: namespace ?? 'default',
    connection: connectionOptions,
  };
}

/** Fails within a few seconds, with a sentence that says what to check, when nobody answers. */
export async function connectTemporal(settings: TemporalSettings): Promise<Client> {
  const connection = await Connection.connect({ ...settings.connection, connectTimeout: '5s' }).catch((error: unknown) => {
    throw new Error(
      `Temporal does not answer at ${settings.address}. Is it up, and is TEMPORAL_ADDRESS right? For a server on this machine: replay-stream dev`,
      { cause: error },
    );
  });
  return new Client({ connection, namespace: settings.namespace });
}

/** Id of the cluster behind the connection: addresses of one cluster differ from host to host, its id does not. */
export async function clusterId({ workflowService }: Pick<Client, 'workflowService'>): Promise<string> {
  const info = await workflowService.getClusterInfo({});
  return info.clusterId;
}

export interface ChainStatus {
  readonly open: boolean;
  readonly firstRunId: string;
}

/** The latest run of a workflow id, and the chain that it belongs to; null when Temporal does not know the id (any more). */
export async function chainStatus(client: Client, workflowId: string): Promise<ChainStatus | null> {
  try {
    const { raw, status } = await client.workflow.getHandle(workflowId).describe();
    const info = raw.workflowExecutionInfo;
    const open = status.name === 'RUNNING' || status.name === 'PAUSED';
    return { open, firstRunId: info?.firstRunId ?? info?.execution?.runId ?? '' };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** Names of the custom search attributes that the namespace knows. */
export async function knownSearchAttributes(client: Client): Promise<ReadonlySet<string>> {
  const { customAttributes } = await client.connection.operatorService.listSearchAttributes({
    namespace: client.options.namespace,
  });
  return new Set(Object.keys(customAttributes));
}

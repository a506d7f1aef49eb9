import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  isGrpcServiceError,
  makeGrpcRetryInterceptor,
  NamespaceNotFoundError,
  ServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
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
  const connection = await Connection.connect({
    ...settings.connection,
    connectTimeout: '5s',
    interceptors: [makeGrpcRetryInterceptor(retries)],
  }).catch((error: unknown) => {
    throw new Error(
      `Temporal does not answer at ${settings.address}. Is it up, and is TEMPORAL_ADDRESS right? For a server on this machine: replay-stream dev`,
      { cause: error },
    );
  });
  return new Client({ connection, namespace: settings.namespace });
}

const defaultRetries = defaultGrpcRetryOptions();
/** As the SDK does, but for queries that wait in line for a worker: their delays would outlast any deadline. */
const retries: typeof defaultRetries = {
  ...defaultRetries,
  retryableDecider: (attempt, status) =>
    !/query buffer is full/.test(status.details) && defaultRetries.retryableDecider(attempt, status),
};

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

export type TemporalFaultKind =
  'unreachable' | 'no_answer' | 'busy' | 'denied' | 'no_namespace' | 'not_now' | 'invalid' | 'other';

/** What a failed call says; null: the error is not from a call to Temporal. */
export function temporalFault(error: unknown): TemporalFaultKind | null {
  if (error instanceof NamespaceNotFoundError) return 'no_namespace';
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return 'no_answer';
  const call = error instanceof ServiceError ? error.cause : error;
  if (!isGrpcServiceError(call)) return error instanceof ServiceError ? 'other' : null;
  return faultByGrpcCode[call.code] ?? 'other';
}

/** By the numbers of gRPC's status codes. */
const faultByGrpcCode: Readonly<Record<number, TemporalFaultKind>> = {
  3: 'invalid',
  4: 'no_answer',
  7: 'denied',
  8: 'busy',
  9: 'not_now',
  14: 'unreachable',
  16: 'denied',
};

/** A sentence for the person who called, what to do included. */
export function temporalFaultText(fault: TemporalFaultKind, { address, namespace }: TemporalSettings, detail: string): string {
  switch (fault) {
    case 'unreachable':
    case 'no_answer':
      return `Temporal does not answer at ${address}. Check that it is up, then try again.`;
    case 'busy':
      return `Temporal at ${address} has too much to do just now. Try again in a moment.`;
    case 'denied':
      return `Temporal at ${address} refused the login for the namespace ${namespace}. Check TEMPORAL_API_KEY, the TLS settings and the permissions.`;
    case 'no_namespace':
      return `Temporal at ${address} does not know the namespace ${namespace}. Check TEMPORAL_NAMESPACE.`;
    case 'not_now':
    case 'invalid':
    case 'other':
      return `Temporal at ${address} refused the call: ${detail}`;
  }
}

/** When a worker last asked this queue for workflow tasks; null: none did within the last minutes. */
export async function lastPollOf(client: Client, queue: string): Promise<Date | null> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: queue },
    taskQueueType: workflowTaskQueue,
  });
  const polledMs = (pollers ?? []).map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000);
  return polledMs.length === 0 ? null : new Date(Math.max(...polledMs));
}

/** temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW */
const workflowTaskQueue = 1;

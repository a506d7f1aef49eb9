import { createHash } from 'node:crypto';
import type { ConsumerFacts, ConsumerOwner, ConsumerSpec } from './source.ts';

/** Recovery never waits for it: a lost batch is had again by putting the durable back. */
const ackWaitNanos = 3_600_000_000_000;
const maxWaitingPulls = 512;

const key = {
  cluster: 'durable-replay.cluster',
  namespace: 'durable-replay.namespace',
  workflowId: 'durable-replay.workflow-id',
  firstRunId: 'durable-replay.first-run-id',
  fingerprint: 'durable-replay.fingerprint',
  filters: 'durable-replay.filters',
  maxAckPending: 'durable-replay.max-ack-pending',
  making: 'durable-replay.making',
  completed: 'durable-replay.completed',
} as const;

/** The server's names; durations are nanoseconds. */
export interface ConsumerConfig {
  readonly name?: string;
  readonly durable_name?: string;
  readonly deliver_policy: string;
  readonly opt_start_seq?: number;
  readonly ack_policy: string;
  readonly ack_wait?: number;
  readonly max_deliver?: number;
  readonly max_ack_pending?: number;
  readonly max_waiting?: number;
  readonly replay_policy: string;
  readonly inactive_threshold?: number;
  readonly headers_only?: boolean;
  readonly mem_storage?: boolean;
  readonly num_replicas?: number;
  readonly filter_subject?: string;
  readonly filter_subjects?: readonly string[];
  readonly deliver_subject?: string;
  readonly backoff?: readonly number[];
  readonly max_batch?: number;
  readonly max_bytes?: number;
  readonly max_expires?: number;
  readonly priority_policy?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface ConsumerInfo {
  readonly config: ConsumerConfig;
  readonly delivered: { readonly consumer_seq: number; readonly stream_seq: number };
  readonly ack_floor: { readonly consumer_seq: number; readonly stream_seq: number };
  readonly num_ack_pending: number;
  readonly num_pending: number;
  readonly paused?: boolean;
}

/**
 * Everything stated, since a stream's limits fill what is not. `inactive_threshold` 0 takes the stream's own, which may not
 * be exceeded anyway. `making` differs each time: the server answers "create" of an equal configuration as if it had
 * created it, and the durable of a lost attempt would pass for a fresh one.
 */
export function consumerConfig(spec: ConsumerSpec, cursor: number, making: string): ConsumerConfig {
  return {
    name: spec.durable,
    durable_name: spec.durable,
    deliver_policy: 'by_start_sequence',
    opt_start_seq: Math.max(1, cursor),
    ack_policy: 'explicit',
    ack_wait: ackWaitNanos,
    max_deliver: -1,
    max_ack_pending: spec.maxAckPending,
    max_waiting: maxWaitingPulls,
    replay_policy: 'instant',
    inactive_threshold: 0,
    headers_only: false,
    mem_storage: false,
    num_replicas: 0,
    filter_subjects: spec.filters,
    metadata: {
      [key.cluster]: spec.owner.cluster,
      [key.namespace]: spec.owner.namespace,
      [key.workflowId]: spec.owner.workflowId,
      [key.firstRunId]: spec.owner.firstRunId,
      [key.fingerprint]: spec.owner.fingerprint,
      [key.filters]: digest(spec.filters),
      [key.maxAckPending]: String(spec.maxAckPending),
      [key.making]: making,
    },
  };
}

/** The same configuration, marked as completed. The server keeps `_nats.*` itself. */
export function completedConfig(config: ConsumerConfig): ConsumerConfig {
  const kept = Object.entries(config.metadata ?? {}).filter(([name]) => !name.startsWith('_nats.'));
  return { ...config, metadata: { ...Object.fromEntries(kept), [key.completed]: 'true' } };
}

export function consumerFacts(info: ConsumerInfo): ConsumerFacts {
  return {
    owner: ownerOf(info.config),
    completed: info.config.metadata?.[key.completed] === 'true',
    startSequence: info.config.opt_start_seq ?? 1,
    ackFloor: info.ack_floor.stream_seq,
    delivered: { stream: info.delivered.stream_seq, consumer: info.delivered.consumer_seq },
    pending: info.num_pending,
    ackPending: info.num_ack_pending,
    altered: alteredSettings(info),
  };
}

export function ownerOf(config: ConsumerConfig): ConsumerOwner | null {
  const { metadata = {} } = config;
  const cluster = metadata[key.cluster];
  const namespace = metadata[key.namespace];
  const workflowId = metadata[key.workflowId];
  const firstRunId = metadata[key.firstRunId];
  const fingerprint = metadata[key.fingerprint];
  if (
    cluster === undefined ||
    namespace === undefined ||
    workflowId === undefined ||
    firstRunId === undefined ||
    fingerprint === undefined
  ) {
    return null;
  }
  return { cluster, namespace, workflowId, firstRunId, fingerprint };
}

function alteredSettings(info: ConsumerInfo): string[] {
  const { config } = info;
  const metadata = config.metadata ?? {};
  const filters = config.filter_subjects ?? (config.filter_subject === undefined ? [] : [config.filter_subject]);
  const asMade: Readonly<Record<string, boolean>> = {
    deliver_policy: config.deliver_policy === 'by_start_sequence',
    ack_policy: config.ack_policy === 'explicit',
    ack_wait: config.ack_wait === ackWaitNanos,
    max_deliver: (config.max_deliver ?? -1) === -1,
    max_ack_pending: String(config.max_ack_pending) === metadata[key.maxAckPending],
    replay_policy: config.replay_policy === 'instant',
    headers_only: config.headers_only !== true,
    filter_subjects: digest(filters) === metadata[key.filters],
    deliver_subject: (config.deliver_subject ?? '') === '',
    backoff: (config.backoff ?? []).length === 0,
    priority_policy: ['', 'none'].includes(config.priority_policy ?? ''),
    pause_until: info.paused !== true,
  };
  return Object.keys(asMade).filter((name) => asMade[name] === false);
}

/** A digest, since 64 long filters would crowd the metadata. Their order means nothing. */
function digest(filters: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(filters.toSorted())).digest('hex').slice(0, 32);
}

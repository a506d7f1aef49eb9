import { ReplayFault } from '../core/errors.ts';
import { formatTime, timeNanos } from '../core/time.ts';
import { callApiOrThrow } from './api.ts';
import type { Link } from './link.ts';
import type { StreamFacts } from './source.ts';

/** What the server answers to STREAM.INFO: the fields used here. Durations are nanoseconds. */
export interface StreamInfo {
  readonly created: string;
  readonly ts?: string;
  readonly config: {
    readonly name: string;
    readonly subjects?: readonly string[];
    readonly retention: StreamFacts['retention'];
    readonly allow_direct?: boolean;
    readonly mirror?: { readonly name: string };
    readonly sources?: readonly { readonly name: string }[] | null;
    readonly sealed?: boolean;
    readonly discard?: 'old' | 'new';
    readonly max_age?: number;
    readonly max_msgs?: number;
    readonly max_bytes?: number;
    readonly max_msg_size?: number;
    readonly max_msgs_per_subject?: number;
    readonly duplicate_window?: number;
    readonly consumer_limits?: { readonly inactive_threshold?: number; readonly max_ack_pending?: number };
  };
  readonly state: {
    readonly messages: number;
    readonly bytes: number;
    readonly first_seq: number;
    readonly last_seq: number;
    readonly subjects?: Readonly<Record<string, number>>;
  };
  readonly total?: number;
}

const nanosPerMilli = 1_000_000;

export function readStream(link: Link, stream: string, signal?: AbortSignal): Promise<StreamInfo> {
  return callApiOrThrow(link, `STREAM.INFO.${stream}`, null, 'unexpected', { signal });
}

export async function describe(link: Link, stream: string): Promise<StreamFacts> {
  return factsOf(await readStream(link, stream), BigInt(Date.now()) * BigInt(nanosPerMilli));
}

/** `now` stands in for the server's time where the server does not tell it. */
export function factsOf(info: StreamInfo, now: bigint): StreamFacts {
  const { config, state } = info;
  if (!Number.isSafeInteger(state.last_seq) || !Number.isSafeInteger(state.first_seq)) {
    throw new ReplayFault('stream_unsupported', 'its sequences are beyond 2^53-1');
  }
  return {
    stream: config.name,
    incarnation: incarnationOf(info),
    firstSequence: state.first_seq,
    lastSequence: state.last_seq,
    messages: state.messages,
    bytes: state.bytes,
    retention: config.retention,
    subjects: config.subjects ?? [],
    allowDirect: config.allow_direct === true,
    isMirror: config.mirror !== undefined,
    origins: [...(config.mirror === undefined ? [] : [config.mirror.name]), ...(config.sources ?? []).map(({ name }) => name)],
    consumerLimits: {
      inactiveThresholdMs: capOf(config.consumer_limits?.inactive_threshold, nanosPerMilli),
      maxAckPending: capOf(config.consumer_limits?.max_ack_pending, 1),
    },
    serverTimeNanos: info.ts === undefined ? now : timeNanos(info.ts),
  };
}

export function incarnationOf(info: StreamInfo): string {
  return formatTime(timeNanos(info.created));
}

/** The server says 0, -1 or nothing where there is no cap. */
function capOf(value: number | undefined, unit: number): number | null {
  return value === undefined || value <= 0 ? null : value / unit;
}

/** Throws `stream_missing` or `stream_recreated`. */
export async function checkIncarnation(link: Link, stream: string, incarnation: string, signal?: AbortSignal): Promise<void> {
  const found = incarnationOf(await readStream(link, stream, signal));
  if (found !== incarnation) throw new ReplayFault('stream_recreated');
}

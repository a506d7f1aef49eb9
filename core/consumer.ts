import type { FaultCode } from './errors.ts';

/** The workflow chain that may pull from a durable. */
export interface Owner {
  readonly cluster: string;
  readonly namespace: string;
  readonly workflowId: string;
  readonly firstRunId: string;
  readonly fingerprint: string;
}

export function sameOwner(a: Owner, b: Owner): boolean {
  return (
    a.cluster === b.cluster &&
    a.namespace === b.namespace &&
    a.workflowId === b.workflowId &&
    a.firstRunId === b.firstRunId &&
    a.fingerprint === b.fingerprint
  );
}

interface ConsumerSeen {
  readonly owner: Owner | null;
  readonly delivered: { readonly consumer: number };
  readonly altered: readonly string[];
}

interface Wanted {
  readonly owner: Owner;
  /** The closed owner that this run takes over from; null when there was none. */
  readonly predecessor: Owner | null;
  /** The consumer sequence that the next record must have; null: the durable must be put back. */
  readonly consumerSequence: number | null;
  /** Temporal's attempt of this step, from 1: after a lost attempt its records are still pending. */
  readonly attempt: number;
}

/** What to do with the durable before a pull: go on pulling, put it back at the cursor, or keep off it. */
export function decideConsumer(seen: ConsumerSeen | null, wanted: Wanted): 'keep' | 'put_back' | { readonly fault: FaultCode } {
  if (seen === null) return 'put_back';
  if (seen.owner === null) return { fault: 'consumer_taken' };
  if (!sameOwner(seen.owner, wanted.owner)) {
    return wanted.predecessor !== null && sameOwner(seen.owner, wanted.predecessor) ? 'put_back' : { fault: 'consumer_taken' };
  }
  const undisturbed =
    wanted.attempt === 1 && wanted.consumerSequence === seen.delivered.consumer + 1 && seen.altered.length === 0;
  return undisturbed ? 'keep' : 'put_back';
}

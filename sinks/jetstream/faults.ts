import { ReplayFault } from '../../core/errors.ts';

/** JetStream API error codes of a publish that this sink tells apart. */
const code = {
  accountResourcesExceeded: 10002,
  insufficientResources: 10023,
  memoryResourcesExceeded: 10028,
  storageResourcesExceeded: 10047,
  messageTooLarge: 10054,
  streamNotMatch: 10060,
  storeFailed: 10077,
  headerTooLarge: 10097,
  streamSealed: 10109,
} as const;

/** The record is to blame, not the destination. */
export function isTooLarge(error: number): boolean {
  return error === code.messageTooLarge || error === code.headerTooLarge;
}

export function refusedFault(error: number): ReplayFault {
  switch (error) {
    case code.storeFailed:
      return new ReplayFault('sink_full', 'the destination stream is full, and refuses new messages');
    case code.streamSealed:
      return new ReplayFault('sink_denied', 'the destination stream is sealed');
    case code.streamNotMatch:
      return new ReplayFault('sink_unfit', 'something other than the destination stream takes a subject of this batch');
    case code.insufficientResources:
    case code.storageResourcesExceeded:
    case code.memoryResourcesExceeded:
    case code.accountResourcesExceeded:
      return new ReplayFault('sink_full', 'the account or the server has used up its JetStream resources');
    default:
      return new ReplayFault('sink_busy', `JetStream error ${error}`);
  }
}

export function unheardFault(): ReplayFault {
  return new ReplayFault(
    'sink_unfit',
    'no stream takes a subject of this batch; compare subject_prefix with the subjects of the stream',
  );
}

/** The destination is meant, where JetStream speaks of a stream. */
export async function asDestination<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ReplayFault)) throw error;
    if (error.code === 'stream_missing') throw new ReplayFault('sink_missing', 'the destination stream');
    if (error.code === 'stream_recreated') throw new ReplayFault('sink_missing', 'the destination stream was created anew');
    if (error.code === 'consumer_refused')
      throw new ReplayFault('sink_unfit', `the stream allows no consumer to look through it; ${error.detail ?? ''}`);
    throw error;
  }
}

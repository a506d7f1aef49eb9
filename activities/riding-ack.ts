import type { Receipt } from '../core/receipt.ts';
import type { Acknowledged } from '../core/steps.ts';
import type { Source } from '../jetstream/source.ts';
import { acknowledge } from './acknowledge.ts';
import { graceSignal } from './grace.ts';

/** The ACK of one batch, on its way while the next is pulled and written. */
export interface RidingAck {
  /** Never rejects: an ACK that fails is deferred. null: none rode with this step. */
  readonly ended: Promise<Acknowledged | null>;
  /** Everything below the cursor is acknowledged: there is nothing left to wait for. */
  settledByPutBack(): void;
}

export const noAck: RidingAck = { ended: Promise.resolve(null), settledByPutBack: () => undefined };

export function beginAck(source: Source, receipt: Receipt, signal: AbortSignal): RidingAck {
  const deferred: Acknowledged = { acked: 0, deferred: receipt.count };
  const putBack = new AbortController();
  const grace = graceSignal(signal);
  const ended = acknowledge(source, receipt, AbortSignal.any([grace, putBack.signal])).catch(() => deferred);
  return { ended: ended.finally(grace.clear), settledByPutBack: () => putBack.abort() };
}

import type { Receipt } from '../core/receipt.ts';
import type { Acknowledged } from '../core/steps.ts';
import type { Source } from '../jetstream/source.ts';
import { step, type StepDeps } from './step.ts';

/** ACKs what the receipt names, and only that: its records are in the sink or in the dead-letter stream. */
export function makeAcknowledge({ source, faults }: StepDeps): (receipt: Receipt) => Promise<Acknowledged> {
  return (receipt) => step(faults, (signal) => acknowledge(source, receipt, signal));
}

export async function acknowledge(source: Source, receipt: Receipt, signal: AbortSignal): Promise<Acknowledged> {
  const answer = await source.acknowledge(receipt, signal);
  return answer === 'confirmed' ? { acked: receipt.count, deferred: 0 } : { acked: 0, deferred: receipt.count };
}

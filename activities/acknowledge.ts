import type { Receipt } from '../core/receipt.ts';
import type { Acknowledged } from '../core/steps.ts';
import { step, type StepDeps } from './step.ts';

/** ACKs what the receipt names, and only that: its records are in the sink or in the dead-letter stream. */
export function makeAcknowledge({ source, faults }: StepDeps): (receipt: Receipt) => Promise<Acknowledged> {
  return (receipt) =>
    step(faults, async (signal) => {
      const answer = await source.acknowledge(receipt, signal);
      return answer === 'confirmed' ? { acked: receipt.count, deferred: 0 } : { acked: 0, deferred: receipt.count };
    });
}

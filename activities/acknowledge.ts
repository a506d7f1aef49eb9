import { sameOwner } from '../core/consumer.ts';
import type { Receipt } from '../core/receipt.ts';
import type { Acknowledged } from '../core/steps.ts';
import type { Source } from '../jetstream/source.ts';
import { step, type StepDeps } from './step.ts';

/** ACKs what the receipt names, and only that: its records are in the sink or in the dead-letter stream. */
export function makeAcknowledge({ source, faults }: StepDeps): (receipt: Receipt) => Promise<Acknowledged> {
  return (receipt) => step(faults, (signal) => acknowledge(source, receipt, signal));
}

export async function acknowledge(source: Source, receipt: Receipt, signal: AbortSignal): Promise<Acknowledged> {
  const answer = receipt.lane === undefined ? await source.acknowledge(receipt, signal) : await moveOn(source, receipt);
  return answer === 'confirmed' ? { acked: receipt.count, deferred: 0 } : { acked: 0, deferred: receipt.count };
}

/** Of a topic: the durable of the partition stands after what is settled. One that is another's by now is left alone. */
async function moveOn(source: Source, receipt: Receipt): Promise<'confirmed' | 'deferred'> {
  const { stream, incarnation, consumer: durable, lastSequence } = receipt;
  const { owner, filters, maxAckPending } = receipt.lane!;
  const seen = await source.readConsumer(stream, durable);
  if (seen?.owner == null || !sameOwner(seen.owner, owner)) return 'deferred';
  if (seen.startSequence <= lastSequence) {
    await source.putBack({ stream, incarnation, durable, filters, owner, maxAckPending }, lastSequence + 1);
  }
  return 'confirmed';
}

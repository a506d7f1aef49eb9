import type { Owner } from './consumer.ts';

/**
 * Names every pulled message of one batch compactly, so that any worker can acknowledge it: runs of consecutive stream
 * sequences. Consumer sequences of a batch are contiguous by contract, so their first and last suffice.
 * A contiguous batch of any size is one run; 5,000 scattered sequences are about 15 KB of history.
 */
export interface Receipt {
  readonly stream: string;
  readonly consumer: string;
  readonly incarnation: string;
  /** Flat list: distance from the end of the run before (or from 0), then length; [1000, 5, 2, 1] = 1000..1004, 1006. */
  readonly runs: readonly number[];
  readonly count: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly lastConsumerSequence: number;
  /** Of a topic, whose records are read without the durable: the ACK moves it on. */
  readonly lane?: { readonly owner: Owner; readonly filters: readonly string[]; readonly maxAckPending: number };
}

/** Ascending sequences without repetition -> runs. */
export function encodeRuns(sequences: readonly number[]): number[] {
  const runs: number[] = [];
  let next = 0;
  for (const sequence of sequences) {
    if (runs.length > 0 && sequence === next) {
      runs[runs.length - 1]! += 1;
    } else {
      if (sequence < next) throw new RangeError('sequences must rise');
      runs.push(sequence - next, 1);
    }
    next = sequence + 1;
  }
  return runs;
}

export function* decodeRuns(runs: readonly number[]): Generator<number> {
  let next = 0;
  for (let i = 0; i < runs.length; i += 2) {
    next += runs[i]!;
    const end = next + runs[i + 1]!;
    while (next < end) yield next++;
  }
}

import { rejectOf, type Outcome, type Reject } from './record.ts';
import type { Due, Stretch } from './pacing.ts';
import { encodeRuns, type Receipt } from './receipt.ts';

/** Fewer rejects than this are never called drift: a plan may end on one bad record. */
const driftRecordsMin = 10;

interface Pulled {
  readonly position: number;
  readonly consumerSequence: number;
  readonly timeNanos: bigint;
}

export interface Bounds {
  readonly cursor: number;
  readonly last: number | null;
  readonly endTimeNanos: bigint | null;
}

export interface Batch<R> {
  /** To write: in stream order, each sequence once, from the cursor to the end of the range. */
  readonly fresh: readonly R[];
  /** Below the cursor: settled before, to be ACKed again. */
  readonly settledBefore: readonly R[];
  /** A record beyond the range arrived: nothing of the range comes after it. It is neither written nor ACKed. */
  readonly beyondEnd: boolean;
}

/** Sorts what one pull brought into what to write, what to ACK only, and what to leave. */
export function arrangeBatch<R extends Pulled>(pulled: readonly R[], bounds: Bounds): Batch<R> {
  const fresh: R[] = [];
  const settledBefore: R[] = [];
  let beyondEnd = false;
  let previous = -1;
  for (const record of inStreamOrder(pulled)) {
    if (record.position === previous) continue;
    previous = record.position;
    if (record.position < bounds.cursor) settledBefore.push(record);
    else if (isBeyond(record, bounds)) {
      // Times may fall on mirrors: nothing after the first record past the end time belongs to the range, whatever its time.
      beyondEnd = true;
      break;
    } else fresh.push(record);
  }
  return { fresh, settledBefore, beyondEnd };
}

/** The records of a batch that are due, and where in the stream they stand. From the first one that is not due, all are left. */
export function holdBack<R extends Pulled>(batch: Batch<R>, due: Due): { readonly batch: Batch<R>; readonly stretch: Stretch } {
  const first = batch.fresh[0];
  const from = due.fromNanos === null ? first?.timeNanos : BigInt(due.fromNanos);
  const until = (from ?? 0n) + BigInt(due.aheadNanos);
  const at = batch.fresh.findIndex((record) => record.timeNanos > until);
  const fresh = at === -1 ? batch.fresh : batch.fresh.slice(0, at);
  const nanos = (record: R | undefined): string | null => record?.timeNanos.toString() ?? null;
  return {
    batch: at === -1 ? batch : { ...batch, fresh, beyondEnd: false },
    stretch: {
      firstNanos: nanos(fresh[0]),
      lastNanos: latest(fresh)?.toString() ?? null,
      heldNanos: at === -1 ? null : nanos(batch.fresh[at]),
    },
  };
}

/** Times may fall on mirrors. */
function latest(records: readonly Pulled[]): bigint | null {
  return records.reduce<bigint | null>((max, { timeNanos }) => (max === null || timeNanos > max ? timeNanos : max), null);
}

function inStreamOrder<R extends Pulled>(pulled: readonly R[]): readonly R[] {
  for (let i = 1; i < pulled.length; i++) {
    if (pulled[i]!.position <= pulled[i - 1]!.position) return pulled.toSorted((a, b) => a.position - b.position);
  }
  return pulled;
}

function isBeyond(record: Pulled, bounds: Bounds): boolean {
  return (
    (bounds.last !== null && record.position > bounds.last) ||
    (bounds.endTimeNanos !== null && record.timeNanos >= bounds.endTimeNanos)
  );
}

/** True when the pull brought exactly the consumer sequences that follow `expected`: nobody else pulled in between. */
export function continuesConsumer(pulled: readonly Pulled[], expected: number): boolean {
  return pulled.every((record, index) => record.consumerSequence === expected + index);
}

export interface Tally {
  readonly written: number;
  readonly duplicate: number;
  /** Left out by a rule of the target. */
  readonly skipped: number;
  readonly rejects: readonly Reject[];
}

/** Counts the sink's answers. A wrong number of answers is a fault of the sink. `recordBytesMax` is what the sink takes. */
export function tallyOutcomes(
  records: readonly (Pulled & { readonly payload: Uint8Array })[],
  outcomes: readonly Outcome[],
  recordBytesMax?: number,
): Tally {
  if (outcomes.length !== records.length) {
    throw new RangeError(`the sink answered for ${outcomes.length} of ${records.length} records`);
  }
  let written = 0;
  let duplicate = 0;
  let skipped = 0;
  const rejects: Reject[] = [];
  outcomes.forEach((outcome, index) => {
    switch (outcome.kind) {
      case 'written':
        written++;
        break;
      case 'duplicate':
        duplicate++;
        break;
      case 'skipped':
        skipped++;
        break;
      case 'rejected': {
        const { position, timeNanos, payload } = records[index]!;
        rejects.push(rejectOf({ sequence: position, timeNanos, payload }, outcome, recordBytesMax));
        break;
      }
    }
  });
  return { written, duplicate, skipped, rejects };
}

/** A whole batch refused for one reason tells of the destination, not of the data. */
export function isDrift(records: number, rejects: readonly Reject[]): boolean {
  return (
    records >= driftRecordsMin && rejects.length === records && rejects.every((reject) => reject.code === rejects[0]!.code)
  );
}

/** null when the batch holds nothing to ACK. */
export function receiptOf(
  source: { readonly stream: string; readonly durable: string; readonly incarnation: string },
  records: readonly Pulled[],
): Receipt | null {
  if (records.length === 0) return null;
  const positions = records.map((record) => record.position);
  return {
    stream: source.stream,
    consumer: source.durable,
    incarnation: source.incarnation,
    runs: encodeRuns(positions),
    count: records.length,
    firstSequence: positions[0]!,
    lastSequence: positions.at(-1)!,
    lastConsumerSequence: records.reduce((last, record) => Math.max(last, record.consumerSequence), 0),
  };
}

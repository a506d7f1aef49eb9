/** Adaptive batch size: starts here when the plan names none. */
export const batchRecordsInitial = 1_000;
export const batchRecordsMax = 10_000;
const batchRecordsMin = 100;
/** A batch shorter than this pays more for the workflow's turn than for the records. */
const batchSecondsLow = 0.5;
/** A longer batch makes pause, cancel and progress slow. */
const batchSecondsHigh = 4;

/** Size of the next batch, from how long the last took. One that was pulled ahead has the size of the batch before: half counts as full. */
export function adaptBatchRecords(current: number, took: { readonly records: number; readonly seconds: number }): number {
  if (took.records * 2 >= current && took.seconds < batchSecondsLow) return Math.min(batchRecordsMax, current * 2);
  if (took.seconds > batchSecondsHigh) return Math.max(batchRecordsMin, Math.floor(current / 2));
  return current;
}

/** A step goes on with further batches for this long: enough to make Temporal's turn cheap, too short for a pause to seem stuck. */
export const furtherMsMax = 1_000;

/** With a rate limit a batch is at most one second's worth, so that a change of the limit is felt at once. */
export function limitBatchRecords(records: number, perSecond: number | null): number {
  return perSecond === null ? records : Math.max(1, Math.min(records, Math.floor(perSecond)));
}

/** Temporal's timers fire up to a second late, so a pace is kept on average: lateness up to this much is made up for. */
const paceCreditMs = 1_500;
/** A shorter wait is not worth a timer: the next batch goes ahead, and the wait after it is longer. */
const paceWaitMsMin = 500;

/** The pace of a run under a rate limit. */
export interface Pace {
  /** When the next batch is due, milliseconds since the epoch. */
  readonly dueMs: number;
  /** Lateness of timers that is still to be made up for. */
  readonly lateMs: number;
}

/**
 * A batch begins now. Only a timer's lateness is made up for: a pause, a block or a slow batch must not be followed by a burst.
 */
export function paceAtStart(pace: Pace, nowMs: number, timerFired: boolean): Pace {
  const lagMs = Math.max(0, nowMs - pace.dueMs);
  const lateMs = Math.min(lagMs, timerFired ? paceCreditMs : pace.lateMs);
  return { dueMs: Math.max(pace.dueMs, nowMs - lateMs), lateMs };
}

/** The pace once a batch of so many records has gone out. */
export function paceAfter(pace: Pace, records: number, perSecond: number | null): Pace {
  return perSecond === null ? pace : { ...pace, dueMs: pace.dueMs + Math.ceil((records / perSecond) * 1_000) };
}

/** How long to wait until then; 0 for less than a timer is worth. */
export function paceWaitMs(dueMs: number, nowMs: number): number {
  return dueMs - nowMs < paceWaitMsMin ? 0 : dueMs - nowMs;
}

/** Wait between retries while `blocked`: 15 s doubling to 5 min, so that an hour costs the history about twenty tries. */
export function blockedRetryMs(tries: number): number {
  return Math.min(300_000, 15_000 * 2 ** Math.min(tries, 10));
}

/** How long one deliver step waits for a first record in a drained stream before the workflow looks at its signals again. */
export function idleWaitMs(idleMs: number, idleLimitMs: number): number {
  return Math.max(0, Math.min(10_000, idleLimitMs - idleMs));
}

/** Unacknowledged records of a durable: of the batch whose ACK is on its way, of the one being written, of the one pulled ahead. */
export function ackPendingMin(batchSize: number | null): number {
  return 3 * (batchSize ?? batchRecordsMax);
}

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

/** What holds a run back: ceilings, and the pace of the stream itself. */
export interface PaceLimits {
  /** Records; null: no limit. */
  readonly perSecond: number | null;
  /** Payload bytes; null: no limit. */
  readonly bytesPerSecond: number | null;
  /** null: as fast as it goes. */
  readonly original: OriginalPace | null;
}

/** The gaps between the records of the stream, divided by the factor, each at most so long. */
export interface OriginalPace {
  readonly factor: number;
  readonly gapMsMax: number;
}

export const noLimits: PaceLimits = { perSecond: null, bytesPerSecond: null, original: null };

/** Each batch is a step of its own. */
export function isLimited({ perSecond, bytesPerSecond, original }: PaceLimits): boolean {
  return perSecond !== null || bytesPerSecond !== null || original !== null;
}

/** With a rate limit a batch is at most one second's worth, so that a change of the limit is felt at once. */
export function limitBatchRecords(records: number, perSecond: number | null): number {
  return perSecond === null ? records : Math.max(1, Math.min(records, Math.floor(perSecond)));
}

/** The same for bytes; a single larger record comes alone. */
export function limitBatchBytes(bytes: number, bytesPerSecond: number | null): number {
  return bytesPerSecond === null ? bytes : Math.min(bytes, bytesPerSecond);
}

/** Records pulled before they are due go back to the durable: pull about as many as were due last. */
const duePullMin = 16;

export function dueBatchRecords(records: number, pace: Pace): number {
  return pace.dueRecords == null ? records : Math.min(records, Math.max(duePullMin, 2 * pace.dueRecords));
}

/** Temporal's timers fire up to a second late, so a pace is kept on average: lateness up to this much is made up for. */
const paceCreditMs = 1_500;
/** A shorter wait is not worth a timer: the next batch goes ahead, and the wait after it is longer. */
const paceWaitMsMin = 500;

/** The pace of a run that is held back. */
export interface Pace {
  /** When the next batch is due, milliseconds since the epoch. */
  readonly dueMs: number;
  /** Lateness of timers that is still to be made up for. */
  readonly lateMs: number;
  /** With the pace of the stream: the time in it, nanoseconds since the epoch, that is due then. Absent before the first record. */
  readonly streamNanos?: string;
  /** By which what is left until then was divided. */
  readonly factor?: number;
  /** Records of the last batch, when more had been pulled than were due. */
  readonly dueRecords?: number | null;
}

/**
 * A batch begins now. Only a timer's lateness is made up for: a pause, a block or a slow batch must not be followed by a burst.
 */
export function paceAtStart(pace: Pace, nowMs: number, timerFired: boolean): Pace {
  const lagMs = Math.max(0, nowMs - pace.dueMs);
  const lateMs = Math.min(lagMs, timerFired ? paceCreditMs : pace.lateMs);
  return { ...pace, dueMs: Math.max(pace.dueMs, nowMs - lateMs), lateMs };
}

/** What has gone out with a batch. */
export interface Sent {
  readonly records: number;
  readonly bytes: number;
  /** Absent: nothing was held back, and nothing asked for it. */
  readonly stretch?: Stretch | undefined;
}

/** Times in the stream of what was pulled, nanoseconds since the epoch; null: there was none. */
export interface Stretch {
  readonly firstNanos: string | null;
  /** The latest of what is due. */
  readonly lastNanos: string | null;
  /** Of the first record that was not due yet: it and what follows were left in the stream. */
  readonly heldNanos: string | null;
}

/** The pace once a batch has gone out. */
export function paceAfter(pace: Pace, { records, bytes, stretch }: Sent, limits: PaceLimits): Pace {
  const { perSecond, bytesPerSecond, original } = limits;
  const byRecords = perSecond === null ? 0 : Math.ceil((records / perSecond) * 1_000);
  const byBytes = bytesPerSecond === null ? 0 : Math.ceil((bytes / bytesPerSecond) * 1_000);
  const dueMs = pace.dueMs + Math.max(byRecords, byBytes);
  if (original === null || stretch === undefined) return { ...pace, dueMs };
  const paced = followStream(pace, stretch, original);
  return { ...paced, dueMs: Math.max(dueMs, paced.dueMs), dueRecords: stretch.heldNanos === null ? null : records };
}

function followStream(pace: Pace, { firstNanos, lastNanos, heldNanos }: Stretch, { factor, gapMsMax }: OriginalPace): Pace {
  const streamNanos = pace.streamNanos ?? firstNanos ?? heldNanos;
  if (streamNanos === null) return pace;
  const reached = lastNanos === null || BigInt(lastNanos) < BigInt(streamNanos) ? streamNanos : lastNanos;
  const next = heldNanos ?? reached;
  const dueMs = pace.dueMs + passedMs(streamNanos, reached, factor) + Math.min(gapMsMax, passedMs(reached, next, factor));
  return { ...pace, dueMs, streamNanos: next };
}

/** Times of a mirror may fall: what lies before counts as now. */
function passedMs(fromNanos: string, toNanos: string, factor: number): number {
  return Math.max(0, Math.ceil(Number(BigInt(toNanos) - BigInt(fromNanos)) / 1_000_000 / factor));
}

/** Up to where in the stream records are due. */
export interface Due {
  /** Nanoseconds since the epoch; null: the time of the first record. */
  readonly fromNanos: string | null;
  /** Nanoseconds from there on; below 0: what is due has not come yet. */
  readonly aheadNanos: string;
}

/** Looks ahead by as much as is not worth a timer. */
export function dueBy(pace: Pace, { factor }: OriginalPace, nowMs: number): Due {
  const aheadMs = nowMs + paceWaitMsMin - pace.dueMs;
  return { fromNanos: pace.streamNanos ?? null, aheadNanos: String(BigInt(Math.round(aheadMs * factor)) * 1_000_000n) };
}

/** Another factor holds for what is left of a gap, whenever it was asked for. */
export function paceAtFactor(pace: Pace, nowMs: number, { original }: PaceLimits): Pace {
  if (original === null || pace.factor === original.factor) return pace;
  const leftMs = Math.max(0, pace.dueMs - nowMs);
  if (pace.factor === undefined || leftMs === 0) return { ...pace, factor: original.factor };
  return { ...pace, dueMs: nowMs + Math.ceil((leftMs * pace.factor) / original.factor), factor: original.factor };
}

/** A wait was cut short: limits begin anew, and a gap of the stream goes on at the factor that holds now. */
export function paceInterrupted(pace: Pace, nowMs: number, limits: PaceLimits): Pace {
  return limits.original === null ? { ...pace, dueMs: nowMs, lateMs: 0 } : { ...paceAtFactor(pace, nowMs, limits), lateMs: 0 };
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

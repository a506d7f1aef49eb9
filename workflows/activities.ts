import { ActivityCancellationType, proxyActivities, type ActivityOptions } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

/**
 * One proxy per class of step. Retries here are the ones an operator cannot see, so they are few and short: what they do not
 * heal, the workflow itself holds as `blocked`. Each attempt counts against them, a lost worker's too.
 */
const shortRetries: ActivityOptions = {
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '4s', maximumAttempts: 5 },
};

/**
 * Moves records. A heartbeat every second tells a lost worker within five; the write itself may take long, so the limit of one
 * attempt only catches what heartbeats cannot.
 */
export const { deliverBatch, deadLetter, acknowledge, drainBatch, drainDeadLetters, removeDrained } =
  proxyActivities<Activities>({
    ...shortRetries,
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: '5s',
  });

/** Asks and tidies up: short, no heartbeat needed. */
export const { describeStream, rehearse, closeRun, requestCancel, probeTarget, describeSpool, lookAtHours } =
  proxyActivities<Activities>({
    ...shortRetries,
    startToCloseTimeout: '30s',
  });

/** Moves records of a topic from hot to cold; each is safe to do twice, also while a lost attempt of it still runs. */
export const { planSweep, nextSweepStep, storeSegment, recordSegment, purgeHot, mergeSegments, recordMerge, removeObjects } =
  proxyActivities<Activities>({
    ...shortRetries,
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: '5s',
  });

/** A topic may have many partitions with many objects; a heartbeat tells a lost worker. */
export const { listTopics, reconcileTopic } = proxyActivities<Activities>({
  ...shortRetries,
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '5s',
});

/** The report is also the result and a query: a file that cannot be written must not hold up the end of a run. */
export const { writeReport } = proxyActivities<Activities>({
  startToCloseTimeout: '10s',
  scheduleToCloseTimeout: '20s',
  retry: { initialInterval: '500ms', maximumAttempts: 3 },
});

import type { MetricMeter } from '@temporalio/common';
import { makeAcknowledge } from './acknowledge.ts';
import { makeCloseRun } from './close-run.ts';
import { makeDeadLetter } from './dead-letter.ts';
import { makeDeliverBatch } from './deliver-batch.ts';
import type { Deps } from './deps.ts';
import { makeDescribeSpool } from './describe-spool.ts';
import { makeDescribeStream } from './describe-stream.ts';
import { makeDrainBatch } from './drain-batch.ts';
import { makeDrainDeadLetters } from './drain-dead-letters.ts';
import { createFaultLog } from './fault-log.ts';
import { lookAtHours } from './look-at-hours.ts';
import { makeListTopics } from './list-topics.ts';
import { makeMergeSegments } from './merge-segments.ts';
import { createMetrics } from './metrics.ts';
import { makeNextSweepStep } from './next-sweep-step.ts';
import { makePlanSweep } from './plan-sweep.ts';
import { createPrefetch } from './prefetch.ts';
import { makeProbeTarget } from './probe-target.ts';
import { makePurgeHot } from './purge-hot.ts';
import { makeReconcileTopic } from './reconcile-topic.ts';
import { makeRecordMerge } from './record-merge.ts';
import { makeRecordSegment } from './record-segment.ts';
import { makeRehearse } from './rehearse.ts';
import { makeRemoveDrained } from './remove-drained.ts';
import { makeRemoveObjects } from './remove-objects.ts';
import { makeRequestCancel } from './request-cancel.ts';
import { makeStoreSegment } from './store-segment.ts';
import { makeWriteReport } from './write-report.ts';

/** The durable steps of a replay, and of a sweep: one exported function, one step, one file. */
export function createActivities(plain: Deps, meter: MetricMeter) {
  const metrics = createMetrics(meter);
  const deps = {
    ...plain,
    faults: createFaultLog(plain.log, (step, code) => metrics.failed(step, code)),
    prefetch: createPrefetch(plain.source),
  };
  return {
    describeStream: told(makeDescribeStream(deps), (_request, _answer, seconds) => metrics.described(seconds)),
    rehearse: makeRehearse(deps),
    deliverBatch: told(makeDeliverBatch(deps), metrics.delivered),
    deadLetter: told(makeDeadLetter(deps), metrics.deadLettered),
    acknowledge: told(makeAcknowledge(deps), metrics.acknowledged),
    closeRun: makeCloseRun(deps),
    lookAtHours,
    writeReport: makeWriteReport(deps),
    probeTarget: makeProbeTarget(deps),
    requestCancel: makeRequestCancel(deps),
    describeSpool: makeDescribeSpool(deps),
    drainBatch: makeDrainBatch(deps),
    drainDeadLetters: makeDrainDeadLetters(deps),
    removeDrained: makeRemoveDrained(deps),
    planSweep: makePlanSweep(deps),
    nextSweepStep: makeNextSweepStep(deps),
    storeSegment: makeStoreSegment(deps),
    recordSegment: makeRecordSegment(deps),
    purgeHot: makePurgeHot(deps),
    mergeSegments: makeMergeSegments(deps),
    recordMerge: makeRecordMerge(deps),
    removeObjects: makeRemoveObjects(deps),
    listTopics: makeListTopics(deps),
    reconcileTopic: makeReconcileTopic(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;

/** A step that tells the metrics when it has succeeded. */
function told<I, O>(
  step: (input: I) => Promise<O>,
  tell: (input: I, output: O, seconds: number) => void,
): (input: I) => Promise<O> {
  return async (input) => {
    const began = performance.now();
    const output = await step(input);
    tell(input, output, (performance.now() - began) / 1_000);
    return output;
  };
}

import { makeAcknowledge } from './acknowledge.ts';
import { makeCloseRun } from './close-run.ts';
import { makeDeadLetter } from './dead-letter.ts';
import { makeDeliverBatch } from './deliver-batch.ts';
import type { Deps } from './deps.ts';
import { makeDescribeStream } from './describe-stream.ts';
import { createFaultLog } from './fault-log.ts';
import { makeProbeTarget } from './probe-target.ts';
import { makeRehearse } from './rehearse.ts';
import { makeRequestCancel } from './request-cancel.ts';
import { makeWriteReport } from './write-report.ts';

/** The durable steps of a replay: one exported function, one step, one file. */
export function createActivities(plain: Deps) {
  const deps = { ...plain, faults: createFaultLog(plain.log) };
  return {
    describeStream: makeDescribeStream(deps),
    rehearse: makeRehearse(deps),
    deliverBatch: makeDeliverBatch(deps),
    deadLetter: makeDeadLetter(deps),
    acknowledge: makeAcknowledge(deps),
    closeRun: makeCloseRun(deps),
    writeReport: makeWriteReport(deps),
    probeTarget: makeProbeTarget(deps),
    requestCancel: makeRequestCancel(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;

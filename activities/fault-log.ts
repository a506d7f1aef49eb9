import type { ReplayFault } from '../core/errors.ts';
import type { Log } from './deps.ts';

/** Faults that are remembered; beyond it the oldest is forgotten, and may be told once more. */
const faultsMax = 1_000;

/** The step of one run: what a fault and its end are told about. */
export interface StepName {
  readonly step: string;
  readonly workflow: string | undefined;
}

/** Tells a fault when it comes and when it is over, not each time that the same step fails alike again. */
export interface FaultLog {
  failed(of: StepName, fault: ReplayFault): void;
  healed(of: StepName): void;
}

/** `count` hears of every failed attempt, also of those that are not told again. */
export function createFaultLog(log: Log, count: (step: string, code: string) => void = () => undefined): FaultLog {
  const standing = new Map<string, string>();
  const keyOf = ({ step, workflow }: StepName): string => JSON.stringify([workflow, step]);
  return {
    failed(of, fault) {
      count(of.step, fault.code);
      const key = keyOf(of);
      if (standing.get(key) === fault.code) return;
      standing.delete(key);
      standing.set(key, fault.code);
      if (standing.size > faultsMax) standing.delete(standing.keys().next().value!);
      // A driver's text may hold values of records: the cause is told by name, code and place only.
      log.warn({ code: fault.code, ...of, error: fault.cause ?? fault }, `step failed: ${fault.message}`);
    },
    healed(of) {
      const key = keyOf(of);
      const code = standing.get(key);
      if (code === undefined) return;
      standing.delete(key);
      log.info({ code, ...of }, 'step works again');
    },
  };
}

export function stepOf(info: {
  readonly activityType: string;
  readonly workflowExecution?: { readonly workflowId: string } | undefined;
}): StepName {
  return { step: info.activityType, workflow: info.workflowExecution?.workflowId };
}

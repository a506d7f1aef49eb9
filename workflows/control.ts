import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  setHandler,
  TimeoutFailure,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import { faultEntry, isFaultCode, type FaultCode } from '../core/errors.ts';
import { blockedRetryMs } from '../core/pacing.ts';
import type { BlockedBy, ReplayState } from '../core/progress.ts';
import { isoTime } from '../core/report.ts';
import { requestCancel } from './activities.ts';
import { decisions, type Decision } from '../core/run.ts';
import {
  cancelSignal,
  decideUpdate,
  pauseSignal,
  resumeSignal,
  searchAttributes,
  setRateUpdate,
  type Decide,
  type SetRate,
} from './messages.ts';

/** Between tries of a clean-up step after a cancellation, milliseconds. */
const cleanupRetryMs = 5_000;

/** What the operator asked for, and what the plan shows of itself. Lives as long as one workflow run. */
export interface Control {
  state: ReplayState;
  /** The state to go back to when a block or a pause ends. */
  working: 'describing' | 'running';
  problem: BlockedBy | null;
  paused: boolean;
  /** undefined: nobody has changed the plan's own limit. */
  ratePerSecond: number | null | undefined;
  /** How often `resume` was sent: a waiting block compares it. */
  resumes: number;
  /** While a record blocks the plan: whether it may be dead-lettered. null: there is nothing to decide. */
  deciding: { readonly deadLetter: boolean } | null;
  decision: Decision | null;
  cancelRequested: boolean;
  /** False until describing has found that the server knows our search attributes: an unknown one blocks the workflow task. */
  hasSearchAttributes: boolean;
  pausedMs: number;
  blockedMs: number;
  /** Called when what the plan shows of itself has changed. */
  show: () => void;
}

export function createControl(carried: Pick<Control, 'paused' | 'ratePerSecond'> | undefined): Control {
  return {
    state: 'describing',
    working: 'describing',
    problem: null,
    paused: carried?.paused ?? false,
    ratePerSecond: carried?.ratePerSecond,
    resumes: 0,
    deciding: null,
    decision: null,
    cancelRequested: false,
    hasSearchAttributes: false,
    pausedMs: 0,
    blockedMs: 0,
    show: () => undefined,
  };
}

export function handleMessages(control: Control): void {
  setHandler(pauseSignal, () => void (control.paused = true), {
    description:
      'Stop after the batch in flight, for as long as you like. No input needed; {"by":"ann","reason":"..."} is kept in the history.',
  });
  setHandler(
    resumeSignal,
    () => {
      control.paused = false;
      control.resumes++;
    },
    { description: 'Go on after pause; try again at once when blocked. No input needed.' },
  );
  setHandler(cancelSignal, () => requestCancel().catch(() => undefined), {
    description: 'Cancel the replay: same as Request Cancellation. No input needed.',
  });
  setHandler(
    setRateUpdate,
    ({ perSecond }: SetRate) => {
      control.ratePerSecond = perSecond;
      return { perSecond };
    },
    {
      description: 'Set the ceiling in records a second, at once: {"perSecond":500}. {"perSecond":null} lifts it.',
      validator: validateRate,
    },
  );
  setHandler(
    decideUpdate,
    ({ decision }: Decide) => {
      control.decision = decision;
      return { decision };
    },
    {
      description:
        'While refused records block the plan, settle those of the batch in question: {"decision":"dead-letter"}, {"decision":"skip"} (left out for good, listed in the report) or {"decision":"retry"}.',
      validator: (input: Decide | undefined) => validateDecision(control, input),
    },
  );
  CancellationScope.current().cancelRequested.catch(() => {
    control.cancelRequested = true;
  });
}

function validateRate(input: SetRate | undefined): void {
  const rate: unknown = input?.perSecond;
  if (rate === null) return;
  if (typeof rate !== 'number' || !Number.isInteger(rate) || rate < 1 || rate > 1_000_000) {
    throw ApplicationFailure.nonRetryable(
      'perSecond: expected a whole number from 1 to 1000000, or null for no limit; for example {"perSecond":500}',
      'InvalidRate',
    );
  }
}

function validateDecision({ deciding }: Control, input: Decide | undefined): void {
  const decision: unknown = input?.decision;
  if (!decisions.some((one) => one === decision)) {
    throw invalidDecision('decision: expected dead-letter, skip or retry; for example {"decision":"skip"}');
  }
  if (deciding === null) throw invalidDecision('no refused record blocks this plan, so there is nothing to decide');
  if (decision === 'dead-letter' && !deciding.deadLetter) {
    throw invalidDecision('the target names no dead-letter subject; decide skip or retry');
  }
}

function invalidDecision(message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, 'InvalidDecision');
}

export function enter(control: Control, state: ReplayState): void {
  if (control.state === state) return;
  control.state = state;
  control.show();
  if (control.hasSearchAttributes) upsertSearchAttributes([{ key: searchAttributes.state, value: state }]);
}

/** Holds the plan while it is paused. Ends by `resume` or by cancellation (which throws). */
export async function whilePaused(control: Control): Promise<void> {
  if (!control.paused) return;
  const since = Date.now();
  enter(control, 'paused');
  await condition(() => !control.paused);
  control.pausedMs += Date.now() - since;
  enter(control, control.working);
}

/**
 * Repeats a step until it succeeds. Short retries are Temporal's; what they do not heal shows as `blocked` with its problem,
 * is tried again slowly, and at once on `resume`. A fault of credentials waits for `resume` alone.
 */
export async function healed<T>(control: Control, step: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    const { resumes } = control;
    try {
      const result = await step();
      unblock(control);
      return result;
    } catch (error) {
      const fault = faultOf(error);
      const retryMs = faultEntry(fault.code).credential === true ? null : blockedRetryMs(tries);
      await blocked(control, { ...fault, retryMs, resumes });
    }
  }
}

interface Fault {
  readonly code: FaultCode;
  readonly detail: string | null;
}

interface Block extends Fault {
  /** Milliseconds to the next try; null: only `resume` tries again. */
  readonly retryMs: number | null;
  /** Count of `resume` when the failed step began: one that came since then counts. */
  readonly resumes: number;
}

/** Blocked by refused records: answers what an operator decides about them; null: he said `resume`. */
export async function untilDecided(control: Control, block: Block, deadLetter: boolean): Promise<Decision | null> {
  control.deciding = { deadLetter };
  control.decision = null;
  try {
    await blocked(control, block);
    return control.decision;
  } finally {
    control.deciding = null;
  }
}

/** Waits for `resume` or for the time of the next try. The end of the surrounding scope throws. */
async function blocked(control: Control, block: Block): Promise<void> {
  const now = Date.now();
  control.problem = {
    code: block.code,
    detail: block.detail,
    since: control.problem?.code === block.code ? control.problem.since : isoTime(now),
    next: faultEntry(block.code).next,
    retry_at: block.retryMs === null ? null : isoTime(now + block.retryMs),
  };
  enter(control, 'blocked');
  control.show();
  const resumed = (): boolean => control.resumes > block.resumes || (control.deciding !== null && control.decision !== null);
  // Steps shielded from a cancellation (dead letters, ACKs) are tried again quickly for as long as the clean-up may last.
  if (control.cancelRequested) await condition(resumed, cleanupRetryMs);
  else if (block.retryMs === null) await condition(() => resumed() || control.cancelRequested);
  else await condition(() => resumed() || control.cancelRequested, block.retryMs);
  control.blockedMs += Date.now() - now;
}

export function unblock(control: Control): void {
  if (control.problem === null) return;
  control.problem = null;
  enter(control, control.cancelRequested ? 'cancelling' : control.working);
}

/** The fault behind a failed step. Failures of activities are made in activities/failure.ts. */
function faultOf(error: unknown): Fault {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof ApplicationFailure && cause.type != null && isFaultCode(cause.type)) {
    const detail: unknown = cause.details?.[0];
    return { code: cause.type, detail: typeof detail === 'string' ? detail : null };
  }
  if (cause instanceof TimeoutFailure) return { code: 'step_timeout', detail: null };
  if (cause instanceof ApplicationFailure) return { code: 'unexpected', detail: null };
  throw error;
}

/** Moves the waits since the last call to the run, whose report tells them. */
export function addWaits(run: { pausedMs: number; blockedMs: number }, control: Control): void {
  run.pausedMs += control.pausedMs;
  run.blockedMs += control.blockedMs;
  control.pausedMs = 0;
  control.blockedMs = 0;
}

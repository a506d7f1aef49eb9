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
import { planDefaults, planLimits, type IntegerLimits } from '../core/limits.ts';
import { blockedRetryMs, type PaceLimits } from '../core/pacing.ts';
import type { ReplayPlan } from '../core/plan.ts';
import type { BlockedBy, ReplayState, Waiting } from '../core/progress.ts';
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
  /** What was asked for while the replay ran, the records a second apart. */
  asked: Omit<SetRate, 'perSecond'>;
  waiting: Waiting | null;
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

/** Goes through continue-as-new. `asked` is absent in runs of older code. */
export type CarriedControl = Pick<Control, 'paused' | 'ratePerSecond'> & Partial<Pick<Control, 'asked'>>;

export function carriedControl({ paused, ratePerSecond, asked }: Control): CarriedControl {
  return { paused, ratePerSecond, asked };
}

export function createControl(carried: CarriedControl | undefined): Control {
  return {
    state: 'describing',
    working: 'describing',
    problem: null,
    paused: carried?.paused ?? false,
    ratePerSecond: carried?.ratePerSecond,
    asked: carried?.asked ?? {},
    waiting: null,
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

/** `rates`: what the workflow can be told about its pace. */
export function handleMessages(control: Control, rates: readonly (keyof SetRate)[]): void {
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
    ({ perSecond, ...more }: SetRate) => {
      if (perSecond !== undefined) control.ratePerSecond = perSecond;
      if (Object.keys(more).length > 0) control.asked = { ...control.asked, ...more };
      return perSecond === undefined ? more : { perSecond, ...more };
    },
    { description: rateDescription(rates), validator: (input: SetRate | undefined) => validateRate(input, rates) },
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

function rateDescription(rates: readonly (keyof SetRate)[]): string {
  const records = 'Set the ceiling in records a second, at once: {"perSecond":500}. {"perSecond":null} lifts it.';
  if (rates.length === 1) return records;
  return (
    `${records} In bytes: {"bytesPerSecond":1048576}. Of a plan with "pace": {"factor":10} is ten times as fast as the stream was. ` +
    '{"allowedHours":null} lets it work at any hour.'
  );
}

function validateRate(input: unknown, rates: readonly (keyof SetRate)[]): void {
  const given = typeof input === 'object' && input !== null ? Object.entries(input) : [];
  if (given.length === 0)
    throw invalidRate('expected perSecond; for example {"perSecond":500}, or {"perSecond":null} for no limit');
  for (const [name, value] of given) {
    const field = rates.find((one) => one === name);
    if (field === undefined) throw invalidRate(`${name}: not known here; expected ${rates.join(', ')}`);
    const expected = rateExpected(field, value);
    if (expected !== null) throw invalidRate(`${field}: ${expected}`);
  }
}

/** null: the value is right. */
function rateExpected(field: keyof SetRate, value: unknown): string | null {
  switch (field) {
    case 'perSecond':
      return wholeExpected(value, planLimits.rate_limit_per_second, '{"perSecond":500}');
    case 'bytesPerSecond':
      return wholeExpected(value, planLimits.rate_limit_bytes_per_second, '{"bytesPerSecond":1048576}');
    case 'factor': {
      const { min, max } = planLimits.pace_factor;
      const fits = typeof value === 'number' && value >= min && value <= max;
      return fits ? null : `expected a number from ${min} to ${max}; for example {"factor":10}`;
    }
    case 'allowedHours':
      return value === null ? null : 'expected null, which lifts them; other hours need another plan';
  }
}

function wholeExpected(value: unknown, { min, max }: IntegerLimits, example: string): string | null {
  const fits = value === null || (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max);
  return fits ? null : `expected a whole number from ${min} to ${max}, or null for no limit; for example ${example}`;
}

function invalidRate(message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, 'InvalidRate');
}

type PacedPlan = Pick<ReplayPlan, 'rate_limit_bytes_per_second' | 'pace' | 'pace_factor' | 'pace_gap_seconds_max'>;

/** What holds a run back now: what was asked for, else the plan. */
export function limitsOf({ ratePerSecond, asked }: Control, plan: PacedPlan = {}): PaceLimits {
  const factor = asked.factor ?? plan.pace_factor ?? planDefaults.pace_factor;
  const gapMsMax = (plan.pace_gap_seconds_max ?? planDefaults.pace_gap_seconds_max) * 1_000;
  return {
    perSecond: ratePerSecond ?? null,
    bytesPerSecond: asked.bytesPerSecond === undefined ? (plan.rate_limit_bytes_per_second ?? null) : asked.bytesPerSecond,
    original: plan.pace == null ? null : { factor, gapMsMax },
  };
}

interface Wait {
  readonly for: Waiting['for'];
  readonly dueMs: number;
}

/** Waits between two batches, and shows until when. True: something that was asked for cut it short. Cancellation throws. */
export async function waitUntil(control: Control, { for: reason, dueMs }: Wait): Promise<boolean> {
  const { ratePerSecond, asked } = control;
  control.waiting = { for: reason, until: isoTime(dueMs) };
  control.show();
  try {
    const changed = (): boolean => control.ratePerSecond !== ratePerSecond || control.asked !== asked || control.paused;
    return await condition(changed, dueMs - Date.now());
  } finally {
    control.waiting = null;
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

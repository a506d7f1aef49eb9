import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { WorkflowExecutionInfo } from '@temporalio/client';
import type { Approval } from '../core/approval.ts';
import type { Problem } from '../core/problems.ts';
import { formatProblems } from '../core/problems.ts';
import type { Progress, ReplayState } from '../core/progress.ts';
import type { Report } from '../core/report.ts';
import type { DrainRequest } from '../core/drain.ts';
import type { Decision } from '../core/run.ts';
import type { ReplayRequest } from '../core/steps.ts';
import { temporalFault } from '../platform/temporal.ts';
import type { checkTarget as checkTargetWorkflow } from '../workflows/check-target.ts';
import * as messages from '../workflows/messages.ts';
import type { drainSpool } from '../workflows/drain-spool.ts';
import type { replayPlan } from '../workflows/replay-plan.ts';
import { completed, endedOtherwise, withReport, type ReplayResult } from './ending.ts';
import { checkRequest } from './request.ts';
import { startDetails, startSummary } from './start-details.ts';

/** Calls that Temporal answers by itself. */
const callMs = 10_000;
/** Calls that a worker answers: longer than a lost worker's sticky queue (5 s). */
const workerCallMs = 10_000;
const busyRetryMs = 300;
const checkMs = 60_000;
/** A lost worker stalls a run for no longer than this. */
const workflowTaskTimeout = '5s';

export interface StartOptions {
  /** Default: `replay:STREAM:DURABLE`, dry runs `replay-dry:STREAM:DURABLE`. */
  readonly workflowId?: string;
}

export interface ReplayHandle {
  readonly id: string;
  /** First run of the chain when this handle started it; null otherwise. */
  readonly runId: string | null;
  facts(): Promise<RunFacts>;
  /** `signal` ends only the waiting. */
  progress(signal?: AbortSignal): Promise<Progress>;
  /** null: the plan has not been described (yet). */
  report(): Promise<Report | null>;
  pause(request?: messages.Request): Promise<void>;
  resume(request?: messages.Request): Promise<void>;
  /** Asks; the run ends once its batch in flight is settled. */
  cancel(): Promise<void>;
  /** Records a second; null lifts the limit. */
  /** Records a second (null: no limit), or more of what holds a replay back. */
  setRate(rate: number | null | messages.SetRate): Promise<void>;
  /** About the refused records that block the run. */
  decide(decision: Decision): Promise<void>;
  /** Who approves what was rehearsed, and why. Resolves when the approval was taken. */
  approve(approval: Approval): Promise<void>;
  /** What optional children of a fan-out still miss; null: not described yet. */
  optionalFailures(): Promise<messages.OptionalFailures | null>;
  /** Waits for the end of the run; `signal` ends only the waiting. */
  result(signal?: AbortSignal): Promise<ReplayResult>;
}

/** What Temporal itself knows of a run; needs no worker. */
export interface RunFacts {
  readonly workflow_id: string;
  readonly run_id: string;
  readonly type: string;
  readonly open: boolean;
  /** null: the server does not keep our search attributes, so that only the run itself can say. */
  readonly state: ReplayState | null;
  readonly stream: string | null;
  readonly sink: string | null;
  readonly rejected: number | null;
  readonly started_at: string;
  readonly closed_at: string | null;
}

/** Thrown by `startReplay`: nothing was sent to Temporal. */
export class RequestRefused extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(formatProblems(problems));
    this.name = 'RequestRefused';
    this.problems = problems;
  }
}

/** Thrown by `startReplay`: the same replay is running. */
export class AlreadyRunning extends Error {
  readonly workflowId: string;

  constructor(workflowId: string) {
    super(
      `${workflowId} is running already; nothing was started. See it: replay-stream status ${workflowId} - end it: replay-stream cancel ${workflowId}`,
    );
    this.name = 'AlreadyRunning';
    this.workflowId = workflowId;
  }
}

/** Starts a plan. Throws RequestRefused or AlreadyRunning; what only the worker can see refuses the run itself (`result`). */
export async function startReplay(
  client: Client,
  request: ReplayRequest,
  options: StartOptions = {},
): Promise<ReplayHandle & { readonly runId: string }> {
  const checked = checkRequest(request, Date.now());
  if (!checked.ok) throw new RequestRefused(checked.problems);
  const workflowId = options.workflowId ?? messages.replayWorkflowId(checked.value.plan);
  try {
    const started = await timed(client, callMs, () =>
      client.workflow.start<typeof replayPlan>(messages.workflowType, {
        taskQueue: messages.taskQueue,
        workflowId,
        workflowIdConflictPolicy: 'FAIL',
        workflowTaskTimeout,
        args: [request],
        staticSummary: startSummary(checked.value),
        staticDetails: startDetails(checked.value),
      }),
    );
    return { ...replayHandle(client, workflowId), runId: started.firstExecutionRunId };
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) throw new AlreadyRunning(workflowId);
    throw error;
  }
}

/** Starts the drain of a spool. Throws AlreadyRunning; what is wrong with it refuses the run itself (`result`). */
export async function startDrain(
  client: Client,
  request: DrainRequest,
  { name, dryRun }: { readonly name: string; readonly dryRun: boolean },
): Promise<ReplayHandle & { readonly runId: string }> {
  const workflowId = messages.drainWorkflowId(name, dryRun);
  try {
    const started = await timed(client, callMs, () =>
      client.workflow.start<typeof drainSpool>(messages.drainType, {
        taskQueue: messages.taskQueue,
        workflowId,
        workflowIdConflictPolicy: 'FAIL',
        workflowTaskTimeout,
        args: [request],
        staticSummary: `drain of the spool ${name}`,
      }),
    );
    return { ...replayHandle(client, workflowId), runId: started.firstExecutionRunId };
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) throw new AlreadyRunning(workflowId);
    throw error;
  }
}

/** A replay by its workflow id, whoever started it; the latest run of that id. */
export function replayHandle(client: Client, id: string): ReplayHandle {
  const handle = client.workflow.getHandle<typeof replayPlan>(id);
  const ask = <T>(call: () => Promise<T>): Promise<T> => timed(client, callMs, call);
  const askWorker = <T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> => timedForWorker(client, call, signal);
  const report = (): Promise<Report | null> => askWorker(() => handle.query(messages.reportQuery));
  return {
    id,
    runId: null,
    report,
    facts: async () => factsOf(await ask(() => handle.describe())),
    progress: (signal) => askWorker(() => handle.query(messages.progressQuery), signal),
    pause: (request = {}) => ask(() => handle.signal(messages.pauseSignal, request)),
    resume: (request = {}) => ask(() => handle.signal(messages.resumeSignal, request)),
    cancel: async () => void (await ask(() => handle.cancel())),
    setRate: async (rate) => {
      const args: [messages.SetRate] = [typeof rate === 'object' && rate !== null ? rate : { perSecond: rate }];
      await askWorker(() => handle.executeUpdate(messages.setRateUpdate, { args }));
    },
    decide: async (decision) =>
      void (await askWorker(() => handle.executeUpdate(messages.decideUpdate, { args: [{ decision }] }))),
    approve: async (approval) =>
      void (await askWorker(() => handle.executeUpdate(messages.approveUpdate, { args: [approval] }))),
    optionalFailures: () => askWorker(() => handle.query(messages.optionalFailuresQuery)),
    async result(signal) {
      try {
        return completed(await within(client, signal, () => handle.result()));
      } catch (error) {
        const ended = endedOtherwise(error);
        return ended.state === 'refused' ? ended : withReport(ended, await report().catch(() => null));
      }
    },
  };
}

/** What a worker finds at the destination. Throws RequestRefused for what only the worker can refuse, ReplayFault when it cannot look. */
export async function probeTarget(
  client: Client,
  request: ReplayRequest,
  workflowId: string,
): Promise<Awaited<ReturnType<typeof checkTargetWorkflow>>> {
  try {
    return await timed(client, checkMs + callMs, () =>
      client.workflow.execute<typeof checkTargetWorkflow>('checkTarget', {
        taskQueue: messages.taskQueue,
        workflowId,
        workflowExecutionTimeout: checkMs,
        workflowTaskTimeout,
        args: [request],
        staticSummary: 'check of a target',
      }),
    );
  } catch (error) {
    if (temporalFault(error) !== null) throw error;
    const ended = endedOtherwise(error);
    if (ended.state === 'refused') throw new RequestRefused(ended.problems);
    throw (
      ended.fault ??
      new Error(`The check did not finish within ${checkMs / 1_000} s. See the worker log, then try again.`, { cause: error })
    );
  }
}

export interface ListOptions {
  readonly closedToo: boolean;
  readonly state: ReplayState | null;
  readonly limit: number;
}

export interface ReplayList {
  readonly replays: readonly RunFacts[];
  /** There are more than `limit`. */
  readonly more: boolean;
}

/** Runs of any id, open ones first, newest first. Continue-as-new links count as the one run that they are. */
export async function listReplays(client: Client, { closedToo, state, limit }: ListOptions): Promise<ReplayList> {
  const conditions = [`WorkflowType IN ("${messages.workflowType}", "${messages.drainType}")`];
  conditions.push(closedToo ? `ExecutionStatus != "ContinuedAsNew"` : `ExecutionStatus = "Running"`);
  if (state !== null) conditions.push(`${messages.searchAttributes.state.name} = "${state}"`);
  return await timed(client, callMs, async () => {
    const replays: RunFacts[] = [];
    for await (const info of client.workflow.list({ query: conditions.join(' AND '), pageSize: Math.min(limit + 1, 1_000) })) {
      if (replays.length === limit) return { replays, more: true };
      replays.push(factsOf(info));
    }
    return { replays, more: false };
  });
}

/** null: Temporal knows no workflow of this id (any more). */
export async function findReplay(client: Client, id: string): Promise<RunFacts | null> {
  try {
    return await replayHandle(client, id).facts();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** The latest run that a Schedule started under this id and a time, an open one first; null: there is none. */
export async function findScheduled(client: Client, id: string): Promise<RunFacts | null> {
  const query = `WorkflowType = "${messages.workflowType}" AND ExecutionStatus != "ContinuedAsNew" AND WorkflowId STARTS_WITH "${id}-2"`;
  return await timed(client, callMs, async () => {
    for await (const info of client.workflow.list({ query, pageSize: 1 })) return factsOf(info);
    return null;
  });
}

function timed<T>(client: Client, ms: number, call: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + ms, call);
}

/** Only a few queries wait in line for a worker; a further one is turned away at once, and tries again here. */
async function timedForWorker<T>(client: Client, call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const deadline = Date.now() + workerCallMs;
  for (;;) {
    try {
      return await client.withDeadline(deadline, () => within(client, signal, call));
    } catch (error) {
      if (temporalFault(error) !== 'busy' || Date.now() + busyRetryMs > deadline || signal?.aborted) throw error;
      await sleep(busyRetryMs);
    }
  }
}

/** `client.withAbortSignal` leaves a listener behind with each call, so that each is given a signal of its own. */
async function within<T>(client: Client, signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
  if (signal === undefined) return await call();
  const own = new AbortController();
  const abort = (): void => own.abort();
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await client.withAbortSignal(own.signal, call);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function factsOf(info: Omit<WorkflowExecutionInfo, 'raw'>): RunFacts {
  const { typedSearchAttributes: attributes, status } = info;
  const open = status.name === 'RUNNING' || status.name === 'PAUSED';
  const state = attributes.get(messages.searchAttributes.state) ?? null;
  return {
    workflow_id: info.workflowId,
    run_id: info.runId,
    type: info.type,
    open,
    state: open ? (state as ReplayState | null) : closedState(status.name, state as ReplayState | null),
    stream: attributes.get(messages.searchAttributes.stream) ?? null,
    sink: attributes.get(messages.searchAttributes.sink) ?? null,
    rejected: attributes.get(messages.searchAttributes.rejected) ?? null,
    started_at: info.startTime.toISOString(),
    closed_at: info.closeTime?.toISOString() ?? null,
  };
}

/** A run that was ended from outside could not note its own end. */
function closedState(status: WorkflowExecutionInfo['status']['name'], state: ReplayState | null): ReplayState | null {
  switch (status) {
    case 'COMPLETED':
      return state ?? 'completed';
    case 'CANCELLED':
      return 'canceled';
    default:
      return state === 'refused' ? state : 'failed';
  }
}

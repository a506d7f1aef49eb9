import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type Client,
  type ScheduleOptionsAction,
  type ScheduleOptionsStartWorkflowAction,
  type ScheduleSummary,
} from '@temporalio/client';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReplayState } from '../core/progress.ts';
import * as messages from '../workflows/messages.ts';
import type { Workflow } from '@temporalio/common';
import type { reconcileTopics } from '../workflows/reconcile-topics.ts';
import type { replayPlan } from '../workflows/replay-plan.ts';
import { CommandFailure } from './failure.ts';
import { findReplay } from './replays.ts';
import type { CheckedRequest } from './request.ts';
import { startDetails, startSummary } from './start-details.ts';

/** Schedules of Temporal that start replays. */

const callMs = 10_000;
const triggerMsMax = 10_000;
const triggerPollMs = 100;
const workflowTaskTimeout = '5s';

/** When runs are due: at a cron line, or every so often since the epoch. */
export type Due = { readonly cron: string; readonly timezone: string } | { readonly everySeconds: number };

export interface NewSchedule {
  readonly name: string;
  readonly due: Due;
  readonly jitterSeconds: number;
  readonly catchUpSeconds: number;
  readonly paused: boolean;
  readonly pauseOnFailure: boolean;
  readonly note: string | null;
}

export interface ScheduleFacts {
  readonly name: string;
  readonly paused: boolean;
  readonly note: string | null;
  /** RFC 3339; null: none is due. */
  readonly next_at: string | null;
  /** The latest first. */
  readonly last: readonly { readonly workflow_id: string; readonly state: ReplayState | null; readonly started_at: string }[];
}

/** A run that is due while the last one goes on is left out. Throws CommandFailure when the name is taken. */
export async function createSchedule(client: Client, checked: CheckedRequest, options: NewSchedule): Promise<void> {
  await create<typeof replayPlan>(client, options, {
    type: 'startWorkflow',
    workflowType: messages.workflowType,
    workflowId: messages.replayWorkflowId(checked.plan),
    taskQueue: messages.taskQueue,
    workflowTaskTimeout,
    args: [checked.request],
    staticSummary: startSummary(checked),
    staticDetails: startDetails(checked),
  });
}

/** The same of the repair of all topics. */
export async function createReconcileSchedule(client: Client, options: NewSchedule): Promise<void> {
  await create<typeof reconcileTopics>(client, options, {
    type: 'startWorkflow',
    workflowType: messages.reconcileType,
    workflowId: messages.reconcileWorkflowId(null),
    taskQueue: messages.taskQueue,
    workflowTaskTimeout,
    args: [{ topic: null }],
    staticSummary: 'repair of topics',
  });
}

async function create<W extends Workflow>(
  client: Client,
  { name, due, jitterSeconds, catchUpSeconds, paused, pauseOnFailure, note }: NewSchedule,
  action: ScheduleOptionsAction & ScheduleOptionsStartWorkflowAction<W>,
): Promise<void> {
  try {
    await timed(client, () =>
      client.schedule.create({
        scheduleId: name,
        spec: {
          ...('cron' in due
            ? { cronExpressions: [due.cron], timezone: due.timezone }
            : { intervals: [{ every: due.everySeconds * 1_000 }] }),
          ...(jitterSeconds > 0 ? { jitter: jitterSeconds * 1_000 } : {}),
        },
        action,
        policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: catchUpSeconds * 1_000, pauseOnFailure },
        state: { paused, ...(note === null ? {} : { note }) },
      }),
    );
  } catch (error) {
    // So the client tells of a time that Temporal cannot read.
    if (error instanceof TypeError) {
      throw new CommandFailure(`Temporal cannot read when it is due: ${error.message}. Mend --cron or --timezone.`, 'refused', {
        cause: error,
      });
    }
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    throw new CommandFailure(
      `There is a Schedule ${name} already. Remove it first: replay-stream schedule delete ${name}`,
      'refused',
      {
        cause: error,
      },
    );
  }
}

const listedTypes: readonly (string | undefined)[] = [messages.workflowType, messages.reconcileType];

export async function listSchedules(client: Client): Promise<ScheduleFacts[]> {
  const found: ScheduleFacts[] = [];
  for await (const summary of client.schedule.list()) {
    if (listedTypes.includes(summary.action?.workflowType)) found.push(await factsOf(client, summary));
  }
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

async function factsOf(client: Client, { scheduleId, state, info }: ScheduleSummary): Promise<ScheduleFacts> {
  const last = await Promise.all(
    info.recentActions.toReversed().map(async ({ action, takenAt }) => {
      const { workflowId } = action.workflow;
      const facts = await findReplay(client, workflowId);
      const running = facts?.open === true ? 'running' : null;
      return { workflow_id: workflowId, state: facts?.state ?? running, started_at: takenAt.toISOString() };
    }),
  );
  const [next] = info.nextActionTimes;
  return {
    name: scheduleId,
    paused: state.paused,
    note: state.note === undefined || state.note === '' ? null : state.note,
    next_at: next === undefined || state.paused ? null : next.toISOString(),
    last,
  };
}

export async function pauseSchedule(client: Client, name: string, reason: string | null): Promise<void> {
  await onSchedule(client, name, (handle) => handle.pause(reason ?? 'paused by replay-stream'));
}

export async function resumeSchedule(client: Client, name: string, reason: string | null): Promise<void> {
  await onSchedule(client, name, (handle) => handle.unpause(reason ?? 'resumed by replay-stream'));
}

export async function deleteSchedule(client: Client, name: string): Promise<void> {
  await onSchedule(client, name, (handle) => handle.delete());
}

/** Id of the run that it started. Throws CommandFailure while the last run goes on: Temporal itself would say nothing. */
export async function triggerSchedule(client: Client, name: string): Promise<string> {
  return await onSchedule(client, name, async (handle) => {
    const before = (await handle.describe()).info;
    const [running] = before.runningActions;
    if (running !== undefined) {
      const id = running.workflow.workflowId;
      throw new CommandFailure(
        `The last run of ${name} goes on, so nothing was started. See it: replay-stream status ${id} - end it: replay-stream cancel ${id}`,
        'refused',
      );
    }
    const known = new Set(before.recentActions.map(({ action }) => action.workflow.firstExecutionRunId));
    await handle.trigger(ScheduleOverlapPolicy.SKIP);
    for (const deadline = Date.now() + triggerMsMax; Date.now() < deadline; await sleep(triggerPollMs)) {
      const { info } = await handle.describe();
      const started = info.recentActions.find(({ action }) => !known.has(action.workflow.firstExecutionRunId));
      if (started !== undefined) return started.action.workflow.workflowId;
    }
    throw new CommandFailure(
      `Temporal took the request but ${name} has started nothing yet. Look: replay-stream schedule list`,
    );
  });
}

type Handle = ReturnType<Client['schedule']['getHandle']>;

async function onSchedule<T>(client: Client, name: string, call: (handle: Handle) => Promise<T>): Promise<T> {
  try {
    return await timed(client, () => call(client.schedule.getHandle(name)));
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    throw new CommandFailure(
      `Temporal knows no Schedule ${name}. Those that there are: replay-stream schedule list`,
      'failed',
      {
        cause: error,
      },
    );
  }
}

function timed<T>(client: Client, call: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + 2 * callMs, call);
}

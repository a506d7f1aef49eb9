import type { Client } from '@temporalio/client';
import type { MetricMeter } from '@temporalio/common';
import { metricCatalogue } from '../core/metrics.ts';
import { searchAttributes, workflowType } from '../workflows/messages.ts';

/** Between two looks, milliseconds. */
const lookMs = 15_000;
const callMs = 5_000;
const states = ['running', 'paused', 'blocked', 'awaiting_approval'] as const;
/** temporal.api.enums.v1.TaskQueueType */
const queueKinds = { workflow: 1, activity: 2 } as const;

/** What only Temporal knows: how many plans stand where, and what waits for a worker. Ends when the signal aborts. */
export function startGauges(
  client: Client,
  { meter, queue, signal }: { readonly meter: MetricMeter; readonly queue: string; readonly signal: AbortSignal },
): void {
  const { replay_plans: plans, replay_backlog_tasks: backlog } = metricCatalogue;
  const planGauge = meter.createGauge('replay_plans', 'int', undefined, plans.meaning);
  const backlogGauge = meter.createGauge('replay_backlog_tasks', 'int', undefined, backlog.meaning);

  async function countPlans(): Promise<void> {
    for (const state of states) {
      const query = `WorkflowType = "${workflowType}" AND ExecutionStatus = "Running" AND ${searchAttributes.state.name} = "${state}"`;
      const { count } = await client.workflow.count(query);
      planGauge.set(count, { state });
    }
  }

  async function countBacklog(): Promise<void> {
    const { namespace } = client.options;
    for (const [kind, taskQueueType] of Object.entries(queueKinds)) {
      const request = { namespace, taskQueue: { name: queue }, taskQueueType, reportStats: true };
      const { stats } = await client.workflowService.describeTaskQueue(request);
      backlogGauge.set(Number(stats?.approximateBacklogCount ?? 0), { kind });
    }
  }

  // A gauge that cannot be had is left out: metrics never hold up a worker.
  const look = async (): Promise<void> => {
    await client.withDeadline(Date.now() + callMs, countPlans).catch(() => undefined);
    await client.withDeadline(Date.now() + callMs, countBacklog).catch(() => undefined);
  };
  void look();
  const timer = setInterval(() => void look(), lookMs);
  timer.unref();
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}

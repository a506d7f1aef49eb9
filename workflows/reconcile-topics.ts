import { ActivityFailure, ApplicationFailure, continueAsNew, isCancellation, workflowInfo } from '@temporalio/workflow';
import { addRepairs, unrepairedMax, type Reconciled, type TopicReconciled } from '../core/reconcile.ts';
import { listTopics, reconcileTopic } from './activities.ts';

export interface ReconcileRequest {
  /** null: all of them. */
  readonly topic: string | null;
  /** Of a run that goes on: the last topic that is done, and what came of all so far. */
  readonly soFar?: { readonly after: string; readonly report: Reconciled };
}

const nothing: Reconciled = { topics: 0, repairs: {}, unrepaired: [], unrepairedMore: 0 };

/**
 * Finds what crashes, lost objects and hands have left behind, and repairs it. A topic that fails is told and does not hold up the
 * others.
 */
export async function reconcileTopics({ topic, soFar }: ReconcileRequest): Promise<Reconciled> {
  let report = soFar?.report ?? nothing;
  const names = topic === null ? await listTopics(soFar?.after ?? '') : [topic];
  for (const name of names) {
    report = add(report, await reconcileOne(name, topic === null));
    if (workflowInfo().continueAsNewSuggested && name !== names.at(-1)) {
      await continueAsNew<typeof reconcileTopics>({ topic, soFar: { after: name, report } });
    }
  }
  return report;
}

async function reconcileOne(name: string, goesOn: boolean): Promise<TopicReconciled> {
  try {
    return await reconcileTopic(name);
  } catch (error) {
    const cause = error instanceof ActivityFailure ? error.cause : null;
    // An operator who cancels means all of it.
    if (!goesOn || cause === null || isCancellation(error)) throw error;
    const code = cause instanceof ApplicationFailure ? (cause.type ?? 'unexpected') : 'step_timeout';
    // Deleted meanwhile.
    if (code === 'topic_missing') return { repairs: {}, unrepaired: [] };
    return { repairs: {}, unrepaired: [{ topic: name, partition: null, kind: 'failed', code }] };
  }
}

function add(report: Reconciled, one: TopicReconciled): Reconciled {
  const unrepaired = [...report.unrepaired, ...one.unrepaired];
  return {
    topics: report.topics + 1,
    repairs: addRepairs(report.repairs, one.repairs),
    unrepaired: unrepaired.slice(0, unrepairedMax),
    unrepairedMore: report.unrepairedMore + Math.max(0, unrepaired.length - unrepairedMax),
  };
}

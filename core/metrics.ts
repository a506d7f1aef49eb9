/** The metrics of a worker, each once: the meter, the reference page and the tests read them here. */
export interface MetricEntry {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly meaning: string;
}

export const metricCatalogue = {
  replay_records_total: {
    kind: 'counter',
    labels: ['stream', 'sink', 'outcome'],
    meaning:
      'Records by outcome: `written`, `duplicate`, `skipped`, `rejected` when their batch was written, then `dead_lettered`. A batch that is delivered again counts again; the report of a run counts each record once.',
  },
  replay_child_records_total: {
    kind: 'counter',
    labels: ['stream', 'child', 'outcome'],
    meaning:
      'Records by child of a fan-out: `written`, `duplicate`, `rejected`, or `failed` where an optional child did not take them.',
  },
  replay_acknowledged_total: { kind: 'counter', labels: ['stream'], meaning: 'Records whose ACK the server confirmed.' },
  replay_bytes_total: { kind: 'counter', labels: ['stream', 'sink'], meaning: 'Payload bytes pulled.' },
  replay_batches_total: {
    kind: 'counter',
    labels: ['stream', 'pulled'],
    meaning:
      'Batches by when they were pulled: `ahead`, beside the write of the one before, or `asked`, when their own turn came.',
  },
  replay_step_seconds: {
    kind: 'histogram',
    labels: ['step'],
    meaning: 'Seconds of one step that succeeded: `describe`, `pull`, `write`, `dead_letter`, `acknowledge`.',
  },
  replay_faults_total: {
    kind: 'counter',
    labels: ['step', 'code'],
    meaning: 'Attempts of a step that failed, by the code of the fault (reference of errors).',
  },
  replay_lag_sequences: {
    kind: 'gauge',
    labels: ['stream', 'durable'],
    meaning:
      'Sequences between the cursor of a plan and the end of its range (or the end of the stream, without one), after the last batch that this worker delivered. A plan that went on at another worker keeps its last value here: look at the least.',
  },
  replay_plans: {
    kind: 'gauge',
    labels: ['state'],
    meaning:
      'Plans of the namespace in the state `running`, `paused`, `blocked` or `awaiting_approval`, as the search attribute `ReplayState` tells; every worker shows the same. Absent where the server does not know the attribute.',
  },
  replay_backlog_tasks: {
    kind: 'gauge',
    labels: ['kind'],
    meaning: 'Tasks that wait for a worker on its task queue, about: `workflow` and `activity`. What to scale workers by.',
  },
} as const satisfies Record<string, MetricEntry>;

export type MetricName = keyof typeof metricCatalogue;

/** Bounds of `replay_step_seconds`. */
export const stepSecondsBounds: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Plans that are labels of their own in one worker process; the others share the label `other`. */
export const plansLabelledMax = 200;

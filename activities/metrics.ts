import type { MetricMeter } from '@temporalio/common';
import { addTallies } from '../core/children.ts';
import { metricCatalogue, plansLabelledMax, type MetricName } from '../core/metrics.ts';
import type { Receipt } from '../core/receipt.ts';
import type { Acknowledged, DeadLettered, DeadLetterRequest, DeliverRequest, Delivery } from '../core/steps.ts';

/** What the durable steps tell to the metrics of the worker. */
export interface Metrics {
  readonly described: (seconds: number) => void;
  readonly delivered: (request: DeliverRequest, delivery: Delivery) => void;
  readonly deadLettered: (request: DeadLetterRequest, letters: DeadLettered, seconds: number) => void;
  readonly acknowledged: (receipt: Receipt, answer: Acknowledged, seconds: number) => void;
  readonly failed: (step: string, code: string) => void;
}

export function createMetrics(meter: MetricMeter): Metrics {
  const records = counter(meter, 'replay_records_total');
  const acknowledged = counter(meter, 'replay_acknowledged_total');
  const children = counter(meter, 'replay_child_records_total');
  const batches = counter(meter, 'replay_batches_total');
  const bytes = counter(meter, 'replay_bytes_total');
  const faults = counter(meter, 'replay_faults_total');
  const { meaning: secondsMeaning } = metricCatalogue.replay_step_seconds;
  const seconds = meter.createHistogram('replay_step_seconds', 'float', 's', secondsMeaning);
  const lag = meter.createGauge('replay_lag_sequences', 'int', undefined, metricCatalogue.replay_lag_sequences.meaning);
  const nameOf = boundedNames();

  return {
    described: (took) => seconds.record(took, { step: 'describe' }),
    delivered({ replay, target, last }, delivery) {
      const labels = { stream: replay.stream, sink: target.sink.type };
      const earlier = (delivery.earlier?.batches ?? []).map((batch) => ({ ...batch, rejected: 0 }));
      for (const batch of [...earlier, delivery]) {
        const { written, duplicate, skipped, rejected } = batch;
        for (const [outcome, count] of Object.entries({ written, duplicate, skipped, rejected }))
          if (count > 0) records.add(count, { ...labels, outcome });
        batches.add(1, { stream: replay.stream, pulled: batch.pulledAhead === true ? 'ahead' : 'asked' });
        if (batch.bytes > 0) bytes.add(batch.bytes, labels);
        seconds.record(batch.pullMs / 1_000, { step: 'pull' });
        seconds.record(batch.writeMs / 1_000, { step: 'write' });
      }
      for (const { name: child, ...counts } of addTallies(delivery.earlier?.children ?? [], delivery.children ?? [])) {
        const { written, duplicate, rejected, failed } = counts;
        for (const [outcome, count] of Object.entries({ written, duplicate, rejected, failed }))
          if (count > 0) children.add(count, { stream: replay.stream, child, outcome });
      }
      const acked = (delivery.acknowledged?.acked ?? 0) + (delivery.earlier?.acknowledged.acked ?? 0);
      if (acked > 0) acknowledged.add(acked, { stream: replay.stream });
      const left = delivery.end === 'end_of_range' ? 0 : Math.max(0, (last ?? delivery.streamLast) - delivery.cursor + 1);
      lag.set(left, { stream: replay.stream, durable: nameOf(replay.durable) });
    },
    deadLettered({ replay, target }, { stored }, took) {
      records.add(stored, { stream: replay.stream, sink: target.sink.type, outcome: 'dead_lettered' });
      seconds.record(took, { step: 'dead_letter' });
    },
    acknowledged({ stream }, { acked }, took) {
      if (acked > 0) acknowledged.add(acked, { stream });
      seconds.record(took, { step: 'acknowledge' });
    },
    failed: (step, code) => faults.add(1, { step, code }),
  };
}

function counter(meter: MetricMeter, name: MetricName) {
  return meter.createCounter(name, undefined, metricCatalogue[name].meaning);
}

/** A label with a value for each plan would grow for as long as the worker lives. */
function boundedNames(): (name: string) => string {
  const known = new Set<string>();
  return (name) => {
    if (known.size < plansLabelledMax) known.add(name);
    return known.has(name) ? name : 'other';
  };
}

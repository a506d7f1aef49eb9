import { metricCatalogue, stepSecondsBounds } from '../../core/metrics.ts';
import { code, page, table } from './markdown.ts';

export function metricsPage(): string {
  const rows = Object.entries(metricCatalogue).map(([name, { kind, labels, meaning }]) => [
    code(name),
    kind,
    labels.map(code).join(', '),
    meaning,
  ]);
  return page(
    'core/metrics.ts',
    `# Metrics

A worker answers Prometheus at \`http://$REPLAY_METRICS_ADDRESS/metrics\` (default \`127.0.0.1:9464\`). \`deploy/grafana\` has a dashboard,
\`deploy/prometheus\` alert rules.

## Ours

${table(['Metric', 'Kind', 'Labels', 'Meaning'], rows)}

Bounds of \`replay_step_seconds\`: ${stepSecondsBounds.join(', ')} s.

## Temporal's

The SDK's own begin with \`temporal_\`. Most useful here: \`temporal_activity_schedule_to_start_latency\` (workers are short of slots or
too few), \`temporal_worker_task_slots_available\`, \`temporal_sticky_cache_size\` and \`temporal_sticky_cache_total_forced_eviction\`
(more plans than the cache holds: each turn replays a history), \`temporal_request_failure\` (the server refuses or does not answer).
`,
  );
}

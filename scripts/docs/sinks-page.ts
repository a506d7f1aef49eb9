import { describeFields } from '../../core/schema.ts';
import { sinkSpecs } from '../../sinks/registry.ts';
import type { SinkSpec } from '../../sinks/registry.ts';
import { code, fieldTable, json, page } from './markdown.ts';

export function sinksPage(): string {
  return page(
    'sinks/registry.ts',
    `# Sinks

The \`sink\` of a [target file](target.md). Types: ${sinkSpecs.map((spec) => `[${spec.type}](#${spec.type})`).join(', ')}.

${sinkSpecs.map(sinkSection).join('\n\n')}
`,
  );
}

function sinkSection(spec: SinkSpec): string {
  const place = spec.local
    ? "Lives below the worker's data root: the run stays with workers that share it."
    : 'Reached over the network.';
  return `## ${spec.type}

${spec.summary} ${place} Idempotency keys: ${spec.keys.map(code).join(', ')}.

${json({ sink: spec.example })}

${fieldTable(describeFields(spec.config, ['sink']))}`;
}

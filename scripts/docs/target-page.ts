import { readFileSync } from 'node:fs';
import { describeFields } from '../../core/schema.ts';
import { targetFileSchema } from '../../core/target.ts';
import { sinkSpecs } from '../../sinks/registry.ts';
import { code, fieldTable, page, table } from './markdown.ts';

const keyMeanings = [
  ['stream_sequence', 'stream, creation time of the stream, and sequence'],
  ['message_id', 'the `Nats-Msg-Id` header'],
  ['payload_field', 'a scalar in the body, named by `field`'],
] as const;

export function targetPage(): string {
  const example = readFileSync(new URL('../../examples/orders-target.json', import.meta.url), 'utf8');
  const fields = describeFields(targetFileSchema(sinkSpecs)).filter(({ path }) => path[0] !== '$schema' && path[0] !== 'sink');
  const keys = keyMeanings.map(([key, meaning]) => [
    code(key),
    meaning,
    sinkSpecs
      .filter((spec) => spec.keys.includes(key))
      .map((spec) => spec.type)
      .join(', ') || 'none yet',
  ]);
  return page(
    'core/target.ts',
    `# Target file

A target says where records go, how the destination recognises those it already has, and where refused records go. It is read
like the [plan file](plan.md#how-the-file-is-read).

\`\`\`json
${example.trim()}
\`\`\`

## Fields

\`sink\` (required) is the destination: an object whose \`type\` decides its other fields, see [sinks](sinks.md).

${fieldTable(fields)}

An optional field that is \`null\` counts as absent.

## Idempotency keys

${table(['Key', 'What two deliveries of one record share', 'Sinks'], keys)}

\`field\` stands with \`payload_field\` and only then; so does \`"key_conflicts": "keep"\`.

## Secrets

A password or key never stands in a target. Put it into an environment variable of the worker whose name begins with
\`REPLAY_SECRET_\`, followed by A-Z, 0-9 and \`_\`, and write that name:

\`\`\`json
{ "env": "REPLAY_SECRET_NAME" }
\`\`\`

A target with a secret written out is refused before anything is sent, and no message shows what was written.

## Editors

\`$schema\` at the top is for editors: [target.schema.json](../schema/target.schema.json).
`,
  );
}

import { readFileSync } from 'node:fs';
import { planFileSchema } from '../../core/plan-fields.ts';
import { fileBytesMax, fileDepthMax } from '../../core/limits.ts';
import { groupDigits } from '../../core/problems.ts';
import { describeFields } from '../../core/schema.ts';
import { fieldTable, page } from './markdown.ts';

export function planPage(): string {
  const example = readFileSync(new URL('../../examples/orders-plan.json', import.meta.url), 'utf8');
  const fields = describeFields(planFileSchema).filter(({ path }) => path.length > 1);
  return page(
    'core/plan-fields.ts',
    `# Plan file

A plan says what is replayed: a bounded range of one stream, or of a topic, the messages in it that matter, and how far and how fast.
Where it goes stands in the [target file](target.md).

\`\`\`json
${example.trim()}
\`\`\`

## Fields

${fieldTable(fields)}

An optional field that is \`null\` counts as absent.

## Rules between fields

- Exactly one of \`start_sequence\` and \`start_time\`, exactly one of \`subject_filter\` and \`subject_filters\`.
- \`topic\` and \`from\` stand instead of \`stream\`, filters and start; such a plan ends at \`end_time\`, if it has one.
- A \`window\` stands instead of all four boundaries.
- \`end_sequence\` is inclusive and not before \`start_sequence\`; \`end_time\` is exclusive and after \`start_time\`.
- No two filters share a subject, and \`dead_letter.subject\` of the target is outside all of them.
- \`durable_consumer\` differs from \`production_consumer\`.
- What makes it the same replay, so that a second start goes on where the first one stopped: stream or topic, filters, start and end,
  durable consumer, and the sink and idempotency key of the target. The other fields may change in between.

## Times

RFC 3339 with \`Z\` or an offset, up to nine decimals, from 1970 to 2262-04-11T23:47:16.854775807Z. \`T\` and \`Z\` may be small
letters. No suffix (\`[UTC]\`), no leap seconds, no dates that do not exist.

## How the file is read

Plan and target files are strict JSON, and every problem is reported at once, one a line, with the field it concerns.

- RFC 8259 and nothing more: no comments, no comma after the last one, no \`NaN\` or \`Infinity\`, nothing after the end.
- UTF-8 without a byte order mark, at most ${groupDigits(fileBytesMax)} bytes, at most ${fileDepthMax} levels of lists and objects.
- No field twice in one object, no field that is not listed here.
- Whole numbers are written as whole numbers: \`1000\`, not \`1000.0\`, \`1e3\` or \`"1000"\`.
- \`$schema\` at the top is for editors: [plan.schema.json](../schema/plan.schema.json).
`,
  );
}

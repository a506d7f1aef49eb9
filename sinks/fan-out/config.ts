import { z } from 'zod';
import { subjectFiltersMax } from '../../core/limits.ts';
import { problemAt } from '../../core/problems.ts';
import type { Problem } from '../../core/problems.ts';
import { ruledText } from '../../core/schema.ts';
import { filterProblem } from '../../core/subjects.ts';
import type { SinkSpec } from '../registry.ts';

const CHILDREN_MAX = 8;
const TIMEOUT_MS_DEFAULT = 30_000;
const TIMEOUT_MS_MIN = 100;
const TIMEOUT_MS_MAX = 600_000;
const RULES = ['reject', 'skip'];

const childName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/)
  .meta({ expected: '1 to 64 letters, digits, _ or -' });

const childSchema = z.strictObject({
  sink: z.looseObject({ type: z.string().meta({ description: 'Type of the sink.', examples: ['file'] }) }).meta({
    description: 'The sink of this child: its own fields, as in a target of its own. Not another fan-out.',
    expected: 'an object with "type"',
    examples: [{ type: 'file', directory: 'orders' }],
  }),
  required: z.boolean().default(true).meta({
    description:
      'A record is settled when all required children that take it have it. What an optional child misses is kept, and brought later by `replay-stream retry-optional`.',
  }),
  timeout_ms: z.int().min(TIMEOUT_MS_MIN).max(TIMEOUT_MS_MAX).default(TIMEOUT_MS_DEFAULT).meta({
    description:
      'How long a batch may take in this child, milliseconds. A required child is then tried again; an optional one goes without the batch, and after three failures in a row is left out until a probe finds it well.',
  }),
  subjects: z
    .array(ruledText(filterProblem).meta({ expected: 'a subject or filter such as orders.created or orders.>' }))
    .min(1)
    .max(subjectFiltersMax)
    .optional()
    .meta({
      description: 'Records of these subjects go to this child. Absent: all of them.',
      expected: `a list of 1 to ${subjectFiltersMax} subjects or filters`,
      examples: [['orders.created', 'orders.paid']],
    }),
});

export const fanOutConfigSchema = z.strictObject({
  type: z.literal('fanout').meta({ description: 'Several sinks, written at the same time.', examples: ['fanout'] }),
  sinks: z.record(childName, childSchema).meta({
    description: `The children by name, at most ${CHILDREN_MAX}, at least one of them required.`,
    expected: 'an object of children, such as { "archive": { "sink": { "type": "file", "directory": "orders" } } }',
  }),
  unmatched: z.string().default('reject').meta({
    description:
      'What happens to a record whose subject no child takes: `reject` (`no_route`), `skip` (acknowledged and counted as skipped), or the name of a child that takes it.',
    expected: '"reject", "skip" or the name of a child',
  }),
  only: childName.optional().meta({
    description: 'Writes into this child alone, routed as ever, and as if it were required: what `retry-optional` asks for.',
  }),
});
export type FanOutConfig = z.output<typeof fanOutConfigSchema>;

function problemsOf(sink: Readonly<Record<string, unknown>>): Problem[] {
  const { sinks, unmatched, only } = sink as unknown as FanOutConfig;
  const names = Object.keys(sinks);
  const problems: Problem[] = [];
  const at = (field: string, message: string) => void problems.push(problemAt(['sink', field], message));
  if (names.length > CHILDREN_MAX) at('sinks', `has ${names.length} children; expected at most ${CHILDREN_MAX}`);
  if (!Object.values(sinks).some(({ required }) => required)) at('sinks', 'has no required child; expected one at least');
  for (const rule of RULES)
    if (names.includes(rule)) at('sinks', `has a child named "${rule}", which is a rule of "unmatched"`);
  if (!RULES.includes(unmatched) && !names.includes(unmatched)) {
    at('unmatched', `expected "reject", "skip" or the name of a child, got ${JSON.stringify(unmatched)}`);
  }
  if (only !== undefined && !names.includes(only)) at('only', `expected the name of a child, got ${JSON.stringify(only)}`);
  return problems;
}

export const fanOutSpec: SinkSpec = {
  type: 'fanout',
  summary: 'Several sinks at the same time, required or optional, each with the subjects that it takes.',
  config: fanOutConfigSchema,
  keys: ['stream_sequence', 'message_id', 'payload_field'],
  local: false,
  fansOut: true,
  example: {
    type: 'fanout',
    sinks: {
      archive: { sink: { type: 'file', directory: 'orders' } },
      copy: { sink: { type: 'jetstream', stream: 'ORDERS-2', subject_prefix: 'copy' }, required: false, timeout_ms: 5_000 },
    },
  },
  evidence: new URL('./certification.json', import.meta.url),
  problems: problemsOf,
  load: async () => (await import('./sink.ts')).createFanOutSink,
};

import { z } from 'zod';
import { ruledText } from '../../core/schema.ts';
import { literalSubjectProblem, nameProblem } from '../../core/subjects.ts';
import type { SinkSpec } from '../registry.ts';

export const jetstreamConfigSchema = z.strictObject({
  type: z.literal('jetstream').meta({
    description: 'Another stream, of the NATS servers that the worker reads from.',
    examples: ['jetstream'],
  }),
  stream: ruledText(nameProblem).meta({
    description: 'Name of the stream to store into: one with `limits` retention, which takes the subjects. It is never made.',
    expected: 'a NATS name (no spaces and none of . * > / \\)',
    examples: ['ORDERS-2'],
  }),
  subject_prefix: ruledText(literalSubjectProblem)
    .optional()
    .meta({
      description:
        'Tokens to put before the subject of each record, since two streams cannot take the same subject: `copy` makes `copy.orders.created`. Absent: the subject stays as it is.',
      expected: 'a subject without wildcards, such as copy or archive.eu',
      examples: ['copy'],
    }),
});
export type JetstreamConfig = z.output<typeof jetstreamConfigSchema>;

export const jetstreamSpec: SinkSpec = {
  type: 'jetstream',
  summary:
    'Another stream: bodies and headers byte for byte, each record once, recognised by its message id and beyond the duplicate window by the headers of what is there.',
  config: jetstreamConfigSchema,
  keys: ['stream_sequence', 'message_id'],
  local: false,
  example: { type: 'jetstream', stream: 'ORDERS-2', subject_prefix: 'copy' },
  evidence: new URL('./certification.json', import.meta.url),
  streams: (sink) => [String(sink['stream'])],
  load: async () => (await import('./sink.ts')).createJetstreamSink,
};

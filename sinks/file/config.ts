import { z } from 'zod';
import { directorySchema } from '../disk/directory-schema.ts';
import type { SinkSpec } from '../registry.ts';

const SEGMENT_BYTES_DEFAULT = 134_217_728;
const SEGMENT_BYTES_MIN = 65_536;
const SEGMENT_BYTES_MAX = 1_099_511_627_776;
const RECORD_BYTES_MAX = 1_073_741_824;

export const fileConfigSchema = z.strictObject({
  type: z.literal('file').meta({ description: 'Append-only segments of JSON lines in a directory.', examples: ['file'] }),
  directory: directorySchema.meta({
    description:
      'Directory of the segments, below the data root of the worker; made when it is missing. Plans that name the same directory share its index: a record is written once, whichever plan brings it.',
    expected: 'a directory relative to the data root, such as orders/2026-05',
    examples: ['orders/2026-05'],
  }),
  max_segment_bytes: z
    .int()
    .min(SEGMENT_BYTES_MIN)
    .max(SEGMENT_BYTES_MAX)
    .default(SEGMENT_BYTES_DEFAULT)
    .meta({
      description:
        'Bytes of a segment (as stored, so after compression) above which the next batch begins a new one. A batch is never split: one larger than this makes one larger segment.',
      examples: [SEGMENT_BYTES_DEFAULT],
    }),
  compression: z
    .enum(['none', 'gzip'])
    .default('none')
    .meta({
      description: '`gzip` stores one gzip member a batch, in segments named `.jsonl.gz`, which `zcat` reads.',
      examples: ['gzip'],
    }),
  require_json: z
    .boolean()
    .default(false)
    .meta({
      description:
        'Refuses a record whose body is not strict JSON (`not_json`). Without it such a body is stored as text or base64.',
      examples: [true],
    }),
  max_record_bytes: z
    .int()
    .min(1)
    .max(RECORD_BYTES_MAX)
    .nullable()
    .default(null)
    .meta({
      description: 'Refuses a record whose body has more bytes than this (`too_large`). null: no limit.',
      examples: [1_048_576],
    }),
});
export type FileConfig = z.output<typeof fileConfigSchema>;

export const fileSpec: SinkSpec = {
  type: 'file',
  summary: 'Append-only segments of JSON lines in a directory, with an index that knows which records are in.',
  config: fileConfigSchema,
  keys: ['stream_sequence'],
  local: true,
  example: { type: 'file', directory: 'orders' },
  evidence: new URL('./certification.json', import.meta.url),
  modeOf: (sink) => (sink['compression'] === 'gzip' ? 'gzip' : 'plain'),
  load: async () => (await import('./sink.ts')).createFileSink,
};

import { z } from 'zod';
import type { SinkSpec } from '../registry.ts';

export const fileConfigSchema = z.strictObject({ type: z.literal('file'), directory: z.string() });
export type FileConfig = z.output<typeof fileConfigSchema>;

export const fileSpec: SinkSpec = {
  type: 'file',
  summary: 'Append-only segments of JSON lines in a directory.',
  config: fileConfigSchema,
  keys: ['stream_sequence'],
  local: true,
  example: { type: 'file', directory: 'orders' },
  load: () => Promise.reject(new Error('not written yet')),
};

import { ruledText } from 'durable-replay/sinks';
import type { SinkSpec } from 'durable-replay/sinks';
import { z } from 'zod';

const RECORD_BYTES_MAX = 67_108_864;

export const sqliteConfigSchema = z.strictObject({
  type: z.literal('sqlite').meta({ description: 'A table in a SQLite file of the worker.', examples: ['sqlite'] }),
  file: ruledText(fileProblem).meta({
    description: 'The file, in the data root of the worker; made when it is missing.',
    examples: ['orders.db'],
  }),
  table: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/)
    .default('records')
    .meta({
      description: 'The table, made when it is missing.',
      expected: '1 to 64 letters, digits and _, not a digit first',
    }),
  max_record_bytes: z.int().min(1).max(RECORD_BYTES_MAX).optional().meta({
    description: 'A record with a larger body is refused (`too_large`).',
  }),
});
export type SqliteConfig = z.output<typeof sqliteConfigSchema>;

function fileProblem(file: string): string | undefined {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,120}\.db$/.test(file)) return undefined;
  return 'is not the name of a database file; expected letters, digits, _ . and -, ending in .db, such as orders.db';
}

export const sqliteSpec: SinkSpec = {
  type: 'sqlite',
  summary: 'A table in a SQLite file: one transaction a batch, bodies byte for byte.',
  config: sqliteConfigSchema,
  keys: ['stream_sequence'],
  local: true,
  example: { type: 'sqlite', file: 'orders.db' },
  evidence: new URL('./certification.json', import.meta.url),
  load: async () => (await import('./sink.ts')).createSqliteSink,
};

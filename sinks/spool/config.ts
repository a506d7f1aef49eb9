import { z } from 'zod';
import { problemAt } from '../../core/problems.ts';
import type { Problem } from '../../core/problems.ts';
import { secretSchema } from '../../core/schema.ts';
import { directorySchema } from '../disk/directory-schema.ts';
import type { SinkSpec } from '../registry.ts';

const RECORDS_DEFAULT = 1_000_000;
const RECORDS_MAX = 100_000_000;
const BYTES_DEFAULT = 1_073_741_824;
const BYTES_MIN = 65_536;
const BYTES_MAX = 1_099_511_627_776;
const HEADER_CHARACTERS_MAX = 128;

const keyId = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,64}$/)
  .meta({ expected: '1 to 64 letters, digits, _ . or -' });
const keyForm = '32 bytes as base64 or as 64 hexadecimal digits: openssl rand -base64 32';

const encryptionSchema = z.strictObject({
  key_id: keyId.meta({ description: 'Name of the key, stored beside what it encrypted.', examples: ['2026-05'] }),
  key: secretSchema(`Key that encrypts from now on: ${keyForm}.`),
  old_keys: z
    .record(keyId, secretSchema(`A key that encrypted before: ${keyForm}.`))
    .optional()
    .meta({
      description: 'Keys that the drain still needs, by their names. To rotate: move the present key here and name a new one.',
      expected: 'an object of keys, such as { "2026-04": { "env": "REPLAY_SECRET_SPOOL_OLD" } }',
    }),
});

export const spoolConfigSchema = z.strictObject({
  type: z.literal('spool').meta({
    description: 'A bounded, encrypted store on the disk of the worker, drained into another sink later.',
    examples: ['spool'],
  }),
  directory: directorySchema.meta({
    description: 'Directory of the spool, below the data root of the worker; made when it is missing.',
    expected: 'a directory relative to the data root, such as spool/orders',
    examples: ['spool/orders'],
  }),
  encryption: encryptionSchema.optional().meta({
    description: 'AES-256-GCM. Required, unless `allow_unencrypted` says that it is left out on purpose.',
  }),
  allow_unencrypted: z.boolean().default(false).meta({ description: 'Stores records as they are.' }),
  max_records: z.int().min(1).max(RECORDS_MAX).default(RECORDS_DEFAULT).meta({
    description: 'Records that the spool holds at most; full, the plan is `blocked` until it has been drained.',
  }),
  max_bytes: z.int().min(BYTES_MIN).max(BYTES_MAX).default(BYTES_DEFAULT).meta({
    description: 'Bytes that its records take at most, as stored. A record larger than this is refused (`too_large`).',
  }),
  order: z.enum(['fifo', 'priority']).default('fifo').meta({
    description: 'What the drain takes first: `fifo`, the oldest; `priority`, the most urgent, and of those the oldest.',
  }),
  priority_header: z
    .string()
    .regex(/^[!-9;-~]+$/)
    .max(HEADER_CHARACTERS_MAX)
    .default('Priority')
    .meta({
      description:
        'Header that says how urgent a record is, with `"order": "priority"`: 0 (most urgent) to 9, or urgent (0), high (2), normal (4), low (6), routine (8), in any letter case. Without it, or with anything else there: 4.',
      expected: 'the name of a header',
      examples: ['Priority'],
    }),
});
export type SpoolConfig = z.output<typeof spoolConfigSchema>;

function problemsOf(sink: Readonly<Record<string, unknown>>): Problem[] {
  const { encryption, allow_unencrypted: unencrypted } = sink as unknown as SpoolConfig;
  const at = (message: string) => [problemAt(['sink', 'encryption'], message)];
  if (encryption === undefined && !unencrypted) {
    return at('missing; expected { "key_id": ..., "key": { "env": ... } }, or "allow_unencrypted": true');
  }
  if (encryption !== undefined && unencrypted)
    return at('stands together with "allow_unencrypted": true; expected one of the two');
  if (encryption?.old_keys !== undefined && Object.hasOwn(encryption.old_keys, encryption.key_id)) {
    return at('names the present key under "old_keys" too; expected another key_id');
  }
  return [];
}

export const spoolSpec: SinkSpec = {
  type: 'spool',
  summary:
    'A bounded, encrypted store at the edge, for when the real destination is out of reach; `replay-stream spool drain` moves it on.',
  config: spoolConfigSchema,
  keys: ['stream_sequence'],
  local: true,
  example: {
    type: 'spool',
    directory: 'spool/orders',
    encryption: { key_id: '2026-05', key: { env: 'REPLAY_SECRET_SPOOL' } },
  },
  evidence: new URL('./certification.json', import.meta.url),
  modeOf: (sink) => (sink['encryption'] === undefined ? 'unencrypted' : 'encrypted'),
  problems: problemsOf,
  load: async () => (await import('./sink.ts')).createSpoolSink,
  loadDrain: async () => (await import('./drain.ts')).createSpoolDrain,
};

import { isIP } from 'node:net';
import { z } from 'zod';
import { ruledText, secretSchema } from '../../core/schema.ts';
import type { Problem } from '../../core/problems.ts';
import { problemAt } from '../../core/problems.ts';
import type { SinkSpec } from '../registry.ts';
import { columnsSchema, layoutProblems } from '../sql/columns-schema.ts';
import type { Idempotency } from '../sql/columns.ts';

/** Limit of MySQL for the names of databases, tables and columns. */
const NAME_CHARACTERS_MAX = 64;
const TEXT_CHARACTERS_MAX = 255;
const PEM_CHARACTERS_MAX = 262_144;
const PORT_DEFAULT = 3_306;
const POOL_SIZE_DEFAULT = 2;
const POOL_SIZE_MAX = 64;

const nameExpected = 'expected 1 to 64 characters: letters of any script, digits, _ $ - or spaces within';

const tlsSchema = z.strictObject({
  ca: z.string().min(1).max(PEM_CHARACTERS_MAX).optional().meta({
    description: 'Certificates of the authorities to trust (PEM text). Absent: those that Node.js trusts.',
    expected: 'PEM text',
  }),
  cert: z.string().min(1).max(PEM_CHARACTERS_MAX).optional().meta({
    description: 'Our own certificate, where the server asks for one (PEM text).',
    expected: 'PEM text',
  }),
  key: secretSchema('Private key of that certificate (PEM text).').optional(),
  verify: z.boolean().default(true).meta({
    description: 'Whether the certificate must be trusted and name the host. `false` only encrypts, for tests.',
  }),
});

export const mysqlConfigSchema = z.strictObject({
  type: z.literal('mysql').meta({ description: 'A table of MySQL 8 or newer, or of MariaDB.', examples: ['mysql'] }),
  host: ruledText(plainText).meta({ description: 'Name or address of the server.', examples: ['db.example.com'] }),
  port: z.int().min(1).max(65_535).default(PORT_DEFAULT).meta({ description: 'Port of the server.' }),
  user: ruledText(plainText).meta({
    description: 'User, with the privileges that docs/mysql.md lists.',
    examples: ['replay'],
  }),
  password: secretSchema('Password of the user.'),
  database: ruledText(nameProblem).meta({ description: 'Database (schema) of the table.', examples: ['shop'] }),
  table: ruledText(nameProblem).meta({ description: 'Table to write into.', examples: ['orders'] }),
  mode: z.enum(['insert', 'upsert']).default('insert').meta({
    description:
      '`insert`: a row that is there stays as it is. `upsert`: a newer record (incarnation, then sequence) replaces the row of its key.',
  }),
  create_table: z.boolean().default(false).meta({
    description: 'Creates the table when it is missing; with the default columns only, so not together with `columns`.',
  }),
  columns: columnsSchema(nameProblem)
    .optional()
    .meta({
      description: 'Exactly these columns are written, by name. Absent: the default columns, see docs/mysql.md.',
      expected: 'an object of columns, such as { "order_id": { "payload": "/id" }, "subject": { "field": "subject" } }',
      examples: [{ order_id: { payload: '/id' }, seen_on: { field: 'subject' } }],
    }),
  tls: tlsSchema.optional().meta({ description: 'TLS. Absent: the connection is not encrypted.' }),
  pool_size: z.int().min(1).max(POOL_SIZE_MAX).default(POOL_SIZE_DEFAULT).meta({
    description:
      'Connections at most that a running plan holds. A batch is written on one; another ends the statement of a write that was aborted, at once.',
  }),
});
export type MysqlConfig = z.output<typeof mysqlConfigSchema>;

function plainText(text: string): string | undefined {
  const expected = `expected 1 to ${TEXT_CHARACTERS_MAX} characters, none of them a space or unprintable`;
  if (text === '') return `is empty; ${expected}`;
  if (text.length > TEXT_CHARACTERS_MAX) return `is too long; ${expected}`;
  return /[\p{Cc}\p{Cs}\s]/u.test(text) ? `has a space or an unprintable character; ${expected}` : undefined;
}

function nameProblem(name: string): string | undefined {
  if (name === '') return `is empty; ${nameExpected}`;
  if ([...name].length > NAME_CHARACTERS_MAX) return `is longer than 64 characters; ${nameExpected}`;
  if (!/^[\p{L}\p{N}_$ -]+$/u.test(name)) return `has a character that is not allowed; ${nameExpected}`;
  if (/[\u{10000}-\u{10FFFF}]/u.test(name)) return `has a character beyond the basic plane; ${nameExpected}`;
  return name.trim() === name ? undefined : `begins or ends with a space; ${nameExpected}`;
}

/** Rules between the fields, and with the idempotency key. */
function problemsOf(sink: Readonly<Record<string, unknown>>, idempotency: Idempotency): Problem[] {
  const { host, columns = null, create_table: create, tls } = sink as unknown as MysqlConfig;
  const problems: Problem[] = [];
  if ((tls?.cert === undefined) !== (tls?.key === undefined)) {
    problems.push(problemAt(['sink', 'tls'], 'has one of "cert" and "key"; expected both or neither'));
  }
  // The driver would compare the certificate with the name `localhost`.
  if (tls?.verify === true && isIP(host) > 0) {
    problems.push(
      problemAt(['sink', 'host'], 'is an address, which no certificate can be held against; expected the name of the server'),
    );
  }
  problems.push(...layoutProblems(columns, create, idempotency));
  return problems;
}

export const mysqlSpec: SinkSpec = {
  type: 'mysql',
  summary:
    'A table of MySQL or MariaDB: one transaction a batch, exact numbers, and a unique key that makes repetition harmless.',
  config: mysqlConfigSchema,
  keys: ['stream_sequence', 'message_id', 'payload_field'],
  hosts: (sink) => [String(sink['host'])],
  local: false,
  example: {
    type: 'mysql',
    host: 'db.example.com',
    user: 'replay',
    password: { env: 'REPLAY_SECRET_MYSQL' },
    database: 'shop',
    table: 'orders',
    create_table: true,
  },
  evidence: new URL('./certification.json', import.meta.url),
  modeOf: (sink) => (sink['mode'] === 'upsert' ? 'upsert' : 'insert'),
  problems: problemsOf,
  load: async () => (await import('./sink.ts')).createMysqlSink,
};

import { z } from 'zod';
import { problemAt } from '../../core/problems.ts';
import type { Problem } from '../../core/problems.ts';
import { ruledText, secretSchema } from '../../core/schema.ts';
import type { SinkSpec } from '../registry.ts';
import { columnsSchema, layoutProblems } from '../sql/columns-schema.ts';
import type { Idempotency } from '../sql/columns.ts';
import { readConnectString } from './connect-string.ts';
import { foldName, nameProblem, tableProblem } from './names.ts';

const TEXT_CHARACTERS_MAX = 255;
const FOLDER_CHARACTERS_MAX = 1_024;
const POOL_SIZE_DEFAULT = 2;
const POOL_SIZE_MAX = 64;

const walletSchema = z.strictObject({
  content: secretSchema('Text of the wallet file ewallet.pem: certificates to trust, and our own with its key.').optional(),
  folder: ruledText(folderProblem)
    .optional()
    .meta({
      description: 'Folder of ewallet.pem, below the data root of the worker.',
      expected: 'a folder relative to the data root, such as wallets/orders',
      examples: ['wallets/orders'],
    }),
  password: secretSchema('Password of the private key within the wallet.').optional(),
});

export const oracleConfigSchema = z.strictObject({
  type: z.literal('oracle').meta({ description: 'A table of Oracle Database 19c or newer.', examples: ['oracle'] }),
  connect_string: quietText(connectStringProblem).meta({
    description:
      'Where the database is: `host:port/service`, `tcps://host:port/service` with TLS, several hosts with commas, or a descriptor `(DESCRIPTION=...)`. No aliases, no user, no password.',
    expected: 'a connect string such as db.example.com:1521/orders',
    examples: ['db.example.com:1521/orders'],
  }),
  user: quietText(userProblem).meta({
    description: 'User, with the privileges that docs/oracle.md lists.',
    examples: ['replay'],
  }),
  password: secretSchema('Password of the user.'),
  table: ruledText(tableProblem).meta({
    description:
      'Table to write into, or `schema.table`. Names without double quotes mean upper case, as in SQL; with them, exactly what they say.',
    examples: ['orders', 'shop.orders', '"Orders"'],
  }),
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
      description:
        'Exactly these columns are written, by name (double quotes as in `table`). Absent: the default columns, see docs/oracle.md.',
      expected: 'an object of columns, such as { "order_id": { "payload": "/id" }, "subject": { "field": "subject" } }',
      examples: [{ order_id: { payload: '/id' }, seen_on: { field: 'subject' } }],
    }),
  empty_string: z.enum(['reject', 'null']).default('reject').meta({
    description:
      'Oracle stores an empty text as NULL. `reject`: such a record is refused (`value_invalid`). `null`: NULL is what is meant. A CLOB or BLOB column keeps it empty.',
  }),
  wallet: walletSchema.optional().meta({
    description:
      'Certificates for `tcps`, as PEM: `content` or `folder`; with a key and certificate of our own in it. Absent: the authorities that Node.js trusts.',
  }),
  pool_size: z.int().min(1).max(POOL_SIZE_MAX).default(POOL_SIZE_DEFAULT).meta({
    description:
      'Connections at most that a running plan holds. A batch is written on one; with more, a write that was aborted does not wait until the database has rolled it back.',
  }),
});
export type OracleConfig = z.output<typeof oracleConfigSchema>;

/** The text itself is not shown: it may hold a password that does not belong there. */
function quietText(rule: (text: string) => string | undefined) {
  return z.string().superRefine((text, context) => {
    const wrong = rule(text);
    if (wrong !== undefined) context.addIssue({ code: 'custom', message: wrong });
  });
}

function connectStringProblem(text: string): string | undefined {
  const read = readConnectString(text);
  return read.ok ? undefined : read.problem;
}

function userProblem(text: string): string | undefined {
  const expected = `expected 1 to ${TEXT_CHARACTERS_MAX} characters, none of them unprintable`;
  if (text === '') return `is empty; ${expected}`;
  if (text.length > TEXT_CHARACTERS_MAX) return `is too long; ${expected}`;
  if (/[\p{Cc}\p{Cs}\s]/u.test(text)) return `has a space or an unprintable character; ${expected}`;
  return text.includes('/') ? 'has a slash; expected the user alone: the password has the field "password"' : undefined;
}

function folderProblem(folder: string): string | undefined {
  const expected = 'expected a folder relative to the data root, such as wallets/orders';
  if (folder === '') return `is empty; ${expected}`;
  if (folder.length > FOLDER_CHARACTERS_MAX) return `is too long; ${expected}`;
  if (folder.startsWith('/') || /^[A-Za-z]:/.test(folder)) return `is absolute; ${expected}`;
  if (folder.includes('\\') || /[\p{Cc}\p{Cs}]/u.test(folder)) return `has a character that is not allowed; ${expected}`;
  if (folder.split('/').some((part) => part === '' || part === '.' || part === '..')) {
    return `has an empty part, . or ..; ${expected}`;
  }
  return undefined;
}

/** Rules between the fields, and with the idempotency key. */
function problemsOf(sink: Readonly<Record<string, unknown>>, idempotency: Idempotency): Problem[] {
  const { columns = null, create_table: create, connect_string: connectString, wallet } = sink as unknown as OracleConfig;
  const problems: Problem[] = [];
  if (wallet !== undefined && (wallet.content === undefined) === (wallet.folder === undefined)) {
    problems.push(problemAt(['sink', 'wallet'], 'expected one of "content" and "folder"'));
  }
  const read = readConnectString(connectString);
  if (wallet !== undefined && read.ok && !read.encrypted) {
    problems.push(problemAt(['sink', 'wallet'], 'does nothing without TLS; expected a "connect_string" with tcps'));
  }
  const folded = new Map<string, string>();
  for (const name of Object.keys(columns ?? {})) {
    const same = folded.get(foldName(name));
    if (same !== undefined) {
      const message = `is the same column as ${JSON.stringify(same)}; names without double quotes mean upper case`;
      problems.push(problemAt(['sink', 'columns', name], message));
    }
    folded.set(foldName(name), name);
  }
  problems.push(...layoutProblems(columns, create, idempotency));
  return problems;
}

export const oracleSpec: SinkSpec = {
  type: 'oracle',
  summary:
    'A table of Oracle Database: one transaction a batch, array binds, exact numbers, and a unique key that makes repetition harmless.',
  config: oracleConfigSchema,
  keys: ['stream_sequence', 'message_id', 'payload_field'],
  hosts(sink) {
    const read = readConnectString(String(sink['connect_string']));
    return read.ok ? read.hosts : [''];
  },
  local: false,
  example: {
    type: 'oracle',
    connect_string: 'db.example.com:1521/orders',
    user: 'replay',
    password: { env: 'REPLAY_SECRET_ORACLE' },
    table: 'orders',
    create_table: true,
  },
  evidence: new URL('./certification.json', import.meta.url),
  modeOf: (sink) => (sink['mode'] === 'upsert' ? 'upsert' : 'insert'),
  problems: problemsOf,
  load: async () => (await import('./sink.ts')).createOracleSink,
};

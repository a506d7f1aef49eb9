import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { parsePlanBytes } from '../../../core/plan.ts';
import type { ReplayPlan } from '../../../core/plan.ts';
import { formatProblems } from '../../../core/problems.ts';
import { secretSchema } from '../../../core/schema.ts';
import { checkPlanAgainstTarget, parseTarget, parseTargetBytes } from '../../../core/target.ts';
import { sinkSpecs } from '../../../sinks/registry.ts';
import type { SinkSpec } from '../../../sinks/registry.ts';

const tableSpec: SinkSpec = {
  type: 'table',
  summary: 'For tests.',
  config: z.strictObject({
    type: z.literal('table'),
    host: z.string().min(1),
    port: z.int().min(1).max(65_535).default(3306),
    mode: z.enum(['insert', 'upsert']).default('insert'),
    password: secretSchema('The password.'),
    columns: z
      .record(
        z.string().regex(/^[a-z_]+$/),
        z.union([z.strictObject({ payload: z.string() }), z.strictObject({ field: z.string() })]),
      )
      .optional(),
    tls: z.strictObject({ verify: z.boolean().default(true), key: secretSchema('The key.').optional() }).optional(),
  }),
  keys: ['stream_sequence', 'message_id', 'payload_field'],
  local: false,
  example: {},
  load: () => Promise.reject(new Error('not here')),
};
const plainSpec: SinkSpec = {
  ...tableSpec,
  type: 'plain',
  config: z.strictObject({ type: z.literal('plain'), directory: z.string() }),
  keys: ['stream_sequence'],
};
const specs = [plainSpec, tableSpec];
const table = { type: 'table', host: 'db', password: { env: 'REPLAY_SECRET_DB' } };

function problemsOf(document: unknown): string {
  const parsed = parseTarget(document, specs);
  return parsed.ok ? '' : formatProblems(parsed.problems);
}

describe('accepted', () => {
  test('defaults', () => {
    expect(parseTarget({ sink: { type: 'plain', directory: 'x' } }, specs)).toEqual({
      ok: true,
      value: {
        sink: { type: 'plain', directory: 'x' },
        idempotency: { key: 'stream_sequence', field: null, key_conflicts: 'reject' },
        dead_letter: null,
      },
    });
  });

  test('null counts as absent for optional fields, those of the sink and within it included', () => {
    const document = {
      $schema: null,
      sink: { ...table, port: null, mode: null, columns: null, tls: { verify: null, key: null } },
      idempotency: { key: 'payload_field', field: '/id', key_conflicts: null },
      dead_letter: null,
    };
    expect(parseTarget(document, specs)).toMatchObject({
      ok: true,
      value: { sink: { port: 3306, mode: 'insert', tls: { verify: true } }, idempotency: { key_conflicts: 'reject' } },
    });
  });

  test('a parsed target parses to itself', () => {
    const given = { sink: { ...table, tls: {} }, idempotency: { key: 'message_id' }, dead_letter: { subject: 'dlq.orders' } };
    const parsed = parseTarget(given, specs);
    if (!parsed.ok) throw new Error(formatProblems(parsed.problems));
    expect(parseTarget(JSON.parse(JSON.stringify(parsed.value)), specs)).toEqual(parsed);
  });

  test('the example, and every example of a sink', () => {
    const parsed = parseTargetBytes(readFileSync('examples/orders-target.json'), sinkSpecs);
    expect(parsed.ok ? '' : formatProblems(parsed.problems)).toBe('');
    for (const spec of sinkSpecs) {
      const example = parseTarget({ sink: spec.example, idempotency: { key: spec.keys[0] } }, sinkSpecs);
      expect(example.ok ? '' : formatProblems(example.problems)).toBe('');
    }
  });
});

describe('refused', () => {
  const secret = 'expected { "env": "REPLAY_SECRET_NAME" } and nothing else';
  const plain = { type: 'plain', directory: 'x' };
  test.each<[unknown, string]>([
    [null, 'expected an object with "sink", got null'],
    [[], 'expected an object with "sink", got an empty list'],
    [{}, 'sink: missing; expected an object with "type": "plain" or "table"'],
    [{ sink: null }, 'sink: expected an object with "type": "plain" or "table", got null'],
    [{ sink: 'plain' }, 'sink: expected an object with "type": "plain" or "table", got a string'],
    [{ sink: {} }, 'sink.type: missing; expected "plain" or "table"'],
    [{ sink: { type: 'tabel' } }, 'sink.type: expected "plain" or "table", got "tabel"; did you mean "table"?'],
    [{ sink: { type: 'constructor' } }, 'sink.type: expected "plain" or "table", got "constructor"'],
    [{ sink: { type: 'plain' } }, 'sink.directory: missing; expected a string'],
    [{ sink: { ...plain, dir: 'x' } }, 'sink.dir: unknown field; known here: type, directory'],
    [{ sink: { ...table, port: 70_000 } }, 'sink.port: expected a whole number from 1 to 65,535, got 70000'],
    [{ sink: { ...table, port: 1.5 } }, 'sink.port: expected a whole number from 1 to 65,535, got 1.5'],
    [{ sink: { ...table, host: 12 } }, 'sink.host: expected a string that is not empty, got a number'],
    [{ sink: { ...table, port: '3306' } }, 'sink.port: expected a whole number from 1 to 65,535, got a string'],
    [{ sink: { ...table, mode: 'merge' } }, 'sink.mode: expected "insert" or "upsert", got a string'],
    [{ sink: { ...table, host: '' } }, 'sink.host: expected a string that is not empty, got an empty string'],
    [{ sink: { ...table, tls: { verify: 'no' } } }, 'sink.tls.verify: expected true or false, got a string'],
    [
      { sink: { ...table, columns: { ID: { payload: '/id' } } } },
      'sink.columns.ID: not a name that can stand here; expected a name matching /^[a-z_]+$/',
    ],
    [{ sink: { ...table, columns: { id: { payload: 1 } } } }, 'sink.columns.id'],
    [{ sink: { ...table, password: 'hunter2' } }, `sink.password: ${secret}`],
    [{ sink: { ...table, password: { env: 'DB_PASSWORD' } } }, `sink.password: ${secret}`],
    [{ sink: { ...table, password: { env: 'REPLAY_SECRET_db' } } }, `sink.password: ${secret}`],
    [{ sink: { ...table, password: { env: 'REPLAY_SECRET_' } } }, `sink.password: ${secret}`],
    [{ sink: { ...table, password: { env: 'REPLAY_SECRET_A', value: 'x' } } }, `sink.password: ${secret}`],
    [{ sink: { ...table, password: undefined } }, `sink.password: missing; ${secret}`],
    [{ sink: { ...table, tls: { key: 'PEM' } } }, `sink.tls.key: ${secret}`],
    [
      { sink: plain, idempotency: { key: 'message_id' } },
      'idempotency.key: the plain sink cannot honour "message_id"; expected "stream_sequence"',
    ],
    [
      { sink: plain, idempotency: { key: 'none' } },
      'idempotency.key: expected "stream_sequence", "message_id" or "payload_field", got "none"',
    ],
    [
      { sink: plain, idempotency: { key: 'stream_sequence', field: '/id' } },
      'idempotency.field: has no effect with the key "stream_sequence"',
    ],
    [
      { sink: plain, idempotency: { key_conflicts: 'keep' } },
      'idempotency.key_conflicts: "keep" has no effect with the key "stream_sequence"',
    ],
    [{ sink: plain, idempotency: [] }, 'idempotency: expected an object, got an empty list'],
    [{ sink: table, idempotency: { key: 'payload_field' } }, 'idempotency.field: missing; expected a JSON Pointer such as /id'],
    [
      { sink: table, idempotency: { key: 'payload_field', field: 'id' } },
      'idempotency.field: "id" does not begin with a slash',
    ],
    [{ sink: table, idempotency: { key: 'payload_field', field: '' } }, 'idempotency.field: "" does not begin with a slash'],
    [{ sink: table, idempotency: { key: 'payload_field', field: '/a~2' } }, 'idempotency.field: "/a~2" has a ~ that is not'],
    [{ sink: plain, dead_letter: {} }, 'dead_letter.subject: missing; expected a subject without wildcards'],
    [{ sink: plain, dead_letter: 'dlq' }, 'dead_letter: expected an object, got "dlq"'],
    [{ sink: plain, dead_letter: { subject: 'dlq.>' } }, 'dead_letter.subject: "dlq.>" has a wildcard'],
    [{ sink: plain, dead_letter: { subject: 'a..b' } }, 'dead_letter.subject: "a..b" has an empty token'],
    [
      { sink: plain, deadletter: { subject: 'a' } },
      'deadletter: unknown field; did you mean dead_letter? known here: sink, idempotency, dead_letter',
    ],
  ])('%j', (document, expected) => {
    const problems = problemsOf(document);
    expect(problems).toContain(expected);
    expect(problems.split('\n')).toHaveLength(1);
    expect(problems).not.toMatch(/hunter2|DB_PASSWORD|PEM/);
  });

  test('all at once', () => {
    const document = {
      sink: { ...table, password: 'hunter2', port: 0 },
      idempotency: { key: 'payload_field' },
      dead_letter: { subject: '*' },
      x: 1,
    };
    expect(
      problemsOf(document)
        .split('\n')
        .map((line) => line.split(':')[0]!),
    ).toEqual(['sink.port', 'sink.password', 'dead_letter.subject', 'x', 'idempotency.field']);
  });
});

describe('plan and target together', () => {
  const parsedPlan = parsePlanBytes(readFileSync('examples/orders-plan.json'));
  const plan: ReplayPlan = parsedPlan.ok ? parsedPlan.value : (undefined as never);
  const withLetters = (subject: string | null) => {
    const parsed = parseTarget(
      { sink: { type: 'plain', directory: 'x' }, dead_letter: subject === null ? null : { subject } },
      specs,
    );
    if (!parsed.ok) throw new Error(formatProblems(parsed.problems));
    return parsed.value;
  };

  test('a dead-letter subject inside the scope', () => {
    const wide = { ...plan, subject_filters: ['orders.*', 'dlq.>'] };
    expect(formatProblems(checkPlanAgainstTarget(wide, withLetters('dlq.orders')))).toBe(
      'dead_letter.subject: "dlq.orders" is inside the scope of the plan ("dlq.>"), which would read its own dead letters; ' +
        'expected a subject that no filter of the plan takes',
    );
  });

  test('outside the scope, or none', () => {
    expect(checkPlanAgainstTarget(plan, withLetters('dlq.orders'))).toEqual([]);
    expect(checkPlanAgainstTarget(plan, withLetters(null))).toEqual([]);
  });
});

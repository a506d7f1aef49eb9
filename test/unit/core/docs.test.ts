import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { faultCatalogue } from '../../../core/errors.ts';
import { rejectCatalogue } from '../../../core/record.ts';
import { topicErrorCatalogue } from '../../../core/topic-errors.ts';
import { describeFields, secretSchema } from '../../../core/schema.ts';
import { staleFiles, writeFiles } from '../../../scripts/docs.ts';
import { planSchemaText, targetSchemaText } from '../../../scripts/docs/editor-schemas.ts';
import { errorsPage } from '../../../scripts/docs/errors-page.ts';
import { fieldTable } from '../../../scripts/docs/markdown.ts';
import { planPage } from '../../../scripts/docs/plan-page.ts';
import { sinksPage } from '../../../scripts/docs/sinks-page.ts';
import { sinkSpecs } from '../../../sinks/registry.ts';

const example = async (name: string): Promise<unknown> => JSON.parse(await readFile(`examples/${name}`, 'utf8')) as unknown;

describe('staleness', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'docs-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));
  const list = [
    { file: 'docs/a.md', text: () => '# A\n\n* x' },
    { file: 'docs/b.json', text: () => '{"a":1}' },
  ];

  test('a missing and a changed file are named, a written one is not', async () => {
    expect(await staleFiles(list, root)).toEqual(['docs/a.md', 'docs/b.json']);
    await writeFiles(list, root);
    expect(await staleFiles(list, root)).toEqual([]);
    await writeFile(join(root, 'docs/b.json'), '{ "a": 2 }\n');
    expect(await staleFiles(list, root)).toEqual(['docs/b.json']);
  });
});

test('every code is on the page of errors, and no other', () => {
  const codes = [...errorsPage().matchAll(/^\| `([a-z_]+)` \|/gm)].map((match) => match[1]);
  expect(codes).toEqual([...Object.keys(faultCatalogue), ...Object.keys(rejectCatalogue), ...Object.keys(topicErrorCatalogue)]);
});

test('every sink has a section with every field described', () => {
  for (const spec of sinkSpecs) {
    expect(sinksPage()).toContain(`## ${spec.type}\n`);
    const silent = describeFields(spec.config).filter(({ description }) => description === '');
    expect(silent.map(({ path }) => path.join('.'))).toEqual([]);
  }
});

test('fields: nested objects, names of the user, secrets, defaults', () => {
  const schema = z.strictObject({
    type: z.literal('x'),
    tls: z.strictObject({ key: secretSchema('The key.').optional() }).optional(),
    columns: z.record(z.string(), z.strictObject({ payload: z.string().meta({ description: 'a|b', examples: ['/id'] }) })),
    size: z.int().min(1).max(5).default(3),
  });
  expect(
    fieldTable(describeFields(schema, ['sink']))
      .split('\n')
      .slice(2),
  ).toEqual([
    '| `sink.type` | "x" | required |  |',
    '| `sink.tls` | an object | none |  |',
    '| `sink.tls.key` | { "env": "REPLAY_SECRET_NAME" } | none | The key. Example: `{"env":"REPLAY_SECRET_NAME"}` |',
    '| `sink.columns` | an object | required |  |',
    '| `sink.columns.NAME.payload` | a string | required | a\\|b Example: `"/id"` |',
    '| `sink.size` | a whole number from 1 to 5 | `3` |  |',
  ]);
});

describe('editor schemas', () => {
  const plan = z.fromJSONSchema(JSON.parse(planSchemaText()) as Parameters<typeof z.fromJSONSchema>[0]);
  const target = z.fromJSONSchema(JSON.parse(targetSchemaText()) as Parameters<typeof z.fromJSONSchema>[0]);

  test('take the examples, and null for optional fields', async () => {
    const document = (await example('orders-plan.json')) as { replay: object };
    expect(plan.safeParse(document).success).toBe(true);
    expect(plan.safeParse({ replay: { ...document.replay, start_time: null, dry_run: null } }).success).toBe(true);
    expect(target.safeParse(await example('orders-target.json')).success).toBe(true);
    expect(target.safeParse({ sink: { type: 'file', directory: 'x', compression: null }, dead_letter: null }).success).toBe(
      true,
    );
  });

  test('refuse what is wrong', async () => {
    const document = (await example('orders-plan.json')) as { replay: object };
    const changes = [
      { max_messages: null },
      { batch_size: 100_000 },
      { window: 24 },
      { dry_run: 'no' },
      { subject_filters: [] },
    ];
    const accepted = changes.filter((change) => plan.safeParse({ replay: { ...document.replay, ...change } }).success);
    expect(accepted).toEqual([]);
    expect(target.safeParse({ sink: { type: 'fil', directory: 'x' } }).success).toBe(false);
    expect(target.safeParse({ sink: { type: 'file', directory: 'x' }, dead_letter: { subject: 1 } }).success).toBe(false);
  });

  test('hold nothing of our own markers', () => {
    expect(planSchemaText() + targetSchemaText()).not.toMatch(/"expected"|"secret":/);
  });
});

test('a page says that it is generated', () => {
  expect(planPage()).toMatch(/^<!-- Generated by npm run docs from core\/plan-fields.ts. Do not edit. -->/);
});

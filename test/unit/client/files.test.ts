import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { formatFileProblems, readRequest } from '../../../client/files.ts';
import { tempDir } from '../../support/file-end.ts';

const now = Date.parse('2026-06-01T00:00:00Z');
let folder: string;

beforeAll(async () => {
  folder = await tempDir();
});

const plan = {
  stream: 'ORDERS',
  subject_filter: 'orders.>',
  durable_consumer: 'orders-replay',
  start_sequence: 1,
  max_messages: 10,
};
const target = { sink: { type: 'file', directory: 'orders' } };

async function file(name: string, content: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, typeof content === 'string' || content instanceof Uint8Array ? content : JSON.stringify(content));
  return path;
}

async function planFile(fields: object = {}): Promise<string> {
  return await file('plan.json', { replay: { ...plan, ...fields } });
}

async function problemsOf(planPath: string, targetPath: string): Promise<string> {
  const reading = await readRequest({ planFile: planPath, targetFile: targetPath, dryRun: undefined }, now);
  if (reading.ok) throw new Error('the files were taken');
  return formatFileProblems(reading.problems);
}

describe('what is sent', () => {
  test('the documents as they stand in the files', async () => {
    const paths = { planFile: await planFile({ dry_run: false }), targetFile: await file('target.json', target) };
    const reading = await readRequest({ ...paths, dryRun: undefined }, now);
    expect(reading).toMatchObject({
      ok: true,
      value: { request: { plan: { replay: { ...plan, dry_run: false } }, target }, plan: { dry_run: false } },
    });
  });

  test.each([
    [undefined, undefined, true],
    [false, undefined, false],
    [false, true, true],
    [true, false, false],
    [undefined, false, false],
  ])('dry_run %s in the plan, %s on the command line', async (inPlan, asked, expected) => {
    const paths = { planFile: await planFile({ dry_run: inPlan }), targetFile: await file('target.json', target) };
    const reading = await readRequest({ ...paths, dryRun: asked }, now);
    if (!reading.ok) throw new Error(formatFileProblems(reading.problems));
    expect(reading.value.plan.dry_run).toBe(expected);
    const sent = reading.value.request.plan as { replay: { dry_run?: boolean } };
    expect(sent.replay.dry_run ?? true).toBe(expected);
    expect(sent.replay).toMatchObject(plan);
  });

  test('the name of a target that is no file here', async () => {
    const reading = await readRequest({ planFile: await planFile(), targetFile: 'warehouse', dryRun: undefined }, now);
    expect(reading).toMatchObject({ ok: true, value: { request: { target: 'warehouse' }, target: null } });
  });
});

describe('what is refused', () => {
  test('all problems of both files at once, each with its file', async () => {
    const planPath = await planFile({ stream: 'a.b', start_sequence: 0, start_time: '2026-05-01T10:00:00Z', extra: 1 });
    const targetPath = await file('target.json', { sink: { type: 'fiel' }, dead_letter: { subject: 'dlq.*' } });
    const lines = (await problemsOf(planPath, targetPath)).split('\n');
    const fields = lines.map((line) => /^\S+(plan|target)\.json: (\S+):/.exec(line)?.slice(1).join(' '));
    expect(fields).toEqual(
      expect.arrayContaining([
        'plan replay.stream',
        'plan replay.start_sequence',
        'plan replay.extra',
        'target sink.type',
        'target dead_letter.subject',
      ]),
    );
  });

  test('a dead-letter subject inside the scope, a start in the future', async () => {
    const planPath = await planFile({ start_sequence: undefined, start_time: '2026-06-01T00:00:01Z' });
    const targetPath = await file('target.json', { ...target, dead_letter: { subject: 'orders.dead' } });
    const text = await problemsOf(planPath, targetPath);
    expect(text).toContain('plan.json: replay.start_time: "2026-06-01T00:00:01Z" is in the future');
    expect(text).toContain('target.json: dead_letter.subject: "orders.dead" is inside the scope');
  });

  test.each([
    ['empty', '', 'the file is empty'],
    ['null', 'null', 'expected an object'],
    ['an array', '[]', 'expected an object'],
    ['trailing text', '{} x', 'nothing more after the end'],
    ['a key twice', '{"replay":{},"replay":{}}', 'again'],
    ['NaN', '{"replay":{"max_messages":NaN}}', 'NaN and Infinity are not JSON'],
    ['not UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d), 'not UTF-8'],
    ['2 MB', `"${'x'.repeat(2_000_000)}"`, 'more than 1,048,576 bytes'],
  ])('%s', async (_, content, expected) => {
    const targetPath = await file('target.json', target);
    expect(await problemsOf(await file('bad.json', content), targetPath)).toContain(expected);
    expect(await problemsOf(await planFile(), await file('bad.json', content))).toContain('bad.json: ');
  });

  test('a missing file, a directory', async () => {
    await mkdir(join(folder, 'd.json'), { recursive: true });
    const missing = join(folder, 'missing.json');
    const text = await problemsOf(missing, join(folder, 'd.json'));
    expect(text).toContain(`${missing}: no such file; expected a plan file`);
    expect(text).toContain('d.json: is a directory; expected a target file, or the name of a target');
    expect(await problemsOf(await planFile(), missing)).toContain(`${missing}: no such file; expected a target file`);
  });

  test('a bare name is no plan', async () => {
    expect(await problemsOf('nowhere', 'warehouse')).toBe('nowhere: no such file; expected a plan file');
  });
});

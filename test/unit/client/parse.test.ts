import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import { createProgram, parseCommandLine, type Invocation } from '../../../client/parse.ts';
import { examplesOf } from '../../../client/verbs.ts';

const silent = { out: () => undefined, err: () => undefined };

function parse(...words: string[]): Invocation {
  return parseCommandLine(words, silent);
}

function refused(...words: string[]): string {
  const written: string[] = [];
  try {
    parseCommandLine(words, { out: () => undefined, err: (text) => written.push(text) });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    expect(error.exitCode).not.toBe(0);
    return written.join('');
  }
  throw new Error(`${words.join(' ')} was taken`);
}

describe('main form', () => {
  test('neither flag leaves the choice to the plan', () => {
    expect(parse('plan.json', 'target.json')).toEqual({
      verb: 'replay',
      options: {
        planFile: 'plan.json',
        targetFile: 'target.json',
        dryRun: undefined,
        detach: false,
        json: false,
        meantVerb: null,
      },
    });
  });

  test.each([
    [['--dry-run'], { dryRun: true }],
    [['--execute', '--detach', '--json'], { dryRun: false, detach: true, json: true }],
  ])('%j after the files', (flags, expected) => {
    expect(parse('plan.json', 'target.json', ...flags).options).toMatchObject(expected);
    expect(parse(...flags, 'plan.json', 'target.json').options).toMatchObject(expected);
  });

  test('a plan named like a verb is given as a path', () => {
    expect(parse('./status', 'target.json')).toMatchObject({ verb: 'replay', options: { planFile: './status' } });
    expect(parse('status', 'target.json')).toMatchObject({ verb: 'status' });
  });

  test('wrong usage says what is wrong', () => {
    expect(refused('a.json', 'b.json', '--dry-run', '--execute')).toContain('cannot be used with');
    expect(refused('a.json', 'b.json', 'c.json')).toContain('too many arguments');
    expect(refused('plan.json')).toContain('missing TARGET: "plan.json" is no verb');
    expect(refused('stauts')).toContain('did you mean the verb status?');
    expect(refused()).toContain('replay-stream PLAN TARGET');
  });

  test('a mistyped verb is remembered for the message about its missing file', () => {
    expect(parse('cancle', 'ORDERS')).toMatchObject({ verb: 'replay', options: { meantVerb: 'cancel' } });
  });
});

describe('verbs', () => {
  test.each<[string[], Invocation]>([
    [['status'], { verb: 'status', options: { name: null, follow: false, json: false } }],
    [['status', 'ID', '--follow', '--json'], { verb: 'status', options: { name: ['ID'], follow: true, json: true } }],
    [['status', 'S', 'D'], { verb: 'status', options: { name: ['S', 'D'], follow: false, json: false } }],
    [['list'], { verb: 'list', options: { all: false, state: null, limit: 20, json: false } }],
    [
      ['list', '--all', '--state', 'blocked', '--limit', '7'],
      { verb: 'list', options: { all: true, state: 'blocked', limit: 7, json: false } },
    ],
    [['pause', 'ID', '--reason', 'x'], { verb: 'pause', options: { name: ['ID'], reason: 'x', json: false } }],
    [['resume', 'S', 'D'], { verb: 'resume', options: { name: ['S', 'D'], reason: null, json: false } }],
    [['cancel', 'ID'], { verb: 'cancel', options: { name: ['ID'], wait: true, json: false } }],
    [['cancel', 'ID', '--no-wait', '--json'], { verb: 'cancel', options: { name: ['ID'], wait: false, json: true } }],
    [['rate', 'ID', '500'], { verb: 'rate', options: { name: ['ID'], rate: { perSecond: 500 }, json: false } }],
    [['rate', 'S', 'D', 'off'], { verb: 'rate', options: { name: ['S', 'D'], rate: { perSecond: null }, json: false } }],
    [['report', 'ID', '--markdown'], { verb: 'report', options: { name: ['ID'], form: 'markdown' } }],
    [['worker'], { verb: 'worker', options: { json: false } }],
  ])('%j', (words, expected) => {
    expect(parse(...words)).toEqual(expected);
  });

  test('check takes the files', () => {
    expect(parse('check', 'p', 't', '--connect').options).toMatchObject({ planFile: 'p', targetFile: 't', connect: true });
  });

  test('dev keeps its data unless told otherwise', () => {
    expect(parse('dev', '--ui-port', '9090').options).toMatchObject({ dataFolder: '.durable-replay', uiPort: 9090 });
    expect(parse('dev', '--temporary').options).toMatchObject({ dataFolder: null });
  });

  test.each([
    [['rate', 'ID'], 'then a number or off'],
    [['rate', 'ID', '0'], 'whole number from 1 to 1,000,000'],
    [['rate', 'ID', '1.5'], 'whole number from 1 to 1,000,000'],
    [['rate', 'ID', '1e3'], 'whole number from 1 to 1,000,000'],
    [['rate', 'a', 'b', 'c', '5'], 'expected an ID, or STREAM DURABLE'],
    [['status', 'a', 'b', 'c'], 'expected an ID, or STREAM DURABLE'],
    [['pause'], "missing required argument 'name'"],
    [['list', '--limit', '0'], 'whole number from 1 to 1,000'],
    [['list', '--state', 'resting'], 'Allowed choices are'],
    [['report', 'ID', '--markdown', '--json'], 'cannot be used with'],
    [['--json', 'status', 'ID'], 'options stand after the verb'],
    [['--execute', 'cancel', 'ID'], 'options stand after the verb'],
    [['status', 'ID', '--execute'], "unknown option '--execute'"],
    [['topic', 'create', 'x', '--max-age', '7'], 'Expected a time such as 7d'],
    [['topic', 'create', 'x', '--max-bytes', '1MB'], 'Expected bytes'],
    [['topic', 'read', 'x', '--from', '0'], "required option '--partition <p>'"],
    [['topic', 'read', 'x', '--partition', '0', '--from', '-1'], 'whole number'],
    [['topic', 'reset', 'x', '--group', 'g', '--to', '2026-05-01T10:00:00'], 'as a time it has no offset'],
    [['topic', 'psuh', 'x'], "unknown command 'psuh'"],
    [['topic'], 'replay-stream topic COMMAND'],
  ])('%j is refused', (words, text) => {
    expect(refused(...words)).toContain(text);
  });
});

describe('topic', () => {
  test.each([
    [['create', 'x'], { kind: 'create', options: { partitions: undefined, hot: { maxAgeSeconds: undefined } } }],
    [
      ['create', 'x', '--partitions', '4', '--max-age', '90m', '--max-bytes', '64KiB'],
      { options: { partitions: 4, hot: { maxAgeSeconds: 5_400, maxBytes: 65_536 } } },
    ],
    [['push', 'x'], { kind: 'push', file: '-', split: false }],
    [['push', 'x', 'f.jsonl', '--split'], { file: 'f.jsonl', split: true }],
    [['read', 'x', '--partition', '1', '--from', '0'], { kind: 'read', partition: 1, from: 0, limit: 100 }],
    [['consume', 'x', '--group', 'g', '--partition', '1'], { kind: 'consume', group: 'g', lease: null, onTruncated: 'stop' }],
    [['consume', 'x', '--group', 'g', '--partition', '1', '--lease'], { lease: { leaseMs: 30_000, parallel: 1 } }],
    [['commit', 'x', '--group', 'g', '--partition', '0', '--offset', '7', '--handle', 'h'], { nextOffset: 7, handle: 'h' }],
    [['reset', 'x', '--group', 'g', '--to', 'latest'], { target: { to: 'latest' }, partition: undefined }],
    [['reset', 'x', '--group', 'g', '--to', '12', '--partition', '3'], { target: { to: 'offset', offset: 12 }, partition: 3 }],
    [['reset', 'x', '--group', 'g', '--to', '1970-01-01T00:00:01Z'], { target: { to: 'time', timeNanos: 1_000_000_000n } }],
    [['delete', 'x'], { kind: 'delete' }],
  ])('%j', (words, action) => {
    expect(parse('topic', ...words)).toMatchObject({ verb: 'topic', options: { name: 'x', json: false, action } });
  });
});

test('every verb has --json and an example that can be typed', () => {
  const program = createProgram(() => undefined, silent);
  const verbs = program.commands.flatMap((verb) => (verb.commands.length === 0 ? [verb] : verb.commands));
  for (const command of [program, ...verbs]) {
    expect(
      command.options.map(({ long }) => long),
      command.name(),
    ).toContain('--json');
    expect(examplesOf(command).length, command.name()).toBeGreaterThan(0);
    for (const { command: line } of examplesOf(command)) {
      const words = [
        ...line
          .replace(/^.* \| /, '')
          .replace(/ > .*$/, '')
          .matchAll(/"([^"]*)"|(\S+)/g),
      ].map((match) => match[1] ?? match[2]!);
      const start = words.indexOf('replay-stream');
      expect(start, line).toBeGreaterThan(-1);
      expect(() => parse(...words.slice(start + 1)), line).not.toThrow();
    }
  }
});

test('help loads neither the Temporal client nor a schema library', async () => {
  const script = `
    import { createRequire } from 'node:module';
    const { parseCommandLine } = await import('./client/parse.ts');
    await import('./client/act.ts');
    const output = { out: () => undefined, err: () => undefined };
    try { parseCommandLine(['--help'], output); } catch {}
    const loaded = Object.keys(createRequire(import.meta.url).cache);
    console.log(JSON.stringify(loaded.filter((file) => /@temporalio|@grpc|zod|clack|pino/.test(file))));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
  });
  expect(JSON.parse(stdout)).toEqual([]);
});

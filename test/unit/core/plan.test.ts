import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkStartSequence, checkStartTime, parsePlan, parsePlanBytes } from '../../../core/plan.ts';
import type { ReplayPlan } from '../../../core/plan.ts';
import { formatProblems } from '../../../core/problems.ts';

const good = {
  stream: 'ORDERS',
  subject_filters: ['orders.created', 'orders.updated'],
  durable_consumer: 'orders-replay-2026-05',
  start_sequence: 1000,
  max_messages: 5000,
};

function problemsOf(change: Record<string, unknown>): string[] {
  const parsed = parsePlan({ replay: { ...good, ...change } });
  return parsed.ok ? [] : formatProblems(parsed.problems).split('\n');
}

function planOf(change: Record<string, unknown>): ReplayPlan {
  const parsed = parsePlan({ replay: { ...good, ...change } });
  if (!parsed.ok) throw new Error(formatProblems(parsed.problems));
  return parsed.value;
}

describe('accepted', () => {
  test('defaults', () => {
    expect(planOf({})).toEqual({
      ...good,
      topic: null,
      from: null,
      start_time: null,
      end_sequence: null,
      end_time: null,
      batch_size: null,
      batch_bytes: 8_388_608,
      stop_after_idle_seconds: 5,
      dry_run: true,
      report_file: null,
      rate_limit_per_second: null,
      rate_limit_bytes_per_second: null,
      pace: null,
      pace_factor: null,
      pace_gap_seconds_max: null,
      allowed_hours: null,
      max_rejects: 100,
      window: null,
      require_approval: false,
      approval_timeout_seconds: 86_400,
      keep_consumer: false,
      production_consumer: null,
    });
  });

  test('every field as given', () => {
    const full = {
      ...good,
      topic: null,
      from: null,
      start_sequence: null,
      start_time: '2026-05-01t10:00:00.123456789+02:00',
      end_sequence: 9_007_199_254_740_991,
      end_time: '2026-05-01T08:00:00.123456790Z',
      batch_size: 10_000,
      batch_bytes: 65_536,
      stop_after_idle_seconds: 3_600,
      dry_run: false,
      window: null,
      require_approval: true,
      approval_timeout_seconds: 60,
      report_file: 'a/b c.md',
      rate_limit_per_second: 1,
      rate_limit_bytes_per_second: 1_024,
      pace: 'original',
      pace_factor: 0.5,
      pace_gap_seconds_max: 60,
      allowed_hours: { zone: 'Europe/Berlin', from: '22:00', to: '06:00' },
      max_rejects: 0,
      keep_consumer: true,
      production_consumer: 'orders-service',
    };
    expect(planOf(full)).toEqual(full);
  });

  test('null counts as absent for optional fields', () => {
    const names = ['start_time', 'subject_filter', 'end_sequence', 'end_time', 'batch_size', 'batch_bytes', 'report_file'];
    const more = [
      'stop_after_idle_seconds',
      'dry_run',
      'rate_limit_per_second',
      'max_rejects',
      'window',
      'require_approval',
      'approval_timeout_seconds',
      'keep_consumer',
      'production_consumer',
    ];
    expect(planOf(Object.fromEntries([...names, ...more].map((name) => [name, null])))).toEqual(planOf({}));
  });

  test('one filter becomes the list of one', () => {
    expect(planOf({ subject_filters: undefined, subject_filter: 'orders.>' }).subject_filters).toEqual(['orders.>']);
  });

  test('a parsed plan parses to itself', () => {
    const plan = planOf({ start_sequence: null, start_time: '2026-05-01T10:00:00Z', report_file: 'r.json' });
    expect(parsePlan(JSON.parse(JSON.stringify({ replay: plan })))).toEqual({ ok: true, value: plan });
  });

  test('the example', () => {
    const parsed = parsePlanBytes(readFileSync('examples/orders-plan.json'));
    expect(parsed.ok ? '' : formatProblems(parsed.problems)).toBe('');
  });
});

describe('refused, each with its path and what is expected', () => {
  const sequence = 'expected a whole number from 1 to 9,007,199,254,740,991';
  const both = 'replay.start_sequence: stands together with start_time; expected exactly one of start_sequence and start_time';
  const cases: [Record<string, unknown>, string][] = [
    [{ start_time: '2026-05-01T10:00:00Z' }, both],
    [{ start_sequence: null }, 'replay.start_sequence: missing; expected exactly one of start_sequence and start_time'],
    [{ start_sequence: 0 }, `replay.start_sequence: ${sequence}, got 0`],
    [{ start_sequence: -1 }, `replay.start_sequence: ${sequence}, got -1`],
    [{ start_sequence: 1.5 }, `replay.start_sequence: ${sequence}, got 1.5`],
    [{ start_sequence: '1' }, `replay.start_sequence: ${sequence}, got "1"`],
    [{ start_sequence: true }, `replay.start_sequence: ${sequence}, got true`],
    [{ start_sequence: 2 ** 53 }, `replay.start_sequence: ${sequence}, got 9007199254740992`],
    [{ start_sequence: 10n ** 40n }, `replay.start_sequence: ${sequence}, got 1${'0'.repeat(40)}`],
    [{ start_sequence: Number.NaN }, `replay.start_sequence: ${sequence}, got NaN`],
    [{ start_sequence: Number.POSITIVE_INFINITY }, `replay.start_sequence: ${sequence}, got Infinity`],
    [{ end_sequence: 999 }, 'replay.end_sequence: 999 is before the start; expected at least start_sequence, 1000'],
    [{ end_sequence: 0 }, `replay.end_sequence: ${sequence}, got 0`],
    [
      { start_sequence: null, start_time: '2026-05-01T10:00:00' },
      'replay.start_time: "2026-05-01T10:00:00" has no offset; expected an RFC 3339 time',
    ],
    [
      { start_sequence: null, start_time: '2026-05-01T10:00:00Z[UTC]' },
      'replay.start_time: "2026-05-01T10:00:00Z[UTC]" goes on after the offset',
    ],
    [{ start_sequence: null, start_time: '0001-01-01T00:00:00Z' }, 'replay.start_time: "0001-01-01T00:00:00Z" is before 1970'],
    [{ start_sequence: null, start_time: 1777629600 }, 'replay.start_time: expected an RFC 3339 time with an offset'],
    [{ end_time: '2026-02-30T00:00:00Z' }, 'replay.end_time: "2026-02-30T00:00:00Z" is a date that does not exist'],
    [
      { start_sequence: null, start_time: '2026-05-01T10:00:00Z', end_time: '2026-05-01T12:00:00+02:00' },
      'replay.end_time: "2026-05-01T12:00:00+02:00" is not after the start',
    ],
    [{ stream: 'OR.DERS' }, 'replay.stream: "OR.DERS" has one of . * > / \\'],
    [{ stream: 'a b' }, 'replay.stream: "a b" has a space'],
    [{ stream: '' }, 'replay.stream: "" is empty'],
    [{ stream: undefined }, 'replay.stream: missing; expected exactly one of stream and topic'],
    [{ stream: null }, 'replay.stream: missing; expected exactly one of stream and topic'],
    [{ durable_consumer: 'x>' }, 'replay.durable_consumer: "x>" has one of'],
    [{ durable_consumer: 'a\u001b[31m' }, 'replay.durable_consumer: "a\\u001b[31m" has a space or an unprintable character'],
    [{ production_consumer: good.durable_consumer }, 'replay.durable_consumer: is the production_consumer'],
    [{ production_consumer: 'a.b' }, 'replay.production_consumer: "a.b" has one of'],
    [{ subject_filters: ['orders..x'] }, 'replay.subject_filters[0]: "orders..x" has an empty token'],
    [{ subject_filters: ['a', 's..>>'] }, 'replay.subject_filters[1]: "s..>>" has an empty token'],
    [{ subject_filters: ['a*b'] }, 'replay.subject_filters[0]: "a*b" has a wildcard inside a token'],
    [{ subject_filters: ['>.a'] }, 'replay.subject_filters[0]: ">.a" has a > that is not the last token'],
    [
      { subject_filters: [7] },
      'replay.subject_filters[0]: expected a subject or filter such as orders.created or orders.>, got 7',
    ],
    [{ subject_filters: [] }, 'replay.subject_filters: expected a list of 1 to 64 subjects or filters, got an empty list'],
    [
      { subject_filters: Array.from({ length: 65 }, (_, i) => `a.${i}`) },
      'replay.subject_filters: expected a list of 1 to 64 subjects or filters, got a list of 65',
    ],
    [{ subject_filters: 'orders.>' }, 'replay.subject_filters: expected a list of 1 to 64 subjects or filters, got "orders.>"'],
    [
      { subject_filters: ['a.x', 'b', 'a.*'] },
      'replay.subject_filters[2]: "a.*" overlaps subject_filters[0], "a.x"; expected filters that share no subject',
    ],
    [{ subject_filters: ['a', 'a'] }, 'replay.subject_filters[1]: "a" overlaps subject_filters[0], "a"'],
    [{ subject_filter: 'x' }, 'replay.subject_filter: stands together with subject_filters; expected exactly one'],
    [
      { subject_filters: undefined },
      'replay.subject_filter: missing; expected exactly one of subject_filter and subject_filters',
    ],
    [{ max_messages: undefined }, 'replay.max_messages: missing; expected a whole number from 1 to 1,000,000,000'],
    [{ max_messages: null }, 'replay.max_messages: expected a whole number from 1 to 1,000,000,000, got null'],
    [{ max_messages: 1_000_000_001 }, 'replay.max_messages: expected a whole number from 1 to 1,000,000,000, got 1000000001'],
    [{ batch_size: 100_000 }, 'replay.batch_size: expected a whole number from 1 to 10,000, got 100000'],
    [{ batch_size: 0 }, 'replay.batch_size: expected'],
    [{ batch_bytes: 65_535 }, 'replay.batch_bytes: expected a whole number from 65,536 to 67,108,864, got 65535'],
    [{ batch_bytes: 67_108_865 }, 'replay.batch_bytes: expected'],
    [{ stop_after_idle_seconds: 3_601 }, 'replay.stop_after_idle_seconds: expected a whole number from 1 to 3,600, got 3601'],
    [{ stop_after_idle_seconds: 0 }, 'replay.stop_after_idle_seconds: expected'],
    [
      { rate_limit_bytes_per_second: 1_023 },
      'replay.rate_limit_bytes_per_second: expected a whole number from 1,024 to 10,737,418,240, got 1023',
    ],
    [{ pace_factor: 2 }, 'replay.pace_factor: stands without pace; expected "pace": "original" beside it'],
    [{ pace: 'slow' }, 'replay.pace: expected "original", got "slow"'],
    [
      { allowed_hours: { zone: 'Europe/Berln', from: '22:00', to: '06:00' } },
      'replay.allowed_hours.zone: "Europe/Berln" is no time zone; expected a zone of the IANA database such as Europe/Berlin or UTC',
    ],
    [
      { allowed_hours: { zone: 'UTC', from: '24:00', to: '06:00' } },
      'replay.allowed_hours.from: "24:00" is no time of day; expected HH:MM from 00:00 to 23:59',
    ],
    [
      { allowed_hours: { zone: 'UTC', from: '06:00', to: '06:00' } },
      'replay.allowed_hours.to: "06:00" is from; expected another time of day',
    ],
    [{ rate_limit_per_second: 0 }, 'replay.rate_limit_per_second: expected a whole number from 1 to 1,000,000, got 0'],
    [{ max_rejects: -1 }, 'replay.max_rejects: expected a whole number from 0 to 1,000,000, got -1'],
    [{ dry_run: 'false' }, 'replay.dry_run: expected true or false, got "false"'],
    [{ keep_consumer: 1 }, 'replay.keep_consumer: expected true or false, got 1'],
    [{ report_file: '../x.json' }, 'replay.report_file: "../x.json" leaves the report root'],
    [{ report_file: 'a/../../x.json' }, 'leaves the report root'],
    [{ report_file: '/tmp/x.json' }, 'replay.report_file: "/tmp/x.json" is not relative'],
    [{ report_file: 'C:x.json' }, 'is not relative'],
    [{ report_file: 'a\\x.json' }, 'has a backslash or an unprintable character'],
    [{ report_file: 'a\u0000.json' }, 'has a backslash or an unprintable character'],
    [{ report_file: 'x.jsonl' }, 'does not end in .json or .md'],
    [{ report_file: '.json' }, 'does not end in .json or .md'],
    [{ report_file: 'a//x.json' }, 'has an empty part'],
    [{ report_file: './x.json' }, 'has an empty part or a lone dot'],
    [{ report_file: '' }, 'replay.report_file: "" is empty'],
    [{ report_file: `${'x'.repeat(256)}.md` }, 'has a part longer than 255 bytes'],
    [
      { max_message: 5 },
      'replay.max_message: unknown field; did you mean max_messages? known here: stream, topic, from, subject_filter,',
    ],
    [{ windows: '24h' }, 'replay.windows: unknown field; did you mean window?'],
    [{ window: '24h' }, 'replay.start_sequence: stands together with window'],
    [{ start_sequence: null, window: '1 day' }, 'replay.window: "1 day" is no window; expected'],
    [{ topics: 'orders' }, 'replay.topics: unknown field; did you mean topic?'],
    [{ require_approval: 1 }, 'replay.require_approval: expected true or false, got 1'],
    [{ approval_timeout_seconds: 0 }, 'replay.approval_timeout_seconds: expected a whole number from 1 to 2,592,000'],
  ];
  test.each(cases.map(([change, expected]) => [expected, change] as const))('%s', (expected, change) => {
    const problems = problemsOf(change);
    expect(problems.join('\n')).toContain(expected);
    expect(problems).toHaveLength(1);
  });

  test.each([
    [[], 'expected an object, { "replay": { ... } }, got an empty list'],
    [null, 'expected an object, { "replay": { ... } }, got null'],
    ['x', 'expected an object, { "replay": { ... } }, got "x"'],
    [{}, 'replay: missing; expected an object'],
    [{ replay: [] }, 'replay: expected an object, got an empty list'],
    [{ replay: good, $schema: 1 }, '$schema: expected a string, got 1'],
    [{ replay: good, extra: 1 }, 'extra: unknown field; known here: replay'],
  ])('document %j', (document, expected) => {
    const parsed = parsePlan(document);
    expect(parsed.ok ? '' : formatProblems(parsed.problems)).toBe(expected);
  });

  test('__proto__ is an unknown field like another', () => {
    const parsed = parsePlan(JSON.parse(`{"replay": {"__proto__": {"start_sequence": 1}, "stream": "S"}}`));
    const problems = parsed.ok ? '' : formatProblems(parsed.problems);
    expect(problems).toContain('replay.__proto__: unknown field');
    expect(problems).toContain('replay.start_sequence: missing');
  });
});

test('all problems at once: types, rules between fields, unknown and repeated keys', () => {
  const text = `{"replay": {"stream": 5, "stream": "a.b", "subject_filters": ["a.>", "a.b", 1], "durable_consumer": "d",
    "production_consumer": "d", "start_sequence": "1", "start_time": "2026-05-01T10:00:00", "max_messages": 1e3, "bach_size": 1}}`;
  const parsed = parsePlanBytes(new TextEncoder().encode(text));
  const paths = parsed.ok ? [] : parsed.problems.map((problem) => problem.path);
  expect(paths.toSorted()).toEqual(
    [
      'replay.stream',
      'replay.stream',
      'replay.max_messages',
      'replay.subject_filters[1]',
      'replay.subject_filters[2]',
      'replay.start_sequence',
      'replay.start_sequence',
      'replay.start_time',
      'replay.durable_consumer',
      'replay.bach_size',
    ].toSorted(),
  );
});

test.each([
  ['many filters', `{"replay":{"subject_filters":[${'"",'.repeat(200_000)}"b"]}}`],
  ['many unknown fields', `{"replay":{${Array.from({ length: 90_000 }, (_, i) => `"k${i}":1`).join(',')}}}`],
  ['a number of a million digits', `{"replay":{"max_messages":${'7'.repeat(1_000_000)}}}`],
])('a hostile file of a megabyte: %s', (_name, text) => {
  const started = performance.now();
  const parsed = parsePlanBytes(new TextEncoder().encode(text));
  expect(parsed.ok).toBe(false);
  expect(parsed.ok ? 0 : formatProblems(parsed.problems).length).toBeLessThan(64 * 1024);
  expect(performance.now() - started).toBeLessThan(60_000);
});

describe('of a topic', () => {
  const topicPlan = { topic: 'orders', from: 'earliest', durable_consumer: 'd', max_messages: 10 };
  const parsedOf = (change: Record<string, unknown>) => parsePlan({ replay: { ...topicPlan, ...change } });
  const wrong = (change: Record<string, unknown>): string[] => {
    const parsed = parsedOf(change);
    return parsed.ok ? [] : formatProblems(parsed.problems).split('\n');
  };

  test.each([
    ['earliest', 'earliest'],
    ['a time', '2026-05-01T10:00:00Z'],
    ['offsets', { '0': 0, '255': 12 }],
  ])('from %s; what it parses to parses to the same again', (_name, from) => {
    const parsed = parsedOf({ from, stream: null });
    if (!parsed.ok) throw new Error(formatProblems(parsed.problems));
    expect(parsed.value).toMatchObject({ topic: 'orders', from, stream: 'topic:orders', subject_filters: ['replay-topic.>'] });
    expect(parsePlan({ replay: parsed.value })).toEqual(parsed);
  });

  test.each<[Record<string, unknown>, RegExp]>([
    [{ from: undefined }, /^replay\.from: missing; expected "earliest", a time, or offsets by partition/],
    [{ from: 'latest' }, /^replay\.from: "latest" is no start; expected "earliest"/],
    [{ from: {} }, /^replay\.from: names no partition/],
    [{ from: { '0': -1 } }, /^replay\.from\["0"\]: expected a whole number/],
    [{ from: { first: 1 } }, /^replay\.from\.first: not a name that can stand here/],
    [{ from: 5 }, /^replay\.from: expected "earliest"/],
    [{ topic: '' }, /^replay\.topic: "" is empty; expected the name of a topic/],
    [{ stream: 'ORDERS' }, /^replay\.stream: stands together with topic/],
    [{ subject_filter: 'a.>' }, /^replay\.subject_filter: stands together with topic/],
    [{ window: '24h' }, /^replay\.window: stands together with topic/],
    [{ from: '2026-05-01T10:00:00Z', end_time: '2026-05-01T10:00:00Z' }, /^replay\.end_time: .* is not after the start/],
    [{ durable_consumer: 'd'.repeat(251) }, /^replay\.durable_consumer: is longer than 250 bytes/],
  ])('%j is refused', (change, problem) => {
    expect(wrong(change)).toEqual([expect.stringMatching(problem)]);
  });

  test('all problems at once', () => {
    const problems = wrong({ from: undefined, stream: 'ORDERS', start_sequence: 1, window: '24h', max_messages: 0 });
    const fields = problems.map((problem) => problem.slice(0, problem.indexOf(':')));
    expect(fields.toSorted()).toEqual(
      ['from', 'max_messages', 'start_sequence', 'stream', 'window'].map((field) => `replay.${field}`),
    );
    expect(problemsOf({ from: 'earliest' })).toEqual([expect.stringMatching(/^replay\.from: has no effect without topic/)]);
  });
});

describe('against clock and stream', () => {
  const now = 1_777_629_600_000_000_000n;
  test('a start in the future', () => {
    const plan = planOf({ start_sequence: null, start_time: '2026-05-01T10:00:00.000000001Z' });
    expect(formatProblems(checkStartTime(plan, now))).toContain(
      'replay.start_time: "2026-05-01T10:00:00.000000001Z" is in the future',
    );
    expect(checkStartTime(plan, now + 1n)).toEqual([]);
    expect(checkStartTime(planOf({}), 0n)).toEqual([]);
  });

  test('a start past the end', () => {
    expect(formatProblems(checkStartSequence(planOf({}), 999))).toBe(
      'replay.start_sequence: 1000 is past the end; the stream ends at 999',
    );
    expect(formatProblems(checkStartSequence(planOf({}), 0))).toContain('has never held a message');
    expect(checkStartSequence(planOf({}), 1000)).toEqual([]);
  });
});

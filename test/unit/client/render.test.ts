import { describe, expect, test } from 'vitest';
import {
  formatBytes,
  problemText,
  progressBlock,
  progressLine,
  progressText,
  reportSummary,
  textTable,
} from '../../../client/render.ts';
import { noCounts, noProgress, type BlockedBy, type Progress } from '../../../core/progress.ts';
import { report } from './samples.ts';

const running: Progress = {
  ...noProgress,
  state: 'running',
  problem: null,
  counts: {
    ...noCounts,
    pulled: 2_103,
    written: 2_090,
    duplicate: 10,
    rejected: 3,
    dead_lettered: 3,
    acked: 2_000,
    bytes: 3_000,
  },
  range: { first: 1, last: 5_000 },
  cursor: 2_104,
  rate: 1_812.5,
  rate_limit_per_second: 2_000,
  percent: 42,
  secondsLeft: 75,
  rejects: [
    { sequence: 8, code: 'not_json' },
    { sequence: 9, code: 'not_json', field: '/id' },
  ] as unknown as Progress['rejects'],
};

const problem: BlockedBy = {
  code: 'sink_full',
  detail: 'disk',
  since: '2026-05-01T10:00:00.000Z',
  next: 'Make room, then resume.',
  retry_at: null,
};

describe('the line of a running replay', () => {
  test.each([
    [120, 'running  ████████░░░░░░░░░░░░ 42 %  1 min 15 s left  1,812.5/s  2,103 settled  3 rejected'],
    [60, 'running  ████░░░░░░ 42 %  1 min 15 s left  1,812.5/s'],
    [40, 'running  ████░░░░░░ 42 %'],
    [20, 'running'],
    [5, 'runn'],
  ])('at %i columns', (columns, expected) => {
    expect(progressLine(running, columns)).toBe(expected);
  });

  test('never reaches the last column', () => {
    for (let columns = 1; columns < 130; columns++) expect(progressLine(running, columns).length).toBeLessThan(columns);
  });

  test('before anything is known', () => {
    expect(progressLine({ ...noProgress, state: 'describing', problem: null }, 80)).toBe('describing');
    expect(progressText({ ...noProgress, state: 'describing', problem: null })).toBe('describing');
  });

  test('in a log', () => {
    expect(progressText(running)).toBe('running, 42 %, 1 min 15 s left, 1,812.5/s, 2,103 settled, 3 rejected');
  });
});

test('a problem says since when, whether it is tried again, and what to do', () => {
  expect(problemText(problem)).toBe(
    'blocked: sink_full (disk) since 2026-05-01T10:00:00.000Z, not tried again until resume\n  next: Make room, then resume.',
  );
  expect(problemText({ ...problem, detail: null, retry_at: '2026-05-01T10:01:00.000Z' })).toContain(
    'blocked: sink_full since 2026-05-01T10:00:00.000Z, tried again at 2026-05-01T10:01:00.000Z',
  );
});

test('the block of status', () => {
  expect(progressBlock({ ...running, state: 'blocked', problem })).toBe(
    `  ████████░░░░░░░░░░░░ 42 %
  range    1 to 5000, cursor 2104
  rate     1,812.5 records/s (limit 2,000), 1 min 15 s left
  settled  written 2,090, duplicate 10, rejected 3, dead_lettered 3
  pulled   2,103, acked 2,000, skipped 0, 2.9 KiB
blocked: sink_full (disk) since 2026-05-01T10:00:00.000Z, not tried again until resume
  next: Make room, then resume.
rejects (2 of 3): 8 not_json; 9 not_json (/id)`,
  );
});

describe('the summary of a report', () => {
  test('of an execution', () => {
    expect(reportSummary(report({ counts: { ...running.counts, vanished: 2 } }))).toBe(
      `orders-replay: completed (end_of_range)
  from     stream ORDERS, subject families orders.>
  into     file, idempotency key stream_sequence
  range    1 to 5000, 5,000 messages, about 1.0 MiB stored
  cursor   5001
  settled  written 2,090, duplicate 10, rejected 3, dead_lettered 3
  pulled   2,103, acked 2,000, skipped 0, vanished 2, 2.9 KiB
  time     1 min 5 s, 77 records/s
warnings
  - the plan has no end
rejects (1 of 3): 8 not_json`,
    );
  });

  test('of a dry run holds no counts', () => {
    const text = reportSummary(report({ state: 'rehearsed', stop_reason: 'dry_run', rejects: [], warnings: [] }));
    expect(text.split('\n')).toEqual([
      'orders-replay: rehearsed (dry_run)',
      '  from   stream ORDERS, subject families orders.>',
      '  into   file, idempotency key stream_sequence',
      '  range  1 to 5000, 5,000 messages, about 1.0 MiB stored',
    ]);
  });

  test('says when duplicates are not safe and when nothing takes rejects', () => {
    const sink = { type: 'mysql', key: 'none', duplicates_safe: false, dead_letter: false };
    expect(reportSummary(report({ sink }))).toContain('mysql, idempotency key none, duplicates are NOT safe, no dead letters');
  });
});

test('a table is as wide as its cells', () => {
  expect(
    textTable(
      ['ID', 'STATE'],
      [
        ['replay:a', 'running'],
        ['b', '-'],
      ],
    ),
  ).toBe('ID        STATE\nreplay:a  running\nb         -');
});

test.each([
  [0, '0 B'],
  [1_023, '1023 B'],
  [1_024, '1.0 KiB'],
  [1_572_864, '1.5 MiB'],
  [2 ** 50, '1024.0 TiB'],
])('%i bytes', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

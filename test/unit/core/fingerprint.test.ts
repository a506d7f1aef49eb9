import { expect, test } from 'vitest';
import { fingerprintText } from '../../../core/fingerprint.ts';
import { parsePlan } from '../../../core/plan.ts';
import type { ReplayPlan } from '../../../core/plan.ts';
import type { ReplayTarget } from '../../../core/target.ts';

const parsed = parsePlan({
  replay: {
    stream: 'S',
    subject_filters: ['b', 'a'],
    durable_consumer: 'd',
    start_time: '2026-05-01T10:00:00Z',
    max_messages: 5,
  },
});
const plan: ReplayPlan = parsed.ok ? parsed.value : (undefined as never);
const target: ReplayTarget = {
  sink: { type: 'table', host: 'h', password: { env: 'REPLAY_SECRET_A' } },
  idempotency: { key: 'stream_sequence', field: null, key_conflicts: 'reject' },
  dead_letter: null,
};
const text = fingerprintText(plan, target);

test('is fixed: a change here makes every unfinished replay another one', () => {
  expect(text).toBe(
    '{"version":1,"stream":"S","subject_filters":["a","b"],"durable_consumer":"d","start_sequence":null,' +
      '"start_time":"2026-05-01T10:00:00.000000000Z","end_sequence":null,"end_time":null,' +
      '"sink":{"host":"h","password":{"env":"REPLAY_SECRET_A"},"type":"table"},"key":"stream_sequence","field":null}',
  );
});

test.each<[string, Partial<ReplayPlan>]>([
  ['order of the scope', { subject_filters: ['a', 'b'] }],
  ['spelling of a time', { start_time: '2026-05-01t12:00:00.000+02:00' }],
  ['max_messages', { max_messages: 6 }],
  ['batch_size', { batch_size: 7 }],
  ['batch_bytes', { batch_bytes: 70_000 }],
  ['rate', { rate_limit_per_second: 7 }],
  ['report', { report_file: 'x.md' }],
  ['dry run', { dry_run: false }],
  ['rejects', { max_rejects: 1 }],
  ['keep', { keep_consumer: true }],
])('the same replay: %s', (_name, change) => {
  expect(fingerprintText({ ...plan, ...change }, target)).toBe(text);
});

test('the same replay: order of the sink fields, dead letters added', () => {
  const sink = { password: { env: 'REPLAY_SECRET_A' }, host: 'h', type: 'table' };
  expect(fingerprintText(plan, { ...target, sink, dead_letter: { subject: 'dlq' } })).toBe(text);
});

test.each<[string, Partial<ReplayPlan>]>([
  ['stream', { stream: 'T' }],
  ['scope', { subject_filters: ['a'] }],
  ['durable', { durable_consumer: 'e' }],
  ['start', { start_time: '2026-05-01T10:00:00.000000001Z' }],
  ['kind of start', { start_time: null, start_sequence: 1 }],
  ['end', { end_sequence: 9 }],
  ['end time', { end_time: '2026-05-02T10:00:00Z' }],
])('another replay: %s', (_name, change) => {
  expect(fingerprintText({ ...plan, ...change }, target)).not.toBe(text);
});

test('another replay: destination, key, field', () => {
  const others: ReplayTarget[] = [
    { ...target, sink: { ...target.sink, host: 'i' } },
    { ...target, idempotency: { ...target.idempotency, key: 'message_id' } },
    { ...target, idempotency: { ...target.idempotency, field: '/id' } },
  ];
  for (const other of others) expect(fingerprintText(plan, other)).not.toBe(text);
});

import { describe, expect, test } from 'vitest';
import { approvalProblem, approvalText, type AwaitedApproval, type Preflight } from '../../../core/approval.ts';
import type { Description } from '../../../core/description.ts';

const awaited: AwaitedApproval = {
  fingerprint: '0123456789abcdef',
  expires_at: '2026-05-01T10:00:00.000Z',
  messages: 5,
  bytes: 100,
  exact: true,
  preflight: [],
};
const good = { by: 'ann', reason: 'INC-42', fingerprint: awaited.fingerprint };

describe('the input of an approval', () => {
  test('who, why and the fingerprint that was seen', () => expect(approvalProblem(good, awaited)).toBeNull());

  test.each([
    [undefined, ['by:', 'reason:', 'fingerprint: missing']],
    [null, ['by:', 'reason:', 'fingerprint: missing']],
    ['ann', ['by:', 'reason:', 'fingerprint: missing']],
    [{ ...good, by: ' ' }, ['by:']],
    [{ ...good, by: 'a'.repeat(201) }, ['by:']],
    [{ ...good, reason: 7 }, ['reason:']],
    [{ ...good, fingerprint: 'another' }, ['fingerprint: is not the one']],
  ])('%j is refused, all problems at once, with an example', (input, problems) => {
    const message = approvalProblem(input, awaited)!;
    for (const problem of problems) expect(message).toContain(problem);
    expect(message.split('\n')).toHaveLength(problems.length + 1);
    expect(message).toContain(`for example {"by":"ann","reason":"INC-42","fingerprint":"${awaited.fingerprint}"}`);
  });

  test('nothing awaits one', () => expect(approvalProblem(good, null)).toBe('this plan does not await an approval'));
});

describe('what is approved', () => {
  const description = {
    fingerprint: 'f',
    range: { incarnation: 'i', first: 1, last: 9, endTimeNanos: null, streamLast: 9 },
    target: { dead_letter: { subject: 'dlq' }, idempotency: { key: 'stream_sequence', field: null, key_conflicts: 'reject' } },
    count: { messages: 9, bytes: 90, exact: { messages: true, bytes: false }, gaps: 0 },
  } as unknown as Description;
  const ready: Preflight = { severity: 'info', message: 'The directory holds 10 records in 2 segments.' };
  const text = approvalText(description, [ready]);

  test('does not move by itself', () => {
    const fewer = { ...description, count: { ...description.count, messages: 8 } };
    expect(approvalText(fewer, [{ ...ready, message: 'The directory holds 12 records in 3 segments.' }])).toBe(text);
  });

  test.each<[string, Partial<Description>, readonly Preflight[]]>([
    ['plan or target', { fingerprint: 'g' }, [ready]],
    ['stream', { range: { ...description.range, incarnation: 'j' } }, [ready]],
    ['boundaries', { range: { ...description.range, last: 10 } }, [ready]],
    ['dead letters', { target: { ...description.target, dead_letter: null } }, [ready]],
    ['destination', {}, [{ severity: 'error', message: 'The data root of the worker is missing.' }]],
  ])('another %s is another', (_, change, preflight) =>
    expect(approvalText({ ...description, ...change }, preflight)).not.toBe(text),
  );
});

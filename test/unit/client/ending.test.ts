import { CancelledFailure, WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, RetryState, TerminatedFailure, TimeoutFailure, TimeoutType } from '@temporalio/common';
import { describe, expect, test } from 'vitest';
import { completed, endedOtherwise, withReport } from '../../../client/ending.ts';
import { exitStatuses } from '../../../client/exit.ts';
import { noCounts } from '../../../core/progress.ts';
import { refusedFailure } from '../../../workflows/messages.ts';
import { report } from './samples.ts';

const failed = (cause: Error): WorkflowFailedError =>
  new WorkflowFailedError('failed', cause, RetryState.NON_RETRYABLE_FAILURE);
const problems = [
  { path: 'replay.stream', message: 'no such stream' },
  { path: 'target', message: 'no such file' },
];

describe('exit statuses', () => {
  test('are those that scripts rely on', () => {
    expect(Object.values(exitStatuses).map(({ status }) => status)).toEqual([0, 1, 2, 3, 4, 5, 130, 143]);
  });

  test.each([
    ['done', report(), { state: 'completed', exit: 0 }],
    ['done with rejects', report({ counts: { ...noCounts, rejected: 1 } }), { state: 'completed', exit: 3 }],
    ['a dry run', report({ state: 'rehearsed' }), { state: 'rehearsed', exit: 0 }],
  ])('%s', (_, of, expected) => {
    expect(completed(of)).toMatchObject({ ...expected, report: of });
  });

  test.each([
    ['canceled', new CancelledFailure('Workflow canceled'), { state: 'canceled', exit: 4, message: null }],
    [
      'refused',
      ApplicationFailure.create({ message: 'a\nb', type: refusedFailure, details: [problems] }),
      { state: 'refused', exit: 2, message: 'a\nb', problems },
    ],
    [
      'another failure',
      ApplicationFailure.create({ message: 'a bug', type: 'TypeError' }),
      { state: 'failed', exit: 1, message: 'The replay failed: a bug' },
    ],
    ['terminated', new TerminatedFailure('by ann'), { state: 'failed', exit: 1 }],
    ['timed out', new TimeoutFailure('late', undefined, TimeoutType.START_TO_CLOSE), { state: 'failed', exit: 1 }],
  ])('%s', (_, cause, expected) => {
    expect(endedOtherwise(failed(cause))).toMatchObject({ report: null, ...expected });
  });

  test('what is not the end of a run is thrown on', () => {
    const outage = new Error('14 UNAVAILABLE');
    expect(() => endedOtherwise(outage)).toThrow(outage);
  });
});

test('the report of a run that was ended from outside says so', () => {
  const running = report({ state: 'running', stop_reason: null });
  const terminated = endedOtherwise(failed(new TerminatedFailure('by ann')));
  expect(withReport(terminated, running).report).toMatchObject({ state: 'failed', stop_reason: 'failed' });
  expect(withReport(terminated, null).report).toBeNull();
});

test('the report of a canceled run is its own', () => {
  const canceled = endedOtherwise(failed(new CancelledFailure('Workflow canceled')));
  const own = report({ state: 'canceled', stop_reason: 'canceled' });
  expect(withReport(canceled, own).report).toEqual(own);
});

test('a failure carries the named fault behind it', () => {
  const fault = ApplicationFailure.create({ message: 'no space', type: 'sink_full', details: ['disk'] });
  const activity = Object.assign(new Error('Activity task failed'), { cause: fault });
  expect(endedOtherwise(failed(activity)).fault).toMatchObject({ code: 'sink_full', detail: 'disk' });
  expect(endedOtherwise(failed(new Error('a bug'))).fault).toBeNull();
});

import { expect, test } from 'vitest';
import { CommandFailure, failureExit, failureText } from '../../../client/failure.ts';
import { ReplayFault } from '../../../core/errors.ts';

test('a failure shows its message, and where it came from only with debug', () => {
  const error = new Error('what, where, what next', { cause: new Error('the cause') });
  expect(failureText(error, undefined)).toBe('what, where, what next');
  expect(failureText(error, 'info')).not.toContain('    at ');
  expect(failureText(error, 'debug')).toContain('    at ');
  expect(failureText(error, 'debug')).toContain('caused by: Error: the cause');
});

test('a named fault says what to do', () => {
  expect(failureText(new ReplayFault('nats_unreachable'), undefined)).toBe(
    'The NATS server does not answer, or the connection broke. Check that the NATS server is up and that NATS_URL reaches it; the plan goes on by itself.',
  );
});

test('something thrown without words is still a sentence', () => {
  expect(failureText(new TypeError(''), undefined)).toContain('TypeError');
  expect(failureText('text', undefined)).toContain('REPLAY_LOG_LEVEL=debug');
});

test('the exit status is that of the failure, else 1', () => {
  expect(failureExit(new CommandFailure('x', 'refused'))).toBe(2);
  expect(failureExit(new CommandFailure('x'))).toBe(1);
  expect(failureExit(new Error('x'))).toBe(1);
});

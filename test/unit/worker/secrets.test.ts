import { expect, test } from 'vitest';
import { createSecrets } from '../../../worker/secrets.ts';

test('only variables of the prefix are resolved, and no message holds a value', () => {
  const secret = createSecrets({ REPLAY_SECRET_DB: 'hidden', AWS_SECRET_ACCESS_KEY: 'hidden', REPLAY_SECRET_EMPTY: '' });
  expect(secret('REPLAY_SECRET_DB')).toBe('hidden');
  for (const name of [
    'AWS_SECRET_ACCESS_KEY',
    'REPLAY_SECRET_',
    'REPLAY_SECRET_EMPTY',
    'REPLAY_SECRET_NONE',
    '__proto__',
    'PATH',
  ]) {
    expect(() => secret(name)).toThrow(expect.objectContaining({ code: 'secret_missing' }));
    expect(() => secret(name)).not.toThrow(/hidden/);
  }
});

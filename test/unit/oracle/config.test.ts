import { describe, expect, test } from 'vitest';
import { parseTarget } from '../../../core/target.ts';
import { defaultIdempotency } from '../../../sinks/sql/columns.ts';
import { oracleConfigSchema, oracleSpec } from '../../../sinks/oracle/config.ts';

const target = {
  type: 'oracle',
  connect_string: 'db.example.com:1521/orders',
  user: 'replay',
  password: { env: 'REPLAY_SECRET_ORACLE' },
  table: 'orders',
};

const problems = (fields: object, idempotency = defaultIdempotency): string[] => {
  const parsed = oracleConfigSchema.safeParse({ ...target, ...fields });
  if (!parsed.success) return parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return oracleSpec.problems!(parsed.data, idempotency).map(({ path, message }) => `${path}: ${message}`);
};

test('the example is right, and defaults are filled in', () => {
  expect(problems(oracleSpec.example)).toEqual([]);
  expect(oracleConfigSchema.parse(target)).toMatchObject({
    mode: 'insert',
    create_table: false,
    empty_string: 'reject',
    pool_size: 2,
  });
});

describe('refused', () => {
  test.each([
    ['an alias', { connect_string: 'ORDERS_DB' }, /^connect_string: /],
    ['a password in the connect string', { connect_string: 'scott/tiger@db/orders' }, /^connect_string: /],
    ['a user with a password', { user: 'scott/tiger' }, /^user: has a slash/],
    ['a literal password', { password: 'tiger' }, /^password: /],
    ['a table with two dots', { table: 'a.b.c' }, /^table: .*more than one dot/],
    ['an injected table', { table: 'orders; drop table x' }, /^table: /],
    ['a column that needs quotes', { columns: { 'a b': { field: 'stream' } } }, /^columns.a b: /],
    ['a wallet of nothing', { connect_string: 'tcps://db/orders', wallet: {} }, /^sink.wallet: expected one of/],
    [
      'a wallet of both',
      { connect_string: 'tcps://db/orders', wallet: { folder: 'w', content: { env: 'REPLAY_SECRET_W' } } },
      /^sink.wallet: expected one of/,
    ],
    ['a wallet without TLS', { wallet: { folder: 'wallets' } }, /^sink.wallet: does nothing without TLS/],
    ['an absolute folder', { connect_string: 'tcps://db/orders', wallet: { folder: '/etc' } }, /^wallet.folder: .*absolute/],
    ['a folder outside', { connect_string: 'tcps://db/orders', wallet: { folder: 'a/../../b' } }, /^wallet.folder: /],
    ['no key column', { columns: { a: { field: 'subject' } } }, /^sink.columns: has no column for the idempotency key/],
    ['create with columns', { create_table: true, columns: { a: { field: 'subject' } } }, /^sink.create_table: /],
    ['an unknown field', { database: 'x' }, /unrecognized/i],
  ])('%s', (_, fields, expected) => {
    expect(problems(fields).join('\n')).toMatch(expected);
  });

  test('two names for one column', () => {
    const columns = { ID: { payload: '/id' }, id: { payload: '/x' }, '"id"': { payload: '/y' } };
    const found = problems({ columns }, { key: 'payload_field', field: '/id', key_conflicts: 'reject' });
    expect(found).toEqual([expect.stringMatching(/^sink\.columns\.id: is the same column as "ID"/)]);
  });

  test('no message repeats what may be a secret', () => {
    for (const fields of [{ connect_string: 'scott/tiger@db/orders' }, { user: 'scott/tiger' }, { password: 'tiger' }]) {
      const parsed = parseTarget({ sink: { ...target, ...fields } }, [oracleSpec]);
      const shown = JSON.stringify(parsed);
      expect(parsed.ok).toBe(false);
      expect(shown).toContain('expected');
      expect(shown).not.toContain('tiger');
    }
  });
});

test('the hosts that a worker may be limited to', () => {
  const hosts = (connectString: string) => oracleSpec.hosts!({ connect_string: connectString });
  expect(hosts('tcps://a.example.com,b.example.com:1522/orders')).toEqual(['a.example.com', 'b.example.com']);
  // Never an empty list, which would be allowed everywhere.
  expect(hosts('not understood')).toEqual(['']);
});

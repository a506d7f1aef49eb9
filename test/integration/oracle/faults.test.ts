import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeBatch } from '../../contract/records.ts';
import type { Fault } from '../../support/oracle-wire/database.ts';
import type { FaultPlace, Listener } from '../../support/oracle-wire/listener.ts';
import { testOracle, withoutWire, type TestOracle, type TestUser } from '../../support/oracle.ts';
import { makeOracleSink, writeOnce } from '../../support/oracle-sink.ts';
import { faultCode, inWords } from '../../support/outcomes.ts';

const fields = { create_table: true };
const signal = new AbortController().signal;
const insert = { only: /^INSERT/ };

let oracle: TestOracle;
let listener: Listener;
let user: TestUser;

/** What the listener of the wire ladder does at a moment of our choice; a real database cannot be asked to. */
describe.skipIf(withoutWire)('faults of the server', () => {
  beforeAll(async () => {
    oracle = await testOracle();
    listener = oracle.listener!;
  }, 180_000);
  beforeEach(async () => {
    user = await oracle.addUser();
  });
  afterEach(async () => {
    for (const place of ['statement', 'commit', 'rollback', 'connect'] as const) listener.inject(place, null);
    await user.drop();
  });

  const count = async () => Number((await user.query('SELECT COUNT(*) N FROM ORDERS'))[0]!['N']);
  const opened = async (options = { fields: {} }) => {
    const sink = makeOracleSink(user, { fields: { ...fields, ...options.fields } });
    await sink.open(signal);
    return sink;
  };

  test.each<[string, FaultPlace, Fault, number]>([
    ['before the commit', 'commit', 'drop', 0],
    ['with the answer to the commit', 'commit', 'drop after', 300],
    ['in a statement', 'statement', 'drop', 0],
    ['after a statement', 'statement', 'drop after', 0],
  ])('a line that breaks %s: the key settles what is in', async (_, place, fault, stored) => {
    const sink = await opened();
    const batch = makeBatch(1, 300);
    listener.inject(place, fault, place === 'statement' ? insert : undefined);
    expect(await faultCode(sink.write(batch, signal))).toBe('sink_unreachable');
    listener.inject(place, null);
    await sink.close();
    expect(await count()).toBe(stored);
    const words = inWords(await writeOnce(user, batch, { fields }));
    expect(words.filter((word) => word === 'duplicate')).toHaveLength(stored);
    expect(await count()).toBe(300);
  });

  test.each<[string, number, string]>([
    ['the table is dropped', 942, 'sink_missing'],
    ['a column is dropped', 904, 'sink_missing'],
    ['a grant is taken away', 1031, 'sink_denied'],
    ['a read-only database', 16000, 'sink_denied'],
    ['a full tablespace', 1653, 'sink_full'],
    ['a full LOB segment', 1691, 'sink_full'],
    ['the quota', 1536, 'sink_full'],
    ['an index that cannot be used', 1502, 'sink_unfit'],
    ['a lock', 54, 'sink_busy'],
    ['a session that is killed', 28, 'sink_unreachable'],
    ['an internal error', 600, 'sink_unreachable'],
    ['the end of the channel', 3113, 'sink_unreachable'],
    ['a number that nobody knows', 9999, 'unexpected'],
  ])('%s: nothing is refused, nothing is half in', async (_, number, code) => {
    const sink = await opened();
    listener.inject('statement', { number, message: 'value SECRET of column' }, insert);
    const told = await sink.write(makeBatch(1, 20), signal).catch((error: unknown) => error);
    expect(told).toMatchObject({ code });
    expect(String(told)).not.toContain('SECRET');
    listener.inject('statement', null);
    await sink.close();
    expect(await count()).toBe(0);
  });

  /** Holds the rows of a batch, uncommitted, until it is aborted. */
  async function holdRows(first: number, rows: number): Promise<() => Promise<void>> {
    const sink = await opened();
    listener.inject('commit', 'hang');
    const controller = new AbortController();
    const before = listener.calls.commit;
    const writing = sink.write(makeBatch(first, rows), controller.signal).catch(() => 'aborted');
    while (listener.calls.commit === before) await new Promise((resolve) => setTimeout(resolve, 5));
    listener.inject('commit', null);
    return async () => {
      controller.abort();
      await writing;
    };
  }

  test('an error of the environment that is told by row takes back the batch', async () => {
    const sink = await opened();
    const release = await holdRows(1, 5);
    expect(await faultCode(sink.write(makeBatch(5, 5), signal))).toBe('sink_busy');
    await release();
    await sink.close();
    expect(await count()).toBe(0);
  });

  test('a deadlock in mid-batch takes back what is in, and begins the transaction again', async () => {
    const sink = await opened();
    listener.inject('statement', { number: 60, message: 'deadlock detected' }, { ...insert, at: 2 });
    const before = listener.calls.rollback;
    const words = inWords(await sink.write(makeBatch(1, 1_500), signal));
    expect(new Set(words)).toEqual(new Set(['written']));
    expect(listener.calls.rollback - before).toBe(1);
    expect(await count()).toBe(1_500);
  });

  test('a deadlock that comes again and again is given back to the step', async () => {
    const sink = await opened();
    listener.inject('statement', { number: 60, message: 'deadlock detected' }, insert);
    const before = listener.calls.statement;
    expect(await faultCode(sink.write(makeBatch(1, 5), signal))).toBe('sink_busy');
    expect(listener.calls.statement - before).toBe(3);
  });

  test('another writer that is quicker with a key: it is looked up, and nothing is written twice', async () => {
    await opened();
    await writeOnce(user, makeBatch(1, 5), { fields });
    const sink = await opened();
    expect(inWords(await sink.write(makeBatch(4, 4), signal))).toEqual(['duplicate', 'duplicate', 'written', 'written']);
  });

  test.each<[string, number, string]>([
    ['wrong password', 1017, 'sink_login'],
    ['locked', 28000, 'sink_login'],
    ['expired', 28001, 'sink_login'],
    ['too many sessions', 18, 'sink_unreachable'],
    ['starting', 1033, 'sink_unreachable'],
  ])('login: %s', async (_, number, code) => {
    listener.accounts.get(user.service)!.refuse = { number, message: 'x' };
    expect(await faultCode(makeOracleSink(user, { fields }).open(signal))).toBe(code);
  });

  test.each<[string, object, string]>([
    ['a password that is really wrong', { password: 'wrong' }, 'sink_login'],
    ['no such service', { fields: { ...fields, connect_string: 'HOST:PORT/nowhere' } }, 'sink_missing'],
    ['nobody at the port', { fields: { ...fields, connect_string: '127.0.0.1:1/nowhere' } }, 'sink_unreachable'],
    ['no such host', { fields: { ...fields, connect_string: 'nowhere.invalid/nowhere' } }, 'sink_unreachable'],
    ['no table', {}, 'sink_missing'],
    ['a table that is gone since', { fields, begun: true }, 'sink_missing'],
  ])('%s: %s', async (_, options, code) => {
    const text = JSON.stringify(options).replace('HOST:PORT', `127.0.0.1:${user.port}`).replace('SERVICE', user.service);
    const told: unknown[] = [];
    const sink = makeOracleSink(user, { ...(JSON.parse(text) as object), told });
    const error = await sink.open(signal).then(
      () => 'opened',
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code });
    const said = [error instanceof Error ? `${error.message} ${String(error.cause)}` : '', JSON.stringify(told)].join(' ');
    for (const secret of [user.password, user.user, '127.0.0.1', 'wrong']) expect(said).not.toContain(secret);
  });

  test.each([12516, 12519, 12520, 12528])('a listener that refuses (ORA-%i) is tried again', async (number) => {
    listener.inject('connect', { number, message: '' });
    expect(await faultCode(makeOracleSink(user, { fields }).open(signal))).toBe('sink_unreachable');
  });

  test('an aborted write leaves no lock behind, even when the server hangs at first', async () => {
    const sink = await opened();
    listener.inject('statement', 'hang', insert);
    const controller = new AbortController();
    const writing = sink.write(makeBatch(1, 100), controller.signal).catch((error: unknown) => error);
    const before = listener.calls.statement;
    while (listener.calls.statement === before) await new Promise((resolve) => setTimeout(resolve, 5));
    controller.abort(new Error('cancelled'));
    expect(await writing).toBe(controller.signal.reason);
    listener.inject('statement', null);
    expect(new Set(inWords(await writeOnce(user, makeBatch(1, 100), { fields })))).toEqual(new Set(['written']));
  });

  const slow = [
    ['hang', 'sink_busy'],
    ['dead', 'sink_unreachable'],
  ] as const;
  // The limit of a call is half a minute.
  for (const [fault, code] of process.env['REPLAY_TEST_LONG'] === '1' ? slow : []) {
    test(`a call without an answer ends by itself: ${fault}`, { timeout: 180_000 }, async () => {
      const sink = await opened();
      listener.inject('statement', fault, insert);
      expect(await faultCode(sink.write(makeBatch(1, 5), signal))).toBe(code);
      listener.inject('statement', null);
      await sink.close();
      expect(inWords(await writeOnce(user, makeBatch(1, 1), { fields }))).toEqual(['written']);
    });
  }

  test('a server that does not even answer an interrupt does not hold up a cancel', async () => {
    const sink = await opened();
    listener.inject('statement', 'dead', insert);
    const controller = new AbortController();
    const before = listener.calls.statement;
    const writing = sink.write(makeBatch(1, 5), controller.signal).catch((error: unknown) => error);
    while (listener.calls.statement === before) await new Promise((resolve) => setTimeout(resolve, 5));
    controller.abort(new Error('cancelled'));
    expect(await writing).toBe(controller.signal.reason);
  });

  test('a key that another session holds is waited for, and settled when that is taken back', async () => {
    const sink = await opened();
    const release = await holdRows(1, 5);
    const writing = sink.write(makeBatch(3, 5), signal);
    await release();
    // Where releasing took longer than the database lets wait, the step would try again.
    const words = await writing.then(inWords, () => writeOnce(user, makeBatch(3, 5), { fields }).then(inWords));
    expect(words).toEqual(['written', 'written', 'written', 'written', 'written']);
  });
});

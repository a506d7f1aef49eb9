import { describe, expect, test } from 'vitest';
import { columnHint, constraintOf, labelOf, meaningOf } from '../../../sinks/oracle/errors.ts';

const ora = (number: number): string => `ORA-${String(number).padStart(5, '0')}`;
const said = (error: object): string => {
  const meaning = meaningOf(error);
  return meaning.kind === 'duplicate' ? 'duplicate' : `${meaning.kind} ${meaning.code}`;
};

/** Number, what it is, what it means here. Written out, so that a slip in the table of the code shows. */
const codes: readonly (readonly [number, string, string])[] = [
  [1, 'unique constraint violated', 'duplicate'],
  [12899, 'value too large for column', 'reject value_too_long'],
  [1401, 'inserted value too large', 'reject value_too_long'],
  [1489, 'result of string concatenation is too long', 'reject value_too_long'],
  [1400, 'cannot insert NULL', 'reject value_missing'],
  [1407, 'cannot update to NULL', 'reject value_missing'],
  [1438, 'value larger than specified precision', 'reject value_invalid'],
  [1426, 'numeric overflow', 'reject value_invalid'],
  [1722, 'invalid number', 'reject value_invalid'],
  [1830, 'date format picture ends', 'reject value_invalid'],
  [1839, 'date not valid for month', 'reject value_invalid'],
  [1840, 'input value not long enough', 'reject value_invalid'],
  [1841, 'year must be between', 'reject value_invalid'],
  [1843, 'not a valid month', 'reject value_invalid'],
  [1847, 'day of month', 'reject value_invalid'],
  [1858, 'a non-numeric character', 'reject value_invalid'],
  [1861, 'literal does not match format string', 'reject value_invalid'],
  [1465, 'invalid hex number', 'reject value_invalid'],
  [12704, 'character set mismatch', 'reject value_invalid'],
  [22835, 'buffer too small for CLOB to CHAR', 'reject value_invalid'],
  [29275, 'partial multibyte character', 'reject value_invalid'],
  [40441, 'JSON syntax error', 'reject value_invalid'],
  [40443, 'unable to read JSON', 'reject value_invalid'],
  [40478, 'output value too large', 'reject value_invalid'],
  [40587, 'invalid JSON type', 'reject value_invalid'],
  [6502, 'PL/SQL: numeric or value error', 'reject value_invalid'],
  [2290, 'check constraint violated', 'reject constraint_failed'],
  [2291, 'parent key not found', 'reject constraint_failed'],
  [2292, 'child record found', 'reject constraint_failed'],
  [20000, 'raised by a trigger', 'reject constraint_failed'],
  [20999, 'raised by a trigger', 'reject constraint_failed'],
  [1017, 'invalid username/password', 'fault sink_login'],
  [28000, 'account is locked', 'fault sink_login'],
  [28001, 'password has expired', 'fault sink_login'],
  [1045, 'lacks CREATE SESSION', 'fault sink_login'],
  [1005, 'null password given', 'fault sink_login'],
  [28759, 'failure to open file (wallet)', 'fault sink_tls'],
  [29024, 'certificate validation failure', 'fault sink_tls'],
  [942, 'table or view does not exist', 'fault sink_missing'],
  [904, 'invalid identifier', 'fault sink_missing'],
  [12514, 'listener does not know of service', 'fault sink_missing'],
  [12505, 'listener does not know of SID', 'fault sink_missing'],
  [1031, 'insufficient privileges', 'fault sink_denied'],
  [1950, 'no privileges on tablespace', 'fault sink_denied'],
  [16000, 'database open for read-only access', 'fault sink_denied'],
  [1647, 'tablespace is read-only', 'fault sink_denied'],
  [12081, 'update operation not allowed on table', 'fault sink_denied'],
  [1536, 'space quota exceeded', 'fault sink_full'],
  [1652, 'unable to extend temp segment', 'fault sink_full'],
  [1653, 'unable to extend table', 'fault sink_full'],
  [1654, 'unable to extend index', 'fault sink_full'],
  [1691, 'unable to extend lob segment', 'fault sink_full'],
  [30036, 'unable to extend undo segment', 'fault sink_full'],
  [257, 'archiver error', 'fault sink_full'],
  [19809, 'limit exceeded for recovery files', 'fault sink_full'],
  [900, 'invalid SQL statement', 'fault sink_unfit'],
  [913, 'too many values', 'fault sink_unfit'],
  [932, 'inconsistent datatypes', 'fault sink_unfit'],
  [947, 'not enough values', 'fault sink_unfit'],
  [1461, 'LONG value only for a LONG column', 'fault sink_unfit'],
  [14400, 'no partition for the key', 'fault sink_unfit'],
  [24816, 'expanded non LONG bind data after LONG', 'fault sink_unfit'],
  [38104, 'columns of the ON clause cannot be updated', 'fault sink_unfit'],
  [4063, 'view has errors', 'fault sink_unfit'],
  [1502, 'index is in unusable state', 'fault sink_unfit'],
  [60, 'deadlock detected', 'fault sink_busy'],
  [8177, 'cannot serialize access', 'fault sink_busy'],
  [54, 'resource busy', 'fault sink_busy'],
  [30006, 'resource busy; WAIT timeout', 'fault sink_busy'],
  [4021, 'timeout waiting to lock object', 'fault sink_busy'],
  [2049, 'distributed lock timeout', 'fault sink_busy'],
  [1555, 'snapshot too old', 'fault sink_busy'],
  [4068, 'state of packages discarded', 'fault sink_busy'],
  [4031, 'unable to allocate shared memory', 'fault sink_busy'],
  [1013, 'user requested cancel', 'fault sink_busy'],
  [1033, 'initialization or shutdown in progress', 'fault sink_unreachable'],
  [1034, 'not available', 'fault sink_unreachable'],
  [1089, 'immediate shutdown in progress', 'fault sink_unreachable'],
  [18, 'maximum number of sessions', 'fault sink_unreachable'],
  [20, 'maximum number of processes', 'fault sink_unreachable'],
  [2391, 'SESSIONS_PER_USER limit', 'fault sink_unreachable'],
  [28, 'your session has been killed', 'fault sink_unreachable'],
  [600, 'internal error', 'fault sink_unreachable'],
  [1012, 'not logged on', 'fault sink_unreachable'],
  [2396, 'exceeded maximum idle time', 'fault sink_unreachable'],
  [3113, 'end-of-file on communication channel', 'fault sink_unreachable'],
  [3114, 'not connected', 'fault sink_unreachable'],
  [3135, 'connection lost contact', 'fault sink_unreachable'],
  [12170, 'connect timeout', 'fault sink_unreachable'],
  [12516, 'no available handler', 'fault sink_unreachable'],
  [12528, 'all instances are blocking new connections', 'fault sink_unreachable'],
  [12541, 'no listener', 'fault sink_unreachable'],
];

test.each(codes)('ORA-%i %s: %s', (number, text, meaning) => {
  const message = `${ora(number)}: ${text}`;
  expect(said({ code: ora(number), errorNum: number, message })).toBe(meaning);
  // An entry of batchErrors has neither number nor code.
  expect(said({ message: `${message}\nHelp: https://docs.oracle.com/error-help/db/ora-00001/` })).toBe(meaning);
});

test('an unknown number is tried again, and never refuses a record', () => {
  for (const number of [9_999, 19_999, 21_000]) expect(said({ message: `${ora(number)}: x` })).toBe('fault unexpected');
  expect(said({})).toBe('fault unexpected');
  expect(said(new Error('a fault of ours'))).toBe('fault unexpected');
});

test.each([
  [{ code: 'NJS-500', errorNum: 600, message: 'NJS-500: closed or broken' }, 'fault sink_unreachable'],
  [{ code: 'NJS-500', message: 'NJS-500: closed or broken\nNJS-521: ... end-of-file' }, 'fault sink_unreachable'],
  [{ code: 'NJS-503', message: 'NJS-503: connection to host db port 1521 could not be established' }, 'fault sink_unreachable'],
  [{ code: 'NJS-510', message: 'NJS-510: timed out' }, 'fault sink_unreachable'],
  [{ code: 'NJS-511', message: 'NJS-511: refused\nCause: ORA-12516' }, 'fault sink_unreachable'],
  [{ code: 'NJS-511', message: 'NJS-511: refused\nCause: ORA-12999' }, 'fault sink_unreachable'],
  [{ code: 'NJS-530', message: 'NJS-530: unresolvable' }, 'fault sink_unreachable'],
  [{ code: 'NJS-518', message: 'NJS-518: Service "x" is not registered' }, 'fault sink_missing'],
  [{ code: 'NJS-519', message: 'NJS-519: SID "x" is not registered' }, 'fault sink_missing'],
  [{ code: 'NJS-505', message: 'NJS-505: unable to initiate TLS' }, 'fault sink_tls'],
  [{ code: 'NJS-506', message: 'NJS-506: handshake' }, 'fault sink_tls'],
  [{ code: 'NJS-508', message: 'NJS-508: not present in certificate' }, 'fault sink_tls'],
  [{ code: 'NJS-123', message: 'NJS-123: call timeout of 30000 ms exceeded' }, 'fault sink_busy'],
  [{ code: 'NJS-138', message: 'NJS-138: version' }, 'fault sink_unfit'],
  [{ code: 'NJS-058', message: 'NJS-058: maxSize' }, 'fault unexpected'],
  [{ code: 'ECONNRESET', message: 'read ECONNRESET' }, 'fault unexpected'],
])('%j: %s', (error, meaning) => {
  expect(said(error)).toBe(meaning);
});

test('a recursive error is what is below it', () => {
  const message = 'ORA-00604: error occurred at recursive SQL level 1\nORA-01653: unable to extend table';
  expect(said({ code: 'ORA-00604', errorNum: 604, message })).toBe('fault sink_full');
  expect(said({ message: 'ORA-00604: error occurred at recursive SQL level 1' })).toBe('fault unexpected');
});

test('only what may succeed at once begins the transaction again', () => {
  for (const number of [60, 8177]) expect(meaningOf({ message: ora(number) })).toMatchObject({ restart: true });
  for (const number of [54, 1013, 3113]) expect(meaningOf({ message: ora(number) })).not.toHaveProperty('restart');
});

describe('what may be said of an error', () => {
  test('its number, never its text', () => {
    expect(labelOf({ code: 'ORA-00942', errorNum: 942, message: 'secret' })).toBe('ORA-00942');
    expect(labelOf({ message: 'ORA-01400: cannot insert NULL into ("APP"."T"."C")' })).toBe('ORA-01400');
    expect(labelOf({ code: 'NJS-503', message: 'NJS-503: host 10.0.0.1' })).toBe('NJS-503');
    expect(labelOf({ code: 'my secret', message: 'x' })).toBe('an error without a number');
  });

  test.each([
    ['ORA-00001: unique constraint (APP.PK_ORDERS) violated', { owner: 'APP', name: 'PK_ORDERS' }],
    [
      'ORA-00001: unique constraint (APP.PK_ORDERS) violated on table APP.ORDERS columns (STREAM_NAME, ID)\nORA-03301: (ORA-00001 details) row with ...',
      { owner: 'APP', name: 'PK_ORDERS' },
    ],
    ['ORA-00001: unique constraint (Shop.Order key) violated', { owner: 'Shop', name: 'Order key' }],
    ['ORA-00001: unique constraint violated', undefined],
    ['ORA-00001: Unique Constraint (PK_ORDERS) verletzt', undefined],
  ])('the constraint of %s', (message, expected) => {
    expect(constraintOf({ message })).toEqual(expected);
  });

  test('the column only if it is one of ours', () => {
    const message = 'ORA-12899: value too large for column "APP"."ORDERS"."SUBJECT" (actual: 11, maximum: 10)';
    expect(columnHint({ message }, ['ID', 'SUBJECT'])).toBe('SUBJECT');
    expect(columnHint({ message }, ['ID'])).toBeUndefined();
    expect(columnHint({ message: 'ORA-01400: cannot insert NULL into ("APP"."ORDERS"."ID")' }, ['ID'])).toBe('ID');
    expect(columnHint({ message: 'ORA-01722: invalid number' }, ['ID'])).toBeUndefined();
  });
});

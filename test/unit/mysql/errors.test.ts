import { describe, expect, test } from 'vitest';
import { columnHint, labelOf, meaningOf, rowHint, type Flavour } from '../../../sinks/mysql/errors.ts';

const said = (errno: number, flavour: Flavour = 'mysql'): string => {
  const meaning = meaningOf({ errno }, flavour);
  return meaning.kind === 'duplicate' ? 'duplicate' : `${meaning.kind} ${meaning.code}`;
};

/** Number, its name in the manual, what it means here. Written out, so that a slip in the table of the code shows. */
const codes: readonly (readonly [number, string, string])[] = [
  [1022, 'ER_DUP_KEY', 'duplicate'],
  [1062, 'ER_DUP_ENTRY', 'duplicate'],
  [1169, 'ER_DUP_UNIQUE', 'duplicate'],
  [1586, 'ER_DUP_ENTRY_WITH_KEY_NAME', 'duplicate'],
  [1406, 'ER_DATA_TOO_LONG', 'reject value_too_long'],
  [1162, 'ER_TOO_LONG_STRING', 'reject value_too_long'],
  [1048, 'ER_BAD_NULL_ERROR', 'reject value_missing'],
  [1263, 'ER_WARN_NULL_TO_NOTNULL', 'reject value_missing'],
  [1264, 'ER_WARN_DATA_OUT_OF_RANGE', 'reject value_invalid'],
  [1265, 'WARN_DATA_TRUNCATED', 'reject value_invalid'],
  [1292, 'ER_TRUNCATED_WRONG_VALUE', 'reject value_invalid'],
  [1300, 'ER_INVALID_CHARACTER_STRING', 'reject value_invalid'],
  [1365, 'ER_DIVISION_BY_ZERO', 'reject value_invalid'],
  [1366, 'ER_TRUNCATED_WRONG_VALUE_FOR_FIELD', 'reject value_invalid'],
  [1367, 'ER_ILLEGAL_VALUE_FOR_TYPE', 'reject value_invalid'],
  [1411, 'ER_WRONG_VALUE_FOR_TYPE', 'reject value_invalid'],
  [1416, 'ER_CANT_CREATE_GEOMETRY_OBJECT', 'reject value_invalid'],
  [1690, 'ER_DATA_OUT_OF_RANGE', 'reject value_invalid'],
  [3140, 'ER_INVALID_JSON_TEXT', 'reject value_invalid'],
  [3144, 'ER_INVALID_JSON_CHARSET', 'reject value_invalid'],
  [3150, 'ER_JSON_VALUE_TOO_BIG', 'reject value_invalid'],
  [3151, 'ER_JSON_KEY_TOO_BIG', 'reject value_invalid'],
  [3156, 'ER_INVALID_JSON_VALUE_FOR_CAST', 'reject value_invalid'],
  [3157, 'ER_JSON_DOCUMENT_TOO_DEEP', 'reject value_invalid'],
  [1153, 'ER_NET_PACKET_TOO_LARGE', 'reject too_large'],
  [1301, 'ER_WARN_ALLOWED_PACKET_OVERFLOWED', 'reject too_large'],
  [1713, 'ER_UNDO_RECORD_TOO_BIG', 'reject too_large'],
  [1216, 'ER_NO_REFERENCED_ROW', 'reject constraint_failed'],
  [1452, 'ER_NO_REFERENCED_ROW_2', 'reject constraint_failed'],
  [1644, 'ER_SIGNAL_EXCEPTION', 'reject constraint_failed'],
  [3819, 'ER_CHECK_CONSTRAINT_VIOLATED', 'reject constraint_failed'],
  [1045, 'ER_ACCESS_DENIED_ERROR', 'fault sink_login'],
  [1129, 'ER_HOST_IS_BLOCKED', 'fault sink_login'],
  [1130, 'ER_HOST_NOT_PRIVILEGED', 'fault sink_login'],
  [1251, 'ER_NOT_SUPPORTED_AUTH_MODE', 'fault sink_login'],
  [1698, 'ER_ACCESS_DENIED_NO_PASSWORD_ERROR', 'fault sink_login'],
  [1820, 'ER_MUST_CHANGE_PASSWORD', 'fault sink_login'],
  [1862, 'ER_MUST_CHANGE_PASSWORD_LOGIN', 'fault sink_login'],
  [3118, 'ER_ACCOUNT_HAS_BEEN_LOCKED', 'fault sink_login'],
  [3955, 'ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK', 'fault sink_login'],
  [1049, 'ER_BAD_DB_ERROR', 'fault sink_missing'],
  [1054, 'ER_BAD_FIELD_ERROR', 'fault sink_missing'],
  [1146, 'ER_NO_SUCH_TABLE', 'fault sink_missing'],
  [1044, 'ER_DBACCESS_DENIED_ERROR', 'fault sink_denied'],
  [1142, 'ER_TABLEACCESS_DENIED_ERROR', 'fault sink_denied'],
  [1143, 'ER_COLUMNACCESS_DENIED_ERROR', 'fault sink_denied'],
  [1223, 'ER_CANT_UPDATE_WITH_READLOCK', 'fault sink_denied'],
  [1227, 'ER_SPECIFIC_ACCESS_DENIED_ERROR', 'fault sink_denied'],
  [1290, 'ER_OPTION_PREVENTS_STATEMENT', 'fault sink_denied'],
  [1792, 'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION', 'fault sink_denied'],
  [1836, 'ER_READ_ONLY_MODE', 'fault sink_denied'],
  [1874, 'ER_INNODB_READ_ONLY', 'fault sink_denied'],
  [1021, 'ER_DISK_FULL', 'fault sink_full'],
  [1114, 'ER_RECORD_FILE_FULL', 'fault sink_full'],
  [1064, 'ER_PARSE_ERROR', 'fault sink_unfit'],
  [1118, 'ER_TOO_BIG_ROWSIZE', 'fault sink_unfit'],
  [1136, 'ER_WRONG_VALUE_COUNT_ON_ROW', 'fault sink_unfit'],
  [1364, 'ER_NO_DEFAULT_FOR_FIELD', 'fault sink_unfit'],
  [1526, 'ER_NO_PARTITION_FOR_GIVEN_VALUE', 'fault sink_unfit'],
  [1665, 'ER_BINLOG_STMT_MODE_AND_ROW_ENGINE', 'fault sink_unfit'],
  [1205, 'ER_LOCK_WAIT_TIMEOUT', 'fault sink_busy'],
  [1206, 'ER_LOCK_TABLE_FULL', 'fault sink_busy'],
  [1213, 'ER_LOCK_DEADLOCK', 'fault sink_busy'],
  [1317, 'ER_QUERY_INTERRUPTED', 'fault sink_busy'],
  [1614, 'ER_XA_RBDEADLOCK', 'fault sink_busy'],
  [1969, 'ER_STATEMENT_TIMEOUT of MariaDB', 'fault sink_busy'],
  [3024, 'ER_QUERY_TIMEOUT', 'fault sink_busy'],
  [3572, 'ER_LOCK_NOWAIT', 'fault sink_busy'],
  [1040, 'ER_CON_COUNT_ERROR', 'fault sink_unreachable'],
  [1053, 'ER_SERVER_SHUTDOWN', 'fault sink_unreachable'],
  [1152, 'ER_ABORTING_CONNECTION', 'fault sink_unreachable'],
  [1158, 'ER_NET_READ_ERROR', 'fault sink_unreachable'],
  [1159, 'ER_NET_READ_INTERRUPTED', 'fault sink_unreachable'],
  [1160, 'ER_NET_ERROR_ON_WRITE', 'fault sink_unreachable'],
  [1161, 'ER_NET_WRITE_INTERRUPTED', 'fault sink_unreachable'],
  [1184, 'ER_NEW_ABORTING_CONNECTION', 'fault sink_unreachable'],
  [1203, 'ER_TOO_MANY_USER_CONNECTIONS', 'fault sink_unreachable'],
  [1226, 'ER_USER_LIMIT_REACHED', 'fault sink_unreachable'],
  [1927, 'ER_CONNECTION_KILLED of MariaDB', 'fault sink_unreachable'],
  [2006, 'CR_SERVER_GONE_ERROR', 'fault sink_unreachable'],
  [2013, 'CR_SERVER_LOST', 'fault sink_unreachable'],
  [4031, 'ER_CLIENT_INTERACTION_TIMEOUT', 'fault sink_unreachable'],
];

test.each(codes)('%i %s: %s', (errno, _, meaning) => {
  expect(said(errno)).toBe(meaning);
  expect(said(errno, 'mariadb')).toBe(meaning);
});

test('4025 is a CHECK in MariaDB only, whatever the driver calls it', () => {
  const error = { errno: 4025, code: 'ER_INNODB_AUTOEXTEND_SIZE_OUT_OF_RANGE' };
  expect(meaningOf(error, 'mariadb')).toEqual({ kind: 'reject', code: 'constraint_failed' });
  expect(meaningOf(error, 'mysql')).toEqual({ kind: 'fault', code: 'unexpected' });
});

test('an unknown number is tried again, and never refuses a record', () => {
  expect(said(9_999)).toBe('fault unexpected');
});

test.each([
  ['PROTOCOL_CONNECTION_LOST', 'sink_unreachable'],
  ['PROTOCOL_SEQUENCE_TIMEOUT', 'sink_unreachable'],
  ['ECONNRESET', 'sink_unreachable'],
  ['ECONNREFUSED', 'sink_unreachable'],
  ['ENOTFOUND', 'sink_unreachable'],
  ['EAI_AGAIN', 'sink_unreachable'],
  ['ETIMEDOUT', 'sink_unreachable'],
  ['EPIPE', 'sink_unreachable'],
  ['HANDSHAKE_NO_SSL_SUPPORT', 'sink_tls'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'sink_tls'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'sink_tls'],
  ['SOMETHING_NEW', 'unexpected'],
])('%s: %s', (code, fault) => {
  expect(meaningOf({ errno: -111, code }, 'mysql')).toEqual({ kind: 'fault', code: fault });
});

test('a command on a connection that is closed has no code', () => {
  const message = "Can't add new command when connection is in closed state";
  expect(meaningOf({ message }, 'mysql')).toEqual({ kind: 'fault', code: 'sink_unreachable' });
});

test('a deadlock begins the transaction again, a lock wait and an interrupted statement do not', () => {
  expect(meaningOf({ errno: 1213 }, 'mysql')).toMatchObject({ restart: true });
  for (const errno of [1205, 1317]) expect(meaningOf({ errno }, 'mysql')).not.toHaveProperty('restart');
});

describe('what may be said of an error', () => {
  test('its number or name, never its text', () => {
    expect(labelOf({ errno: 1406, code: 'ER_DATA_TOO_LONG', message: 'secret' })).toBe('error 1406');
    expect(labelOf({ errno: -111, code: 'ECONNREFUSED', message: 'connect 10.0.0.1' })).toBe('ECONNREFUSED');
    expect(labelOf({ code: 'my secret', message: 'x' })).toBe('an error without a number');
  });

  test('the column only if it is one of ours', () => {
    const message = "Incorrect integer value: 'name' for column 'age' at row 17";
    expect(columnHint({ message: "Data too long for column 'name' at row 3" }, ['id', 'name'])).toBe('name');
    expect(columnHint({ message }, ['id', 'age'])).toBe('age');
    expect(columnHint({ message: "Incorrect integer value: 'secret'" }, ['id'])).toBeUndefined();
    expect(rowHint({ message })).toBe(17);
    expect(rowHint({ message: "Column 'x' cannot be null" })).toBeUndefined();
  });
});

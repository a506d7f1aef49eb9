import type { FaultCode } from '../../core/errors.ts';
import type { RejectCode } from '../../core/record.ts';

/**
 * What an error of MySQL or MariaDB means for a write. By number: the driver names some of MariaDB's wrongly. `duplicate`: a
 * unique key, ours or another; the rows tell which.
 */
export type Meaning =
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'reject'; readonly code: RejectCode }
  | { readonly kind: 'fault'; readonly code: FaultCode; readonly restart?: true };

export type Flavour = 'mysql' | 'mariadb';

const rejects: Readonly<Partial<Record<RejectCode, readonly number[]>>> = {
  // ER_DATA_TOO_LONG; 1162 ER_TOO_LONG_STRING
  value_too_long: [1406, 1162],
  // ER_BAD_NULL_ERROR, ER_WARN_NULL_TO_NOTNULL
  value_missing: [1048, 1263],
  // Out of range, truncated, wrong value, wrong value for field, illegal value, division by 0, wrong value for type, JSON text,
  // JSON charset, JSON value for CAST, JSON depth, JSON key, JSON too big, data out of range, wrong arguments of a function
  value_invalid: [
    1264, 1265, 1292, 1366, 1367, 1365, 1411, 3140, 3141, 3144, 3147, 3156, 3157, 3151, 3150, 1690, 1210, 1416, 1300, 3958,
  ],
  // Packet too large, result too large, undo record too big
  too_large: [1153, 1301, 1713],
  // Foreign keys (row missing, old and new form), CHECK, SIGNAL of a trigger, undo of a view's WITH CHECK OPTION, generated
  constraint_failed: [1216, 1452, 3819, 1644, 1369, 4074],
};

const faults: Readonly<Partial<Record<FaultCode, readonly number[]>>> = {
  sink_login: [1045, 1698, 1251, 1862, 1820, 3118, 3955, 2049, 2054, 1130, 1129],
  // No database, no table, no column, unknown table
  sink_missing: [1049, 1146, 1054, 1051, 1109],
  // Denied to a database, a table, a column, a routine; SUPER needed; read-only in its forms
  sink_denied: [1044, 1142, 1143, 1227, 1370, 1290, 1836, 1792, 1874, 1223, 1356],
  // Table full, disk full, out of space in a temporary file
  sink_full: [1114, 1021, 3675],
  // Syntax, column count, column without default, view, partition, statement format, row size, setting unknown or refused
  sink_unfit: [1064, 1136, 1364, 1471, 1288, 1526, 1665, 1235, 1305, 1176, 1295, 1442, 1193, 1231, 1118, 3170],
  // Lock wait, deadlock, statement ended by somebody, execution time, nowait, too many locks, XA
  sink_busy: [1205, 1213, 1317, 3024, 1969, 3572, 1614, 1206, 1637, 3101, 1020],
  // Too many connections, of a user, resource limits, server shutting down, network errors, gone away, lost, killed, timeouts
  sink_unreachable: [
    1040, 1203, 1226, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2002, 2003, 2006, 2013, 2055, 4031, 3169,
  ],
};

/** After these the whole transaction is gone, and the same statements may well succeed at once. */
const restarts: ReadonlySet<number> = new Set([1213, 3101, 1020]);
const duplicates: readonly number[] = [1062, 1022, 1586, 1169];

/** Of the driver and of Node, by name. */
const namedFaults: Readonly<Partial<Record<FaultCode, readonly string[]>>> = {
  sink_unreachable: [
    'PROTOCOL_CONNECTION_LOST',
    'PROTOCOL_SEQUENCE_TIMEOUT',
    'PROTOCOL_UNEXPECTED_PACKET',
    'PROTOCOL_PACKETS_OUT_OF_ORDER',
    'POOL_CLOSED',
    'ECONNRESET',
    'ECONNREFUSED',
    'ECONNABORTED',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'EHOSTDOWN',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EADDRNOTAVAIL',
  ],
  sink_login: ['AUTH_SWITCH_PLUGIN_ERROR', 'ER_ACCESS_DENIED_ERROR'],
  sink_tls: [
    'HANDSHAKE_NO_SSL_SUPPORT',
    'HANDSHAKE_SSL_ERROR',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'UNABLE_TO_GET_ISSUER_CERT',
    'CERT_HAS_EXPIRED',
    'CERT_NOT_YET_VALID',
    'CERT_SIGNATURE_FAILURE',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
    'ERR_SSL_NO_PROTOCOLS_AVAILABLE',
    'ERR_OSSL_PEM_NO_START_LINE',
    'ERR_OSSL_X509_KEY_VALUES_MISMATCH',
  ],
};

/** CHECK and JSON columns of MariaDB; another number's meaning in MySQL, where no write raises it. */
const MARIADB_CONSTRAINT_FAILED = 4025;
/** Numbers of the server; the driver gives system errors of Node as negative ones. */
const SERVER_NUMBER_MIN = 1_000;

const byNumber: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  ...duplicates.map((number) => [number, { kind: 'duplicate' }] as const),
  ...listed(rejects).map(([number, code]) => [number, { kind: 'reject', code }] as const),
  ...listed(faults).map(([number, code]) => {
    const restart = restarts.has(number) ? ({ restart: true } as const) : {};
    return [number, { kind: 'fault', code, ...restart } as const] as const;
  }),
]);
const byName: ReadonlyMap<string, FaultCode> = new Map(listed(namedFaults));

export interface DriverError {
  readonly errno?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly fatal?: unknown;
}

export function meaningOf(error: DriverError, flavour: Flavour): Meaning {
  const { errno, code } = error;
  if (typeof errno === 'number' && errno >= SERVER_NUMBER_MIN) {
    if (errno === MARIADB_CONSTRAINT_FAILED && flavour === 'mariadb') return { kind: 'reject', code: 'constraint_failed' };
    return byNumber.get(errno) ?? { kind: 'fault', code: 'unexpected' };
  }
  const named = typeof code === 'string' ? byName.get(code) : undefined;
  if (named !== undefined) return { kind: 'fault', code: named };
  // The driver has no code for a command on a connection that broke a moment ago.
  const isClosed = error.fatal === true || /closed state|connection is closed/i.test(String(error.message));
  return { kind: 'fault', code: isClosed ? 'sink_unreachable' : 'unexpected' };
}

/** What may be said of an error: its number or name, never its text, which repeats values. */
export function labelOf({ errno, code }: DriverError): string {
  if (typeof errno === 'number' && errno >= SERVER_NUMBER_MIN) return `error ${errno}`;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : 'an error without a number';
}

/** The row of a multi-row statement that an error is of, from 1: a hint where to look, no more. */
export function rowHint({ message }: DriverError): number | undefined {
  const row = /\bat row (\d{1,9})\b/.exec(String(message))?.[1];
  return row === undefined ? undefined : Number(row);
}

/** The column that an error names, if it is one of ours: anything else in its text may be a value. */
export function columnHint({ message }: DriverError, columns: readonly string[]): string | undefined {
  const quoted = [...String(message).matchAll(/['`"]([^'`"]{1,200})['`"]/g)].map(([, name]) => name!.split('.').at(-1)!);
  return quoted.find((name) => columns.includes(name));
}

function listed<C extends string, V>(table: Readonly<Partial<Record<C, readonly V[]>>>): [V, C][] {
  return Object.entries(table).flatMap(([code, values]) => (values as readonly V[]).map((value): [V, C] => [value, code as C]));
}

import type { FaultCode } from '../../core/errors.ts';
import type { RejectCode } from '../../core/record.ts';

/** What an error of Oracle Database or of its driver means for a write. `duplicate`: a unique key; `constraintOf` tells which. */
export type Meaning =
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'reject'; readonly code: RejectCode }
  | { readonly kind: 'fault'; readonly code: FaultCode; readonly restart?: true };

const rejects: Readonly<Partial<Record<RejectCode, readonly number[]>>> = {
  // Larger than the column (new and old form), result of concatenation
  value_too_long: [12899, 1401, 1489],
  // NULL into a column, by INSERT and by UPDATE
  value_missing: [1400, 1407],
  // Precision, overflow, number, dates and their formats, hex, character sets, LOB conversion, JSON in its forms, PL/SQL value
  value_invalid: [
    1438, 1426, 1722, 1830, 1839, 1840, 1841, 1843, 1847, 1850, 1851, 1852, 1858, 1861, 1873, 1878, 1882, 1465, 12704, 22835,
    29275, 40441, 40443, 40478, 40479, 40587, 40597, 6502,
  ],
  // CHECK, parent missing, child there, WITH CHECK OPTION of a view
  constraint_failed: [2290, 2291, 2292, 1402],
};

/** Raised by a trigger for reasons of its own. */
const TRIGGER_NUMBER_MIN = 20_000;
const TRIGGER_NUMBER_MAX = 20_999;

const faults: Readonly<Partial<Record<FaultCode, readonly number[]>>> = {
  // Password, locked, expired, CREATE SESSION, null password, SYSDBA, protocol of the password, restricted session, proxy
  sink_login: [1017, 28000, 28001, 1045, 1005, 28009, 1004, 28040, 1035, 28030, 28150],
  // Wallet, handshake, certificate
  sink_tls: [28759, 28860, 28862, 28750, 29002, 29003, 29005, 29024, 29106],
  // Table or view, column, object; service, SID and alias that nobody knows
  sink_missing: [942, 904, 4043, 12514, 12505, 12154],
  // Privileges, quota of nothing, read-only database, tablespace, table, policy
  sink_denied: [1031, 1950, 16000, 1647, 12081, 1552, 28115],
  // Quota, extents of tables, indexes, LOBs, temporary and undo segments, archiver, recovery area, resumable wait
  sink_full: [
    1536, 1650, 1652, 1653, 1654, 1655, 1658, 1659, 1683, 1688, 1691, 1692, 1693, 1631, 1632, 30032, 30036, 257, 19809, 19815,
    65114,
  ],
  // Syntax and names, count of values, types of binds, long binds, MERGE, partition, invalid object, mutating table, index
  sink_unfit: [
    900, 901, 902, 903, 905, 906, 907, 908, 909, 910, 911, 913, 917, 918, 920, 921, 922, 923, 925, 926, 927, 928, 932, 933, 936,
    946, 947, 957, 960, 961, 962, 964, 968, 969, 970, 971, 972, 1006, 1008, 1036, 1461, 1483, 1484, 1732, 1733, 1745, 1747,
    1748, 1779, 1795, 14400, 14401, 24816, 38101, 38104, 4063, 4091, 4098, 1502, 54013, 32795,
  ],
  // Deadlock, serialization, locks not waited for, lock timeouts, snapshot, package state, shared memory, in doubt, interrupted
  sink_busy: [60, 8177, 54, 30006, 51, 4020, 4021, 2049, 1555, 22924, 4061, 4068, 4030, 4031, 1591, 1013, 12839, 12860],
  // Starting, stopping, killed, closed, lost, sessions and processes used up, no handler, network, internal errors
  sink_unreachable: [
    18, 20, 28, 31, 600, 603, 1012, 1033, 1034, 1089, 1090, 1092, 1109, 2063, 2391, 2392, 2396, 2399, 3113, 3114, 3135, 3136,
    7445, 12153, 12170, 12516, 12518, 12519, 12520, 12526, 12527, 12528, 12535, 12537, 12541, 12543, 12545, 12547, 12560, 12564,
    12569, 12570, 12571, 12583, 12592, 12606, 12609, 12636, 12757, 16456, 25401, 25402, 25405, 25408,
  ],
};

/** After these the same statements may well succeed at once, in a new transaction. */
const restarts: ReadonlySet<number> = new Set([60, 8177, 4061, 4068, 1555]);

const UNIQUE_VIOLATED = 1;
/** Says only that something happened below; the next line says what. */
const RECURSIVE = 604;
const byNumber: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [UNIQUE_VIOLATED, { kind: 'duplicate' }],
  ...listed(rejects).map(([number, code]) => [number, { kind: 'reject', code }] as const),
  ...listed(faults).map(([number, code]) => {
    const restart = restarts.has(number) ? ({ restart: true } as const) : {};
    return [number, { kind: 'fault', code, ...restart } as const] as const;
  }),
]);

/** Errors of the driver, by number. Those that stand for an error of the server are looked up by that first. */
const driverFaults: Readonly<Partial<Record<FaultCode, readonly number[]>>> = {
  // Wallet, handshake, names in the certificate, wallet that is no PEM
  sink_tls: [505, 506, 507, 508, 529],
  // Service and SID that the listener does not know
  sink_missing: [518, 519],
  // Password verifier, version, connect string, native encryption: what the driver cannot do
  sink_unfit: [116, 138, 512, 514, 515, 516, 517, 520, 522, 531, 532, 533],
  // A call that did not end in time
  sink_busy: [123],
  // Closed, broken, refused, timed out, no such host, malformed packet
  sink_unreachable: [3, 40, 76, 500, 501, 503, 504, 509, 510, 511, 513, 521, 530, 536],
};
const byDriverNumber: ReadonlyMap<number, FaultCode> = new Map(listed(driverFaults));

export interface DriverError {
  readonly code?: unknown;
  readonly errorNum?: unknown;
  readonly message?: unknown;
}

/** The number is not always in `errorNum`: an entry of `batchErrors` has only its text. */
export function meaningOf(error: DriverError): Meaning {
  const server = serverNumber(error);
  if (server !== undefined) {
    if (server >= TRIGGER_NUMBER_MIN && server <= TRIGGER_NUMBER_MAX) return { kind: 'reject', code: 'constraint_failed' };
    const meaning = byNumber.get(server);
    if (meaning !== undefined) return meaning;
  }
  const driver = driverNumber(error);
  const code = driver === undefined ? undefined : byDriverNumber.get(driver);
  return { kind: 'fault', code: code ?? 'unexpected' };
}

/** What may be said of an error: its number, never its text, which repeats values, names and addresses. */
export function labelOf(error: DriverError): string {
  const server = serverNumber(error);
  if (server !== undefined) return `ORA-${String(server).padStart(5, '0')}`;
  const driver = driverNumber(error);
  return driver === undefined ? 'an error without a number' : `NJS-${String(driver).padStart(3, '0')}`;
}

export interface ConstraintName {
  readonly owner: string;
  readonly name: string;
}

/** The constraint, or unique index, that a text such as `ORA-00001: unique constraint (APP.PK_ORDERS) violated` names. */
export function constraintOf({ message }: DriverError): ConstraintName | undefined {
  const [, owner, name] = /\(("?[^().]+"?)\.("?[^()]+"?)\)/.exec(firstLine(message)) ?? [];
  if (owner === undefined || name === undefined) return undefined;
  return { owner: owner.replaceAll('"', ''), name: name.replaceAll('"', '') };
}

/** The column that an error names (`"APP"."ORDERS"."SUBJECT"`), if it is one of ours: other text may be a value. */
export function columnHint({ message }: DriverError, columns: readonly string[]): string | undefined {
  const named = /"([^"]+)"\."([^"]+)"\."([^"]+)"/.exec(firstLine(message))?.[3];
  return named !== undefined && columns.includes(named) ? named : undefined;
}

/** In one of: `code` and `errorNum` of an error of the server, `errorNum` beside a code of the driver, its text, a cause. */
function serverNumber({ code, errorNum, message }: DriverError): number | undefined {
  const text = textOf(message);
  const numbers = [...text.matchAll(/\bORA-(\d{5})\b/g)].map(([, digits]) => Number(digits));
  const coded = /^ORA-(\d{1,5})$/.exec(textOf(code))?.[1];
  const first = coded === undefined ? (typeof errorNum === 'number' && errorNum > 0 ? errorNum : numbers[0]) : Number(coded);
  if (first === RECURSIVE) return numbers.find((number) => number !== RECURSIVE) ?? first;
  return first;
}

function driverNumber({ code, message }: DriverError): number | undefined {
  const found = /^NJS-(\d{1,4})$/.exec(textOf(code))?.[1] ?? /^NJS-(\d{1,4})\b/.exec(textOf(message))?.[1];
  return found === undefined ? undefined : Number(found);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function firstLine(message: unknown): string {
  return textOf(message).split('\n', 1)[0]!;
}

function listed<C extends string>(table: Readonly<Partial<Record<C, readonly number[]>>>): [number, C][] {
  return Object.entries(table).flatMap(([code, numbers]) =>
    (numbers as readonly number[]).map((number): [number, C] => [number, code as C]),
  );
}

import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { ReplayFault } from '../../core/errors.ts';
import type { SinkContext } from '../sink.ts';
import type { MysqlConfig } from './config.ts';
import { labelOf, meaningOf } from './errors.ts';
import type { DriverError, Flavour } from './errors.ts';

const CONNECT_MS_MAX = 8_000;
/** A statement of ours takes milliseconds; one that takes this long hangs. */
const STATEMENT_MS_MAX = 30_000;
const KILL_MS_MAX = 2_000;
const CLOSE_MS_MAX = 2_000;
const LOCK_WAIT_SECONDS_MAX = 5;

/** Of the driver's connection only this is used. */
interface DriverConnection {
  readonly threadId: number | null;
  query(options: { readonly sql: string; readonly timeout: number }): Promise<[unknown, unknown]>;
  end(): Promise<void>;
  destroy(): void;
  on(event: 'error', listener: () => void): unknown;
}

export interface ServerFacts {
  readonly flavour: Flavour;
  readonly version: string;
  /** The largest statement that the server takes. */
  readonly maxPacketBytes: number;
  readonly readOnly: boolean;
}

/** As the session asks for them: no dates, no bigint. */
export type Cell = string | number | Buffer | null;
export type Row = Readonly<Record<string, Cell>>;

export interface Changed {
  readonly affectedRows: number;
  readonly warnings: number;
}

/** One connection, set up. Errors of the server are thrown as the driver gives them; see `faultOf`. */
export interface Session {
  readonly server: ServerFacts;
  rows(sql: string): Promise<readonly Row[]>;
  change(sql: string): Promise<Changed>;
  /** Ends what the connection does now, without waiting for it; its transaction is rolled back. Never throws. */
  abort(): Promise<void>;
  /** Never throws. */
  close(): Promise<void>;
}

/** Throws a ReplayFault. */
export async function connect(config: MysqlConfig, context: Pick<SinkContext, 'secret'>): Promise<Session> {
  const options = connectionOptions(config, context);
  const connection = await open(options);
  try {
    return await setUp(connection, () => (config.pool_size > 1 ? open(options) : Promise.resolve(null)));
  } catch (error) {
    connection.destroy();
    throw faultOf(error as DriverError, 'mysql');
  }
}

type ConnectionOptions = ReturnType<typeof connectionOptions>;

function connectionOptions(config: MysqlConfig, context: Pick<SinkContext, 'secret'>) {
  const { tls } = config;
  return {
    host: config.host,
    port: config.port,
    user: config.user,
    password: context.secret(config.password.env),
    database: config.database,
    connectTimeout: CONNECT_MS_MAX,
    // A charset whose name the driver does not know (utf8mb4_0900_bin) crashes it.
    charset: 'utf8mb4_bin',
    timezone: 'Z',
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    // Statements come without placeholders; the driver would search each of their megabytes for some.
    queryFormat: (sql: string) => sql,
    // Rows that an upsert leaves as they are must not count as changed; and nobody may ask for our files.
    flags: ['-FOUND_ROWS', '-LOCAL_FILES'],
    ...(tls === undefined
      ? {}
      : {
          ssl: {
            rejectUnauthorized: tls.verify,
            verifyIdentity: tls.verify,
            ...(tls.ca === undefined ? {} : { ca: tls.ca }),
            ...(tls.cert === undefined ? {} : { cert: tls.cert }),
            ...(tls.key === undefined ? {} : { key: context.secret(tls.key.env) }),
          },
        }),
  };
}

async function open(options: ConnectionOptions): Promise<DriverConnection> {
  try {
    const connection = (await createConnection(options)) as unknown as DriverConnection;
    // A connection that breaks while nothing runs on it says so by an event, which would end the process.
    connection.on('error', () => undefined);
    return connection;
  } catch (error) {
    throw faultOf(error as DriverError, 'mysql');
  }
}

/** Strict, without the modes that change how statements are spelt; UTC; each statement sees what is committed. */
const settings = [
  "sql_mode='STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
  "time_zone='+00:00'",
  "lc_messages='en_US'",
  'sql_notes=1',
  `innodb_lock_wait_timeout=${LOCK_WAIT_SECONDS_MAX}`,
  `lock_wait_timeout=${LOCK_WAIT_SECONDS_MAX}`,
];

async function setUp(connection: DriverConnection, another: () => Promise<DriverConnection | null>): Promise<Session> {
  const query = async (sql: string) => (await connection.query({ sql, timeout: STATEMENT_MS_MAX }))[0];
  const rows = async (sql: string) => (await query(sql)) as readonly Row[];
  await query(`SET SESSION ${settings.join(', ')}`);
  await query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  const [facts] = await rows('SELECT VERSION() AS version, @@max_allowed_packet AS packet, @@read_only AS readOnly');
  const version = String(facts!['version']);
  const server: ServerFacts = {
    flavour: /mariadb/i.test(version) ? 'mariadb' : 'mysql',
    version,
    maxPacketBytes: Number(facts!['packet']),
    readOnly: Number(facts!['readOnly']) !== 0,
  };
  return {
    server,
    rows,
    async change(sql) {
      const { affectedRows, warningStatus } = (await query(sql)) as { affectedRows: number; warningStatus: number };
      return { affectedRows, warnings: warningStatus };
    },
    async abort() {
      const { threadId } = connection;
      connection.destroy();
      if (threadId !== null) await within(KILL_MS_MAX, killThread(threadId, another));
    },
    async close() {
      await within(CLOSE_MS_MAX, connection.end());
      connection.destroy();
    },
  };
}

/** The server notices a closed connection only between statements; until then its locks stay. */
async function killThread(threadId: number, another: () => Promise<DriverConnection | null>): Promise<void> {
  const killer = await another();
  try {
    await killer?.query({ sql: `KILL ${threadId}`, timeout: KILL_MS_MAX });
  } finally {
    killer?.destroy();
  }
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  await Promise.race([work.catch(() => undefined), sleep(ms, undefined, { ref: false })]);
}

/** A fault without the driver's text, which holds values, users and addresses. */
export function faultOf(error: DriverError | ReplayFault, flavour: Flavour): ReplayFault {
  if (error instanceof ReplayFault) return error;
  const meaning = meaningOf(error, flavour);
  return new ReplayFault(meaning.kind === 'fault' ? meaning.code : 'unexpected', labelOf(error));
}

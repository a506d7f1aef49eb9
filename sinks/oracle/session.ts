import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import oracledb from 'oracledb';
import type { BindDefinition, Connection, ExecuteManyResult } from 'oracledb';
import { ReplayFault } from '../../core/errors.ts';
import type { SinkContext } from '../sink.ts';
import type { OracleConfig } from './config.ts';
import { labelOf, meaningOf } from './errors.ts';
import type { DriverError } from './errors.ts';
import { FACTS_SQL, SESSION_SQL } from './sql.ts';

const CONNECT_SECONDS_MAX = 8;
/** A call of ours takes milliseconds; one that takes this long hangs, or waits for a lock. */
const CALL_MS_MAX = 30_000;
/** After that the driver asks the server to end the call, which takes an answer, too. */
const BREAK_MS_MAX = 5_000;
const ABORT_MS_MAX = 2_000;
const CLOSE_MS_MAX = 2_000;
const ROWS_FETCHED = 1_000;

export interface ServerFacts {
  /** Such as 1903000000. */
  readonly version: number;
  readonly user: string;
  readonly schema: string;
  /** PRIMARY, or a kind of standby. */
  readonly role: string;
  readonly characterSet: string;
}

/** Every column as text. */
export type Cells = readonly (string | null)[];

export interface RowFailure {
  /** Place of its row in the call. */
  readonly offset: number;
  readonly error: Error;
}

/** One connection, set up. Errors of the server are thrown as the driver gives them; see `faultOf`. */
export interface Session {
  readonly server: ServerFacts;
  rows(sql: string, binds?: readonly unknown[]): Promise<readonly Cells[]>;
  change(sql: string): Promise<void>;
  /** Runs a statement for each row; the rows that failed, the others stay. Throws when nothing can be said of single rows. */
  many(sql: string, rows: readonly (readonly unknown[])[], binds: readonly BindDefinition[]): Promise<readonly RowFailure[]>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Ends what the connection does now; its transaction is rolled back. Never throws. */
  abort(): Promise<void>;
  /** Never throws. */
  close(): Promise<void>;
}

/** Throws a ReplayFault. */
export async function connect(config: OracleConfig, context: Pick<SinkContext, 'secret' | 'dataRoot'>): Promise<Session> {
  const options = connectionOptions(config, context);
  const connection = await oracledb.getConnection(options).catch((error: unknown) => {
    throw faultOf(error as DriverError);
  });
  try {
    return await setUp(connection, config);
  } catch (error) {
    await within(CLOSE_MS_MAX, connection.close());
    throw faultOf(error as DriverError);
  }
}

function connectionOptions(config: OracleConfig, { secret, dataRoot }: Pick<SinkContext, 'secret' | 'dataRoot'>) {
  const { wallet } = config;
  return {
    connectString: config.connect_string,
    user: config.user,
    password: secret(config.password.env),
    connectTimeout: CONNECT_SECONDS_MAX,
    transportConnectTimeout: CONNECT_SECONDS_MAX,
    ...(wallet?.content === undefined ? {} : { walletContent: secret(wallet.content.env) }),
    ...(wallet?.folder === undefined ? {} : { walletLocation: join(dataRoot, wallet.folder) }),
    ...(wallet?.password === undefined ? {} : { walletPassword: secret(wallet.password.env) }),
  };
}

async function setUp(connection: Connection, config: OracleConfig): Promise<Session> {
  connection.callTimeout = CALL_MS_MAX;
  const rows = async (sql: string, binds: readonly unknown[] = []) => {
    const answer = await limited(connection.execute(sql, binds, queryOptions));
    return (answer.rows ?? []) as readonly Cells[];
  };
  const change = async (sql: string) => void (await limited(connection.execute(sql, [], {})));
  for (const setting of SESSION_SQL) await change(setting);
  const [facts] = await rows(FACTS_SQL);
  const [user, schema, role, characterSet] = facts as readonly [string, string | null, string | null, string];
  return {
    server: {
      version: connection.oracleServerVersion,
      user,
      schema: schema ?? user,
      role: role ?? 'PRIMARY',
      characterSet,
    },
    rows,
    change,
    async many(sql, values, bindDefs) {
      const result = await limited(connection.executeMany(sql, values, { batchErrors: true, bindDefs }));
      return failuresOf(result);
    },
    commit: () => limited(connection.commit()),
    rollback: () => limited(connection.rollback()),
    async abort() {
      // An interrupt may hit the rollback instead of the call; closing rolls back, too, whatever came before.
      const ended = connection
        .break()
        .then(() => connection.rollback())
        .catch(() => undefined)
        .then(() => connection.close());
      await within(config.pool_size > 1 ? 0 : ABORT_MS_MAX, ended);
    },
    close: () => within(CLOSE_MS_MAX, connection.close()),
  };
}

const queryOptions = {
  outFormat: oracledb.OUT_FORMAT_ARRAY,
  prefetchRows: ROWS_FETCHED + 1,
  fetchArraySize: ROWS_FETCHED,
  // A number beyond 2^53 must keep its digits.
  fetchTypeHandler: () => ({ type: oracledb.STRING }),
};

function failuresOf({ batchErrors = [] }: ExecuteManyResult): RowFailure[] {
  return batchErrors.map(({ message, offset }) => ({ offset, error: new Error(message) }));
}

/** The driver's own limit needs a server that answers. */
async function limited<T>(call: Promise<T>): Promise<T> {
  const late = new AbortController();
  try {
    return await Promise.race([
      call,
      sleep(CALL_MS_MAX + BREAK_MS_MAX, undefined, { ref: false, signal: late.signal }).then((): never => {
        throw new ReplayFault('sink_unreachable', 'no answer');
      }),
    ]);
  } finally {
    call.catch(() => undefined);
    late.abort();
  }
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  await Promise.race([work.catch(() => undefined), sleep(ms, undefined, { ref: false })]);
}

/** A fault without the driver's text, which holds values, users and addresses. */
export function faultOf(error: DriverError | ReplayFault): ReplayFault {
  if (error instanceof ReplayFault) return error;
  const meaning = meaningOf(error);
  return new ReplayFault(meaning.kind === 'fault' ? meaning.code : 'unexpected', labelOf(error));
}

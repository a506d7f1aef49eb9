import type { Outcome, ReplayRecord } from '../../core/record.ts';
import { mysqlConfigSchema } from '../../sinks/mysql/config.ts';
import { createMysqlSink } from '../../sinks/mysql/sink.ts';
import type { Sink, SinkContext } from '../../sinks/sink.ts';
import { atFileEnd } from './file-end.ts';
import type { TestDatabase } from './mysql.ts';

const SECRET = 'REPLAY_SECRET_MYSQL_TEST';

export interface TestSinkOptions {
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly idempotency?: NonNullable<SinkContext['idempotency']>;
  readonly password?: string;
  readonly told?: unknown[];
  readonly begun?: boolean;
}

/** Not opened yet; closed when this test file ends. */
export function makeMysqlSink(database: TestDatabase, options: TestSinkOptions = {}): Sink {
  const { fields = {}, idempotency, password = database.password, told = [], begun = false } = options;
  const target = { type: 'mysql', ...database.place, password: { env: SECRET }, table: 'orders', ...fields };
  const note = (...line: unknown[]) => void told.push(...line);
  const sink = createMysqlSink(mysqlConfigSchema.parse(target), {
    dataRoot: '/nowhere',
    plan: 'orders-replay',
    run: 'run-1',
    begun,
    secret: () => password,
    log: { info: note, warn: note },
    ...(idempotency === undefined ? {} : { idempotency }),
  });
  atFileEnd(() => sink.close());
  return sink;
}

/** One batch through a sink of its own. */
export async function writeOnce(
  database: TestDatabase,
  batch: readonly ReplayRecord[],
  options: TestSinkOptions = {},
): Promise<readonly Outcome[]> {
  const sink = makeMysqlSink(database, options);
  try {
    return await sink.write(batch, new AbortController().signal);
  } finally {
    await sink.close();
  }
}

import type { Outcome, ReplayRecord } from '../../core/record.ts';
import { oracleConfigSchema } from '../../sinks/oracle/config.ts';
import { createOracleSink } from '../../sinks/oracle/sink.ts';
import type { Sink, SinkContext } from '../../sinks/sink.ts';
import { atFileEnd } from './file-end.ts';
import type { TestUser } from './oracle.ts';

const SECRET = 'REPLAY_SECRET_ORACLE_TEST';

export interface TestSinkOptions {
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly idempotency?: NonNullable<SinkContext['idempotency']>;
  readonly password?: string;
  readonly told?: unknown[];
  readonly begun?: boolean;
}

/** Not opened yet; closed when this test file ends. */
export function makeOracleSink(user: TestUser, options: TestSinkOptions = {}): Sink {
  const { fields = {}, idempotency, password = user.password, told = [], begun = false } = options;
  const target = { type: 'oracle', ...user.place, password: { env: SECRET }, table: 'orders', ...fields };
  const note = (...line: unknown[]) => void told.push(...line);
  const sink = createOracleSink(oracleConfigSchema.parse(target), {
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
  user: TestUser,
  batch: readonly ReplayRecord[],
  options: TestSinkOptions = {},
): Promise<readonly Outcome[]> {
  const sink = makeOracleSink(user, options);
  try {
    return await sink.write(batch, new AbortController().signal);
  } finally {
    await sink.close();
  }
}

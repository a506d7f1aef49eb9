import { mysqlSpec } from '../../sinks/mysql/config.ts';
import { openLine } from '../support/line.ts';
import { addDatabase, testMysql, type TestDatabase } from '../support/mysql.ts';
import type { Destination, Place, StoredRecord } from './sink-contract.ts';

const TABLE = 'orders';
const PASSWORD = 'REPLAY_SECRET_MYSQL_CONTRACT';

export const mysqlDestinations: readonly Destination[] = (['insert', 'upsert'] as const).map((mode) => ({
  spec: mysqlSpec,
  mode,
  create: () => createPlace(mode),
}));

/** The sink reaches the server through a line of ours, which can be cut. */
async function createPlace(mode: 'insert' | 'upsert'): Promise<Place> {
  const server = await testMysql();
  const database = await addDatabase(server);
  const line = await openLine(server.host, server.port);
  const target = {
    type: 'mysql',
    ...database.place,
    host: '127.0.0.1',
    port: line.port,
    password: { env: PASSWORD },
    table: TABLE,
    mode,
    create_table: true,
  };
  return {
    target,
    badTarget: { ...target, table: 'no_such_table', create_table: false },
    surroundings: { dataRoot: '/nowhere', secret: () => database.password },
    confidential: [database.password, `127.0.0.1:${line.port}`, `:${line.port}`, database.user],
    poison: {
      fields: {},
      code: 'value_too_long',
      spoil: (record) => ({ ...record, subject: `orders.${'x'.repeat(5_000)}` }),
    },
    connection: line,
    readBack: () => readTable(database),
    traces: () =>
      database.query(
        'SELECT TABLE_NAME AS name, CREATE_TIME AS made FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()',
      ),
    async remove() {
      await line.close();
      await database.drop();
    },
  };
}

async function readTable(database: TestDatabase): Promise<StoredRecord[]> {
  const there = await database.query(`SHOW TABLES LIKE '${TABLE}'`);
  if (there.length === 0) return [];
  const rows = await database.query(`SELECT * FROM ${TABLE} ORDER BY stream_name, stream_incarnation, stream_sequence`);
  return rows.map((row) => ({
    stream: String(row['stream_name']),
    incarnation: String(row['stream_incarnation']),
    sequence: BigInt(String(row['stream_sequence'])),
    subject: String(row['subject']),
    timeNanos: BigInt(String(row['message_time_ns'])),
    messageId: row['message_id'] === null ? null : String(row['message_id']),
    payload: row['payload'] as Buffer,
    plan: String(row['replay_plan']),
    run: String(row['replay_run']),
  }));
}

import { oracleSpec } from '../../sinks/oracle/config.ts';
import { openLine } from '../support/line.ts';
import { testOracle, type TestUser } from '../support/oracle.ts';
import type { Destination, Place, StoredRecord } from './sink-contract.ts';

const TABLE = 'ORDERS';
const PASSWORD = 'REPLAY_SECRET_ORACLE_CONTRACT';

export const oracleDestinations: readonly Destination[] = (['insert', 'upsert'] as const).map((mode) => ({
  spec: oracleSpec,
  mode,
  create: () => createPlace(mode),
}));

/** The sink reaches the server through a line of ours, which can be cut. */
async function createPlace(mode: 'insert' | 'upsert'): Promise<Place> {
  const user = await (await testOracle()).addUser();
  const line = await openLine(user.host, user.port);
  const target = {
    type: 'oracle',
    ...user.place,
    connect_string: `127.0.0.1:${line.port}/${user.service}`,
    password: { env: PASSWORD },
    table: TABLE.toLowerCase(),
    mode,
    create_table: true,
  };
  return {
    target,
    badTarget: { ...target, table: 'no_such_table', create_table: false },
    surroundings: { dataRoot: '/nowhere', secret: () => user.password },
    confidential: [user.password, '127.0.0.1', `:${line.port}`, user.service],
    // Short enough in bytes, too long in characters: the database itself refuses it.
    poison: {
      fields: {},
      code: 'value_too_long',
      spoil: (record) => ({ ...record, stream: 'x'.repeat(300) }),
    },
    connection: line,
    readBack: () => readTable(user),
    traces: () =>
      user.query(
        `SELECT OBJECT_NAME, OBJECT_TYPE FROM ALL_OBJECTS WHERE OWNER = '${user.user}' ORDER BY OBJECT_NAME, OBJECT_TYPE`,
      ),
    async remove() {
      await line.close();
      await user.drop();
    },
  };
}

async function readTable(user: TestUser): Promise<StoredRecord[]> {
  const there = await user.query(`SELECT TABLE_NAME FROM ALL_TABLES WHERE OWNER = '${user.user}' AND TABLE_NAME = '${TABLE}'`);
  if (there.length === 0) return [];
  const rows = await user.query(`SELECT * FROM ${TABLE} ORDER BY STREAM_NAME, STREAM_INCARNATION, STREAM_SEQUENCE`);
  return rows.map((row) => ({
    stream: String(row['STREAM_NAME']),
    incarnation: String(row['STREAM_INCARNATION']),
    sequence: BigInt(String(row['STREAM_SEQUENCE'])),
    subject: String(row['SUBJECT']),
    timeNanos: BigInt(String(row['MESSAGE_TIME_NS'])),
    messageId: row['MESSAGE_ID'] === null ? null : String(row['MESSAGE_ID']),
    headers: headersOf(String(row['HEADERS'])),
    payload: row['PAYLOAD'] as Buffer,
    plan: String(row['REPLAY_PLAN']),
    run: String(row['REPLAY_RUN']),
  }));
}

/** JSON.parse puts names like "1" first; their order in the text is that of the record. */
function headersOf(json: string): [string, string[]][] {
  return [...json.matchAll(/("(?:[^"\\]|\\.)*"):(\[(?:"(?:[^"\\]|\\.)*",?)*\])/g)].map(([, name, values]) => [
    JSON.parse(name!) as string,
    JSON.parse(values!) as string[],
  ]);
}

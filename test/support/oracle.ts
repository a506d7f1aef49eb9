import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import oracledb from 'oracledb';
import type { Connection } from 'oracledb';
import { startH2 } from '../../scripts/servers/h2.ts';
import { atFileEnd } from './file-end.ts';
import { h2At, type Cell } from './oracle-wire/h2.ts';
import { startListener, type Listener } from './oracle-wire/listener.ts';

/** Whether this run may leave Oracle out: only if told to. */
export const withoutOracle = process.env['REPLAY_TEST_WITHOUT_ORACLE'] === '1';
/** A real Oracle Database: tests that make faults on the wire, or read what was sent there, are left out. */
export const withoutWire = withoutOracle || Boolean(process.env['REPLAY_TEST_ORACLE_URL']);

export interface TestOracle {
  /** A user of its own with a random password; on the wire ladder also a database of its own. */
  addUser(): Promise<TestUser>;
  /** null: a real one. */
  readonly listener: Listener | null;
}

export interface TestUser {
  readonly user: string;
  readonly password: string;
  readonly host: string;
  readonly port: number;
  readonly service: string;
  /** As this user. Names of columns are in upper case; numbers and times are texts, BLOBs and RAWs are bytes. */
  query(sql: string): Promise<Record<string, Cell>[]>;
  /** Fields of a target. */
  readonly place: { readonly connect_string: string; readonly user: string };
  drop(): Promise<void>;
}

let shared: Promise<TestOracle> | undefined;

/** That of REPLAY_TEST_ORACLE_URL, or the wire ladder: a listener of our own with H2 behind it, shared by this test file. */
export async function testOracle(): Promise<TestOracle> {
  const url = process.env['REPLAY_TEST_ORACLE_URL'];
  shared ??= url ? Promise.resolve(realOracle(new URL(url))) : wireLadder();
  return await shared;
}

async function wireLadder(): Promise<TestOracle> {
  const source = fileURLToPath(new URL('./oracle-wire/Bridge.java', import.meta.url));
  const server = await startH2({ source, say: (line) => process.stderr.write(`${line}\n`) });
  atFileEnd(() => server.stop());
  const h2 = h2At(server.port);
  const listener = await startListener({ open: (service, user) => h2.open(service, user) });
  atFileEnd(() => listener.close());
  return {
    listener,
    async addUser() {
      const { user, password } = randomUser();
      const service = `S${randomBytes(5).toString('hex').toUpperCase()}`;
      await h2.create(service, user);
      listener.accounts.set(service, { user, password });
      const { port } = listener;
      return {
        user,
        password,
        service,
        host: '127.0.0.1',
        port,
        query: (sql) => h2.query(service, user, sql),
        place: { connect_string: `127.0.0.1:${port}/${service}`, user: user.toLowerCase() },
        async drop() {
          listener.accounts.delete(service);
          await h2.drop(service);
        },
      };
    },
  };
}

function realOracle(url: URL): TestOracle {
  const [host, port, service] = [url.hostname, Number(url.port || 1521), url.pathname.slice(1)];
  const connectString = `${host}:${port}/${service}`;
  const [admin, adminPassword] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  const asAdmin = async (...statements: string[]): Promise<void> => {
    const connection = await oracledb.getConnection({ user: admin, password: adminPassword, connectString });
    try {
      for (const sql of statements) await connection.execute(sql, [], {});
    } finally {
      await connection.close();
    }
  };
  return {
    listener: null,
    async addUser() {
      const { user, password } = randomUser();
      await asAdmin(
        `CREATE USER ${user} IDENTIFIED BY "${password}" QUOTA UNLIMITED ON USERS DEFAULT TABLESPACE USERS`,
        `GRANT CREATE SESSION, CREATE TABLE, CREATE VIEW, CREATE TRIGGER, CREATE SEQUENCE TO ${user}`,
      );
      const connection = await oracledb.getConnection({ user, password, connectString });
      return {
        user,
        password,
        host,
        port,
        service,
        query: (sql) => queryReal(connection, sql),
        place: { connect_string: connectString, user: user.toLowerCase() },
        async drop() {
          await connection.close();
          await asAdmin(`DROP USER ${user} CASCADE`);
        },
      };
    },
  };
}

async function queryReal(connection: Connection, sql: string): Promise<Record<string, Cell>[]> {
  const fetchTypeHandler = ({ dbTypeName }: { dbTypeName: string }) => ({
    type: ['BLOB', 'RAW'].includes(dbTypeName) ? oracledb.BUFFER : oracledb.STRING,
  });
  const { rows = [], metaData = [] } = await connection.execute(sql, [], {
    outFormat: oracledb.OUT_FORMAT_ARRAY,
    fetchTypeHandler,
    autoCommit: true,
  });
  return rows.map((row) => Object.fromEntries(metaData.map(({ name }, i) => [name, (row[i] ?? null) as Cell])));
}

function randomUser(): { user: string; password: string } {
  return {
    user: `U_${randomBytes(5).toString('hex').toUpperCase()}`,
    password: `Secret-${randomBytes(9).toString('hex')}`,
  };
}

import { randomBytes } from 'node:crypto';
import { createConnection } from 'mysql2/promise';
import type { Connection } from 'mysql2/promise';
import { startMysql } from '../../scripts/servers/mysql.ts';
import type { MysqlOptions, MysqlServer } from '../../scripts/servers/mysql.ts';
import { atFileEnd } from './file-end.ts';

/** Whether this run may leave MySQL out: only if told to. */
export const withoutMysql = process.env['REPLAY_TEST_WITHOUT_MYSQL'] === '1';
const flavour = process.env['REPLAY_TEST_MARIADB'] === '1' ? 'mariadb' : 'mysql';
/** A server given by its address is not ours to kill, fill or freeze. */
export const withoutOwnMysql = withoutMysql || Boolean(process.env['REPLAY_TEST_MYSQL_URL']);

export interface TestMysql {
  readonly host: string;
  readonly port: number;
  /** A user that may do everything. */
  readonly admin: { readonly user: string; readonly password: string };
  /** null: the server of REPLAY_TEST_MYSQL_URL, which is not ours to stop. */
  readonly server: MysqlServer | null;
}

let shared: Promise<TestMysql> | undefined;

/** The server of REPLAY_TEST_MYSQL_URL, or one of our own that all of this test file shares. */
export async function testMysql(): Promise<TestMysql> {
  shared ??= startShared();
  return await shared;
}

async function startShared(): Promise<TestMysql> {
  const url = process.env['REPLAY_TEST_MYSQL_URL'];
  return url ? fromUrl(url) : await ownMysql();
}

/** A server for faults, ended with the test file. */
export async function ownMysql(options: MysqlOptions = {}): Promise<TestMysql> {
  const server = await startMysql({ flavour, say: (line) => process.stderr.write(`${line}\n`), ...options });
  atFileEnd(() => server.stop());
  return { host: '127.0.0.1', port: server.port, admin: { user: 'root', password: '' }, server };
}

function fromUrl(text: string): TestMysql {
  const url = new URL(text);
  const admin = { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) };
  return { host: url.hostname, port: Number(url.port || 3306), admin, server: null };
}

export type Cell = string | number | Buffer | null;

export interface TestDatabase {
  readonly database: string;
  readonly user: string;
  readonly password: string;
  /** Its user may do everything in the database. */
  readonly admin: Connection;
  query(sql: string): Promise<Record<string, Cell>[]>;
  /** Fields of a target. */
  readonly place: { readonly host: string; readonly port: number; readonly user: string; readonly database: string };
  drop(): Promise<void>;
}

/** A database and a user with a random password of their own. */
export async function addDatabase({ host, port, admin }: TestMysql): Promise<TestDatabase> {
  const suffix = randomBytes(5).toString('hex');
  const [database, user] = [`replay_${suffix}`, `u_${suffix}`];
  const password = `secret-${randomBytes(12).toString('hex')}`;
  const connection = await adminConnection({ host, port, admin });
  await connection.query(`CREATE DATABASE ${database}`);
  await connection.query(`CREATE USER ${user}@'%' IDENTIFIED BY '${password}'`);
  await connection.query(`GRANT ALL ON ${database}.* TO ${user}@'%'`);
  await connection.query(`USE ${database}`);
  return {
    database,
    user,
    password,
    admin: connection,
    query: async (sql) => (await connection.query(sql))[0] as Record<string, Cell>[],
    place: { host, port, user, database },
    async drop() {
      await connection.query(`DROP DATABASE IF EXISTS ${database}`);
      await connection.query(`DROP USER IF EXISTS ${user}@'%'`);
      await connection.end();
    },
  };
}

export async function adminConnection({ host, port, admin }: Omit<TestMysql, 'server'>): Promise<Connection> {
  const connection = await createConnection({
    host,
    port,
    ...admin,
    charset: 'utf8mb4_bin',
    supportBigNumbers: true,
    dateStrings: true,
    jsonStrings: true,
  });
  connection.on('error', () => undefined);
  return connection;
}

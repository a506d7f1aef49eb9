import { randomUUID } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { fetchUnpacked, unpackedCommand, type Unpacked } from './debian.ts';
import { findFreePorts, loopback } from './ports.ts';
import { launch, startAndWait } from './ready.ts';
import { runProgram } from './run-program.ts';
import { type Say, ServerSetupError } from './setup-error.ts';

const mysqlPackage: Unpacked = {
  packageNames: ['mysql-server-core'],
  release: 'sid',
  folder: 'mysql-server',
  program: 'usr/sbin/mysqld',
};
const mariadbPackage: Unpacked = {
  packageNames: ['mariadb-server-core'],
  release: 'sid',
  folder: 'mariadb-server',
  program: 'usr/sbin/mariadbd',
};
/** What mariadb-install-db reads, in its order. */
const mariadbTables = [
  'mariadb_system_tables.sql',
  'mariadb_performance_tables.sql',
  'mariadb_system_tables_data.sql',
  'maria_add_gis_sp_bootstrap.sql',
];
const initializeMs = 120_000;
const readyMs = 60_000;
const answerMs = 2_000;

export type MysqlFlavour = 'mysql' | 'mariadb';

export interface MysqlOptions {
  /** `mysql` unless given. */
  readonly flavour?: MysqlFlavour;
  /** Further options of mysqld, such as `--max-allowed-packet=1M`. */
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly say?: Say;
}

export interface MysqlServer {
  /** mysql://root@127.0.0.1:PORT, without a password: it listens on the loopback address only. */
  readonly url: string;
  readonly port: number;
  readonly logFile: string;
  pid(): number | undefined;
  /** SIGKILL; the data stay. */
  kill(): Promise<void>;
  /** After kill: the same port and data. When it still runs it is stopped first. */
  restart(): Promise<void>;
  /** SIGSTOP, SIGCONT: a server that is there but does not answer. */
  signal(signal: NodeJS.Signals): void;
  /** For good; its folder is removed. */
  stop(): Promise<void>;
}

/** A MySQL server of our own on the loopback address, for tests and benches. Throws ServerSetupError. */
export async function startMysql(options: MysqlOptions = {}): Promise<MysqlServer> {
  const flavour = options.flavour ?? 'mysql';
  const unpacked = flavour === 'mysql' ? mysqlPackage : mariadbPackage;
  const root = await locate(unpacked, options.env ?? process.env, options.say ?? ignore);
  const { command, args } = unpackedCommand(root, unpacked.program);
  const user = process.getuid?.() === 0 ? ['--user=root'] : [];
  const { server, facts } = await launch('mysqld', true, async (folder, open) => {
    const [port] = await findFreePorts(1);
    const dataDir = join(folder, 'data');
    const logFile = join(folder, 'mysqld.log');
    const common = [...args, '--no-defaults', ...user, `--basedir=${join(root, 'usr')}`, `--datadir=${dataDir}`];
    await (flavour === 'mysql' ? initialize(command, common) : bootstrap(command, common, { root, dataDir }));
    const opened = open(logFile);
    const name = `durable-replay-${randomUUID()}`;
    const start = () =>
      startAndWait(
        opened,
        {
          command,
          args: [
            ...common,
            `--port=${port}`,
            `--bind-address=${loopback}`,
            // The path of a Unix socket is limited to about 100 bytes.
            '--socket=m.sock',
            `--pid-file=${join(folder, 'mysqld.pid')}`,
            ...(flavour === 'mysql' ? ['--secure-file-priv=NULL', '--mysqlx=OFF'] : []),
            `--report-host=${name}`,
            ...(options.args ?? []),
          ],
        },
        { name: 'mysqld', limitMs: readyMs, answers: () => answers(port!, name) },
      );
    await start();
    return { server: opened, facts: { port: port!, logFile, start } };
  });
  return {
    url: `mysql://root@${loopback}:${facts.port}`,
    port: facts.port,
    logFile: facts.logFile,
    pid: () => server.pid(),
    kill: () => server.kill('SIGKILL'),
    async restart() {
      await server.kill('SIGTERM');
      await facts.start();
    },
    signal: (signal) => server.signal(signal),
    stop: () => server.end(),
  };
}

async function initialize(command: string, args: readonly string[]): Promise<void> {
  const initialized = await runProgram(command, [...args, '--initialize-insecure'], initializeMs);
  if (initialized.status === 0) return;
  throw new ServerSetupError(`mysqld could not make its data folder:\n${initialized.stderr.trim().slice(-2_000)}`);
}

/** As mariadb-install-db, which is a shell script that wants a whole installation around it. One statement a line. */
async function bootstrap(
  command: string,
  args: readonly string[],
  { root, dataDir }: { readonly root: string; readonly dataDir: string },
): Promise<void> {
  await mkdir(dataDir);
  const begin = ['create database mysql;', 'use mysql;', 'set @auth_root_socket=NULL;', 'set @skip_auth_anonymous=1;'];
  const files = mariadbTables.map((name) => readFile(join(root, 'usr/share/mariadb', name), 'utf8'));
  const statements = [...begin, 'set @current_hostname="localhost";', ...(await Promise.all(files))].join('\n');
  const initialized = await runProgram(command, [...args, '--bootstrap'], initializeMs, {}, { input: statements });
  if (initialized.status === 0) return;
  throw new ServerSetupError(`mariadbd could not make its data folder:\n${initialized.stderr.trim().slice(-2_000)}`);
}

async function locate(unpacked: Unpacked, env: NodeJS.ProcessEnv, say: Say): Promise<string> {
  const fetched = await fetchUnpacked(unpacked, env, say);
  if (fetched.ok) return fetched.path;
  throw new ServerSetupError(
    `A MySQL server is needed: ${fetched.reason}.\n` +
      'Set REPLAY_TEST_MYSQL_URL to one whose user may create databases and users (mysql://root:PASSWORD@127.0.0.1:3306), ' +
      'or set REPLAY_TEST_WITHOUT_MYSQL=1 to leave out the tests that need it.',
  );
}

/** The name that we gave it proves that it is ours and not another server on the same port. */
async function answers(port: number, name: string): Promise<boolean> {
  try {
    const connection = await createConnection({ host: loopback, port, user: 'root', connectTimeout: answerMs });
    try {
      const [rows] = await connection.query({ sql: 'SELECT @@report_host AS name', timeout: answerMs });
      return (rows as { name: string }[])[0]?.name === name;
    } finally {
      connection.destroy();
    }
  } catch {
    return false;
  }
}

function ignore(): void {}

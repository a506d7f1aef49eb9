import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fetchUnpacked, unpackedCommand, type Unpacked } from './debian.ts';
import { findFreePorts, loopback } from './ports.ts';
import { launch, startAndWait } from './ready.ts';
import { type Say, ServerSetupError } from './setup-error.ts';

/** From the stable release: its names stay, and its loader stands where `unpackedCommand` looks. */
const h2Package: Unpacked = {
  packageNames: ['openjdk-21-jre-headless', 'libh2-java'],
  release: 'trixie',
  folder: 'h2',
  program:
    process.arch === 'arm64' ? 'usr/lib/jvm/java-21-openjdk-arm64/bin/java' : 'usr/lib/jvm/java-21-openjdk-amd64/bin/java',
};
const archive = 'usr/share/java/h2.jar';
const readyMs = 60_000;
const answerMs = 2_000;

export interface H2Options {
  /** Program that opens a port, in one file of Java source; its arguments are the port and a name to answer HELLO with. */
  readonly source: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly say?: Say;
}

export interface H2Server {
  readonly port: number;
  stop(): Promise<void>;
}

/** A Java program with the H2 database on the loopback address, for tests. Throws ServerSetupError. */
export async function startH2({ source, env = process.env, say = () => undefined }: H2Options): Promise<H2Server> {
  const root = await locateH2(env, say);
  const { command, args } = unpackedCommand(root, h2Package.program);
  const { server, facts } = await launch('h2', true, async (folder, open) => {
    const [port] = await findFreePorts(1);
    const name = `durable-replay-${randomUUID()}`;
    const opened = open(join(folder, 'h2.log'));
    const limits = ['-Xmx1g', '-Xss64m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
    const program = [...args, ...limits, '-cp', join(root, archive), source, String(port), name];
    const start = { name: 'The H2 database', limitMs: readyMs, answers: () => answers(port!, name) };
    await startAndWait(opened, { command, args: program }, start);
    return { server: opened, facts: { port: port! } };
  });
  return { port: facts.port, stop: () => server.end() };
}

async function locateH2(env: NodeJS.ProcessEnv, say: Say): Promise<string> {
  const fetched = await fetchUnpacked(h2Package, env, say);
  if (fetched.ok) return fetched.path;
  throw new ServerSetupError(
    `The H2 database and a Java to run it are needed, to stand in for Oracle Database: ${fetched.reason}.\n` +
      'Set REPLAY_TEST_ORACLE_URL to an Oracle Database whose user may create users (oracle://system:PASSWORD@127.0.0.1:1521/FREEPDB1), ' +
      'or set REPLAY_TEST_WITHOUT_ORACLE=1 to leave out the tests that need it.',
  );
}

/** The name that we gave it proves that it is ours and not another server on the same port. */
function answers(port: number, name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, loopback);
    const end = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket.setTimeout(answerMs, () => end(false));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
    socket.on('connect', () => socket.write('HELLO\n'));
    socket.on('data', (answer) => end(answer.toString().trim() === name));
  });
}

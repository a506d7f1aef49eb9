import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, cp, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { runProgram } from '../../scripts/servers/run-program.ts';
import { tempDir } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { connectTestNats } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll } from '../support/streams.ts';
import { replayEnvironment } from '../support/worker.ts';

/** A sink of the example, installed. */
const sinkPackage = 'durable-replay-sqlite';
const projectFolder = fileURLToPath(new URL('../..', import.meta.url));
const buildMsMax = 240_000;
const commandMsMax = 120_000;

const command = join(projectFolder, 'dist/client/main.js');

beforeAll(async () => {
  await runWell(process.execPath, ['scripts/bootstrap.mjs', 'scripts/build.ts'], projectFolder);
}, buildMsMax);

/** The `bin` of the package, as a user has it: plain node, no bundler, evidence of the sinks on board. */
test('the built command and worker replay under plain node', async () => {
  const library = "import { connectTopics } from 'durable-replay/topics'; console.log(typeof connectTopics)";
  const imported = await runProgram(process.execPath, ['--input-type=module', '--eval', library], commandMsMax);
  expect(imported).toMatchObject({ status: 0, stdout: 'function\n' });
  const folder = await tempDir();
  const replay = await replayInto(folder, { type: 'file', directory: 'built' });
  expect(replay).toMatchObject({ status: 0 });
  expect((JSON.parse(replay.stdout) as Report).counts).toMatchObject({ written: 500, acked: 500 });
  expect(await readRecords(join(folder, 'data/built'))).toHaveLength(500);
}, 360_000);

/** examples/sqlite-sink as somebody else would build, pack and install it. */
describe('a sink of an installed package', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await installSqliteSink();
  }, buildMsMax);

  test('is replayed into', async () => {
    const replay = await replayInto(folder, { type: 'sqlite', file: 'orders.db' }, sinkPackage);
    expect(replay).toMatchObject({ status: 0 });
    expect((JSON.parse(replay.stdout) as Report).counts).toMatchObject({ written: 500, acked: 500 });
    const database = new Database(join(folder, 'data/orders.db'), { readonly: true });
    expect(database.prepare('SELECT count(*), min(sequence), max(sequence) FROM records').raw().get()).toEqual([500, 1, 500]);
    database.close();
  }, 360_000);

  test('is refused without its evidence', async () => {
    await rm(join(folder, 'data'), { recursive: true, force: true });
    await rm(join(folder, 'node_modules', sinkPackage, 'dist/certification.json'));
    const replay = await replayInto(folder, { type: 'sqlite', file: 'orders.db' }, sinkPackage);
    expect(replay).toMatchObject({ status: 2 });
    expect(replay.stderr).toContain('the sink "sqlite" has no certification for its mode "default"');
    expect(await readdir(join(folder, 'data'))).toEqual([]);
  }, 360_000);

  test('is unknown where nobody names its package, and a package that is nowhere is refused', async () => {
    await writeFile(join(folder, 'plan.json'), JSON.stringify(planOf('ORDERS', 'orders')));
    await writeFile(join(folder, 'target.json'), JSON.stringify({ sink: { type: 'sqlite', file: 'orders.db' } }));
    const check = (sinks: string) =>
      runProgram(
        process.execPath,
        [command, 'check', 'plan.json', 'target.json'],
        commandMsMax,
        { REPLAY_SINKS: sinks },
        { cwd: folder },
      );
    const unknown = await check('');
    expect(unknown).toMatchObject({ status: 2 });
    expect(unknown.stderr).toContain('got "sqlite"; a package that brings it is named in REPLAY_SINKS');
    expect(await check(sinkPackage)).toMatchObject({ status: 0 });
    const missing = await check('durable-replay-nowhere');
    expect(missing).toMatchObject({ status: 2 });
    expect(missing.stderr).toContain('no package "durable-replay-nowhere"; install it where this runs');
  });
});

/** Returns what it wrote to standard output. */
async function runWell(program: string, args: readonly string[], cwd: string): Promise<string> {
  const { status, stdout, stderr } = await runProgram(program, args, buildMsMax, {}, { cwd });
  if (status !== 0) throw new Error(`${program} ended with ${status}:\n${stdout}\n${stderr}`);
  return stdout;
}

/** 500 messages, by a worker and a command that run in this folder. */
async function replayInto(folder: string, sink: object, packages = '') {
  const dataRoot = join(folder, 'data');
  await mkdir(dataRoot, { recursive: true });
  const env = { ...replayEnvironment(), REPLAY_DATA_ROOT: dataRoot, REPLAY_METRICS_ADDRESS: 'off', REPLAY_SINKS: packages };
  const worker = spawn(process.execPath, [command, 'worker'], { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(worker, 'exit');
  try {
    const nats = await connectTestNats();
    const stream = await addStream(await nats.jetstreamManager());
    await publishAll(nats, mixedMessages(stream.prefix, 500));
    await writeFile(join(folder, 'plan.json'), JSON.stringify(planOf(stream.name, stream.prefix)));
    await writeFile(join(folder, 'target.json'), JSON.stringify({ sink }));
    return await runProgram(process.execPath, [command, 'plan.json', 'target.json', '--execute', '--json'], commandMsMax, env, {
      cwd: folder,
    });
  } finally {
    worker.kill('SIGKILL');
    await ended;
  }
}

/** Returns a folder with node_modules as `npm install` makes it: the packed sink, and beside it what it depends on. */
async function installSqliteSink(): Promise<string> {
  const folder = await tempDir();
  const [source, modules] = [join(folder, 'source'), join(folder, 'node_modules')];
  await cp(join(projectFolder, 'examples/sqlite-sink'), source, { recursive: true });
  await mkdir(join(modules, '@types'), { recursive: true });
  await symlink(projectFolder, join(modules, 'durable-replay'));
  for (const name of ['zod', 'libsql', '@types/node']) {
    await symlink(join(projectFolder, 'node_modules', name), join(modules, name));
  }
  await runWell(process.execPath, [join(projectFolder, 'node_modules/typescript/bin/tsc')], source);
  await copyFile(join(source, 'certification.json'), join(source, 'dist/certification.json'));
  const archive = (await runWell('npm', ['pack', '--ignore-scripts', '--silent'], source)).trim();
  const installed = join(modules, sinkPackage);
  await mkdir(installed);
  await runWell('tar', ['-xzf', join(source, archive), '-C', installed, '--strip-components=1'], source);
  await rm(source, { recursive: true });
  return folder;
}

function planOf(stream: string, prefix: string): object {
  return {
    replay: {
      stream,
      subject_filter: `${prefix}.>`,
      durable_consumer: 'built',
      start_sequence: 1,
      end_sequence: 500,
      max_messages: 500,
    },
  };
}

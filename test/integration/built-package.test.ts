import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Report } from '../../core/report.ts';
import { runProgram } from '../../scripts/servers/run-program.ts';
import { atFileEnd, tempDir } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { connectTestNats } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll } from '../support/streams.ts';
import { replayEnvironment } from '../support/worker.ts';

const projectFolder = fileURLToPath(new URL('../..', import.meta.url));
const buildMsMax = 240_000;
const replayMsMax = 60_000;

/** The `bin` of the package, as a user has it: plain node, no bundler, evidence of the sinks on board. */
test('the built command and worker replay under plain node', async () => {
  const built = await runProgram(process.execPath, ['scripts/bootstrap.mjs', 'scripts/build.ts'], buildMsMax);
  expect(built).toMatchObject({ status: 0 });
  const library = "import { connectTopics } from 'durable-replay/topics'; console.log(typeof connectTopics)";
  const imported = await runProgram(process.execPath, ['--input-type=module', '--eval', library], replayMsMax);
  expect(imported).toMatchObject({ status: 0, stdout: 'function\n' });
  const folder = await tempDir();
  const env = { ...replayEnvironment(), REPLAY_DATA_ROOT: join(folder, 'data'), REPLAY_METRICS_ADDRESS: 'off' };
  const command = join(projectFolder, 'dist/client/main.js');
  const worker = spawn(process.execPath, [command, 'worker'], { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(worker, 'exit');
  atFileEnd(async () => {
    worker.kill('SIGKILL');
    await ended;
  });

  const nats = await connectTestNats();
  const stream = await addStream(await nats.jetstreamManager());
  await publishAll(nats, mixedMessages(stream.prefix, 500));
  const plan = {
    replay: {
      stream: stream.name,
      subject_filter: `${stream.prefix}.>`,
      durable_consumer: 'built',
      start_sequence: 1,
      end_sequence: 500,
      max_messages: 500,
    },
  };
  await writeFile(join(folder, 'plan.json'), JSON.stringify(plan));
  await writeFile(join(folder, 'target.json'), JSON.stringify({ sink: { type: 'file', directory: 'built' } }));
  const args = [command, join(folder, 'plan.json'), join(folder, 'target.json'), '--execute', '--json'];
  const replay = await runProgram(process.execPath, args, replayMsMax, env);
  expect(replay).toMatchObject({ status: 0 });
  expect((JSON.parse(replay.stdout) as Report).counts).toMatchObject({ written: 500, acked: 500 });
  expect(await readRecords(join(folder, 'data/built'))).toHaveLength(500);
}, 360_000);

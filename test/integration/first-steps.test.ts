import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { basename, delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { codeBlocks, textsOf } from '../support/code-blocks.ts';
import { atFileEnd, tempDir } from '../support/file-end.ts';
import { readRecords } from '../support/records.ts';
import { connectTestNats, natsUrl, temporalAddress } from '../support/servers.ts';
import { addStream, mixedMessages, publishAll } from '../support/streams.ts';

const projectFolder = fileURLToPath(new URL('../..', import.meta.url));
/** What a clone lacks, and the packages, which the tests have installed already. */
const notCloned = ['node_modules', 'dist', '.git', '.cache', 'data', 'reports', 'demo-data', '.durable-replay'];
const commandsMax = 5;

test('the commands of the README lead from a clone to a finished replay on servers that run already', async () => {
  const blocks = codeBlocks(sectionOf(await readFile(join(projectFolder, 'README.md'), 'utf8'), 'Your own stream'));
  const script = textsOf(blocks, 'sh').join('');
  expect(script.trim().split('\n').length).toBeLessThanOrEqual(commandsMax);
  expect(script).not.toMatch(/&&|;|\|/);

  const nats = await connectTestNats();
  const stream = await addStream(await nats.jetstreamManager());
  await publishAll(nats, mixedMessages(stream.prefix, 300));
  const folder = await cloneWithPackages();
  for (const name of ['plan.json', 'target.json']) {
    const [text] = textsOf(blocks, `json ${name}`);
    await writeFile(
      join(folder, name),
      text!.replaceAll('"ORDERS"', `"${stream.name}"`).replaceAll('"orders.', `"${stream.prefix}.`),
    );
  }
  const here = script.replace('nats://127.0.0.1:4222', natsUrl()).replace('127.0.0.1:7233', temporalAddress());
  expect(here).toContain(natsUrl());
  expect(here).toContain(temporalAddress());

  const { status, output } = await runInShell(here, folder);
  expect({ status, output }).toMatchObject({ status: 0 });
  expect(output).toContain('orders-replay-2026-05: completed');
  expect(output).toMatch(/written 200, duplicate 0, rejected 0/);
  expect(await readRecords(join(folder, 'data/orders'))).toHaveLength(200);
}, 600_000);

async function cloneWithPackages(): Promise<string> {
  const folder = join(await tempDir(), 'durable-replay');
  await cp(projectFolder, folder, { recursive: true, filter: (path) => !notCloned.includes(basename(path)) });
  await symlink(join(projectFolder, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** Line by line up to the first that fails, in one shell, with a place of its own for commands that are linked. */
async function runInShell(script: string, cwd: string) {
  const prefix = await tempDir();
  const env = {
    ...process.env,
    npm_config_prefix: prefix,
    PATH: [join(prefix, 'bin'), process.env['PATH']].join(delimiter),
    REPLAY_METRICS_ADDRESS: 'off',
  };
  // A group of its own, so that the worker in its background ends with it.
  const shell = spawn('sh', ['-e'], { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  const ended = once(shell, 'exit') as Promise<[number | null]>;
  const endAll = async (): Promise<void> => {
    try {
      process.kill(-shell.pid!, 'SIGKILL');
    } catch {
      // All of them have ended.
    }
    await ended;
  };
  atFileEnd(endAll);
  let output = '';
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  shell.stdin.end(script);
  const [status] = await ended;
  await endAll();
  return { status, output };
}

function sectionOf(markdown: string, title: string): string {
  const [, section] = markdown.split(`\n## ${title}\n`);
  if (section === undefined) throw new Error(`no section ${title}`);
  return section.split('\n## ')[0]!;
}

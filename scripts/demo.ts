import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect, type JetStreamManager } from 'nats';
import type { Report } from '../core/report.ts';
import { shopEvents } from './demo/events.ts';
import { startServers, type Servers } from './servers/servers.ts';
import { ServerSetupError } from './servers/setup-error.ts';

/** `npm run demo`: real servers, a stream of a shop's events, a dry run, a replay into files, and a report that adds up. */

const projectFolder = fileURLToPath(new URL('..', import.meta.url));
const demoFolder = join(projectFolder, 'demo-data');
const replayStreamCommand = ['--import', 'tsx', join(projectFolder, 'client/main.ts')];
const holdFile = join(demoFolder, '.process');
const eventsTotal = 50_000;
const eventsOversized = 7;
const workerReadyMsMax = 60_000;

const plan = {
  replay: {
    stream: 'SHOP',
    subject_filters: ['orders.created', 'orders.updated', 'payments.*'],
    durable_consumer: 'shop-replay',
    start_sequence: 1,
    end_sequence: eventsTotal,
    max_messages: 100_000,
    dry_run: true,
    report_file: 'shop-replay-report.json',
  },
};
const target = {
  sink: { type: 'file', directory: 'shop', max_record_bytes: 16_384 },
  idempotency: { key: 'stream_sequence' },
  dead_letter: { subject: 'dlq.shop' },
};

class DemoError extends Error {}

const stopping = new AbortController();
const streamsAdded: string[] = [];
let worker: ChildProcess | undefined;
let servers: Servers | undefined;

process.once('SIGINT', () => stopping.abort());
process.once('SIGTERM', () => stopping.abort());

try {
  process.exitCode = await demo(process.argv.includes('--keep'));
} catch (error) {
  if (!stopping.signal.aborted)
    say(error instanceof ServerSetupError || error instanceof DemoError ? error.message : String(error));
  process.exitCode = 1;
} finally {
  await stopWorker();
  await removeStreams();
  await servers?.stop();
}

async function demo(keep: boolean): Promise<number> {
  const began = performance.now();
  heading('1. A Temporal server with its UI, and a NATS server with JetStream');
  await holdFolder();
  if (process.env['NATS_URL']) say('NATS_URL is set: the demo uses that server, and deletes its two streams there at its end.');
  if (process.env['TEMPORAL_ADDRESS']) say('TEMPORAL_ADDRESS is set: the demo uses that server.');
  servers = await startServers({ say });
  say(`Temporal ${servers.temporalAddress}${servers.uiUrl === null ? '' : `, UI ${servers.uiUrl}`}; NATS ${servers.natsUrl}`);

  heading(`2. A stream SHOP with ${eventsTotal.toLocaleString('en')} events, and a stream DLQ for dead letters`);
  await prepareFolder();
  await fillStream(servers.natsUrl);

  heading('3. A worker, and a dry run: what would be replayed? It creates nothing');
  await startWorker(servers);
  await replayStream(['demo-data/plan.json', 'demo-data/target.json']);

  heading('4. The replay itself');
  const status = await replayStream(['demo-data/plan.json', 'demo-data/target.json', '--execute']);
  if (status !== 3) throw new DemoError(`the replay ended with exit status ${status}; 3 (done, with rejects) was expected`);

  heading('5. Do the counts add up?');
  await verify(servers.natsUrl);
  heading(`Done in ${Math.round((performance.now() - began) / 1_000)} s. What next?`);
  await showNext(servers, keep);
  return 0;
}

/** Two demos in one folder would spoil each other's counts. */
async function holdFolder(): Promise<void> {
  await mkdir(demoFolder, { recursive: true });
  const other = Number(await readFile(holdFile, 'utf8').catch(() => '0'));
  if (other !== 0 && other !== process.pid && isAlive(other)) {
    throw new DemoError(`another demo runs in this folder (process ${other}); end it first, or clone the project once more`);
  }
  await writeFile(holdFile, String(process.pid));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function prepareFolder(): Promise<void> {
  for (const name of await readdir(demoFolder)) {
    if (join(demoFolder, name) !== holdFile) await rm(join(demoFolder, name), { recursive: true });
  }
  await writeFile(join(demoFolder, 'plan.json'), `${JSON.stringify(plan, null, 2)}\n`);
  await writeFile(join(demoFolder, 'target.json'), `${JSON.stringify(target, null, 2)}\n`);
}

async function fillStream(natsUrl: string): Promise<void> {
  const connection = await connect({ servers: natsUrl });
  try {
    const manager = await connection.jetstreamManager();
    await addStreams(manager);
    const stream = connection.jetstream();
    let pending: Promise<unknown>[] = [];
    for (const event of shopEvents(eventsTotal, eventsOversized)) {
      pending.push(stream.publish(event.subject, event.body, { headers: event.headers }));
      if (pending.length === 500) {
        await Promise.all(pending);
        pending = [];
      }
    }
    await Promise.all(pending);
    const { state } = await manager.streams.info('SHOP', { subjects_filter: '>' });
    for (const [subject, count] of Object.entries(state.subjects ?? {})) say(`  ${subject.padEnd(20)} ${count}`);
  } finally {
    await connection.close();
  }
}

/** In a NATS server of the environment, what is there already is never touched. */
async function addStreams(manager: JetStreamManager): Promise<void> {
  for (const [name, subjects] of [
    ['SHOP', ['orders.>', 'payments.>', 'carts.>']],
    ['DLQ', ['dlq.>']],
  ] as const) {
    const config = { name, subjects: [...subjects], allow_direct: true, duplicate_window: 3_600_000_000_000 };
    const taken = await manager.streams.info(name).catch(() => null);
    const added = taken === null && (await manager.streams.add(config).catch(() => null));
    if (!added) {
      throw new DemoError(
        `the NATS server of NATS_URL already has a stream ${name}, or one with subjects of ${subjects.join(', ')}; unset NATS_URL, and the demo starts a server of its own`,
      );
    }
    streamsAdded.push(name);
  }
}

/** Our own server goes away with its streams; another's is left as it was found. */
async function removeStreams(): Promise<void> {
  if (servers === undefined || servers.nats !== null || streamsAdded.length === 0) return;
  const connection = await connect({ servers: servers.natsUrl });
  const manager = await connection.jetstreamManager();
  for (const name of streamsAdded) await manager.streams.delete(name);
  await connection.close();
}

function environment(running: Servers): NodeJS.ProcessEnv {
  return {
    ...process.env,
    NATS_URL: running.natsUrl,
    TEMPORAL_ADDRESS: running.temporalAddress,
    REPLAY_DATA_ROOT: join(demoFolder, 'data'),
    REPLAY_REPORT_ROOT: join(demoFolder, 'reports'),
    REPLAY_METRICS_ADDRESS: 'off',
    REPLAY_LOG_LEVEL: 'info',
  };
}

async function startWorker(running: Servers): Promise<void> {
  say('$ replay-stream worker');
  const child = spawn(process.execPath, [...replayStreamCommand, 'worker'], {
    cwd: projectFolder,
    env: environment(running),
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  worker = child;
  let log = '';
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new DemoError(`the worker was not ready in time:\n${log}`)), workerReadyMsMax);
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString();
      if (log.includes('worker polls')) {
        clearTimeout(timer);
        resolve();
      }
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new DemoError(`the worker ended with ${code}:\n${log}`));
    });
  });
}

async function stopWorker(): Promise<void> {
  if (worker === undefined || worker.exitCode !== null || worker.signalCode !== null) return;
  const ended = new Promise((resolve) => worker!.once('exit', resolve));
  worker.kill('SIGTERM');
  await ended;
}

async function replayStream(args: readonly string[]): Promise<number> {
  stopping.signal.throwIfAborted();
  say(`$ replay-stream ${args.join(' ')}`);
  const child = spawn(process.execPath, [...replayStreamCommand, ...args], {
    cwd: projectFolder,
    env: environment(servers!),
    stdio: 'inherit',
  });
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** Counts the lines on disk and the dead letters in the stream, and holds the report against them. */
async function verify(natsUrl: string): Promise<void> {
  const report = JSON.parse(await readFile(join(demoFolder, 'reports/shop-replay-report.json'), 'utf8')) as Report;
  const { counts, range } = report;
  const lines = await countLines(join(demoFolder, 'data/shop'));
  const letters = await countMessages(natsUrl, 'DLQ');
  const checks: readonly (readonly [string, number, number])[] = [
    ['messages in the range = pulled', range.count, counts.pulled],
    ['pulled = written + rejected', counts.pulled, counts.written + counts.rejected],
    ['written = lines in the files', counts.written, lines],
    ['rejected = dead letters in DLQ', counts.rejected, letters],
    ['acknowledged = pulled', counts.acked, counts.pulled],
  ];
  for (const [what, left, right] of checks) say(`  ${left === right ? '✓' : '✗'} ${what.padEnd(34)} ${left} = ${right}`);
  if (checks.some(([, left, right]) => left !== right)) throw new DemoError('the counts do not add up');
}

async function countLines(folder: string): Promise<number> {
  let lines = 0;
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.jsonl')) continue;
    for (const byte of await readFile(join(folder, name))) if (byte === 0x0a) lines++;
  }
  return lines;
}

async function countMessages(natsUrl: string, stream: string): Promise<number> {
  const connection = await connect({ servers: natsUrl });
  try {
    return (await (await connection.jetstreamManager()).streams.info(stream)).state.messages;
  } finally {
    await connection.close();
  }
}

async function showNext(running: Servers, keep: boolean): Promise<void> {
  say('The report:   demo-data/reports/shop-replay-report.json');
  say('The records:  demo-data/data/shop/ (JSON lines)');
  if (!keep) {
    say(
      `The servers stop now${running.uiUrl === null ? '' : ` (the UI was at ${running.uiUrl})`}. To look around in the UI: npm run demo -- --keep`,
    );
    say('To replay a stream of your own: see README.md, "Your own stream"');
    return;
  }
  say(`The UI:       ${running.uiUrl ?? 'of your own Temporal server'}`);
  say(`In another terminal: export NATS_URL=${running.natsUrl} TEMPORAL_ADDRESS=${running.temporalAddress}, and then`);
  say('  npx tsx client/main.ts list --all');
  say('  npx tsx client/main.ts demo-data/plan.json demo-data/target.json --execute    (all duplicates)');
  say('Ctrl-C stops the servers.');
  const held = setInterval(() => undefined, 60_000);
  await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve, { once: true }));
  clearInterval(held);
}

function heading(text: string): void {
  say(`\n${text}\n${'-'.repeat(Math.min(text.length, 100))}`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/**
 * Stands between us and one server. It holds a channel to the process that started it, and when that closes, for whatever
 * reason (end, crash, SIGKILL), it stops the server and removes its folders. It runs in a process group of its own, so that
 * Ctrl-C in the terminal does not reach the server before we have drained.
 *
 * Plain JavaScript, because it must run from the sources and from dist alike, under Node alone.
 * Argument: {"removeDirs": [path], "stopMs": n}. Messages in: start, signal, end. Messages out: started, failed, exited.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, rmSync } from 'node:fs';

const { removeDirs, stopMs } = JSON.parse(process.argv[2]);
let server;
let ending = false;

process.on('message', (message) => {
  if (message.kind === 'start') start(message);
  else if (message.kind === 'signal') server?.kill(message.signal);
  else if (message.kind === 'end') end();
});
process.on('disconnect', end);
process.on('SIGTERM', end);
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});
// The channel may have closed before the line above was reached.
if (!process.connected) end();

function start({ command, args, env, logFile }) {
  if (ending || server !== undefined) return;
  let log;
  try {
    log = openSync(logFile, 'a');
    server = spawn(command, args, { env, stdio: ['ignore', log, log] });
  } catch (error) {
    tell({ kind: 'failed', reason: error.message });
    return;
  } finally {
    if (log !== undefined) closeSync(log);
  }
  const started = server;
  started.on('spawn', () => tell({ kind: 'started', pid: started.pid }));
  started.on('error', (error) => {
    if (started.pid !== undefined) return;
    server = undefined;
    tell({ kind: 'failed', reason: error.message });
  });
  started.on('exit', (code, signal) => {
    server = undefined;
    tell({ kind: 'exited', code, signal });
    if (ending) leave();
  });
}

function end() {
  if (ending) return;
  ending = true;
  if (server?.pid === undefined) {
    leave();
    return;
  }
  server.kill('SIGTERM');
  setTimeout(() => server?.kill('SIGKILL'), stopMs);
}

function leave() {
  try {
    for (const folder of removeDirs) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  } finally {
    process.exit();
  }
}

function tell(message) {
  if (process.connected) process.send(message, () => {});
}

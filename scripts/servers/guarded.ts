import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ServerSetupError } from './setup-error.ts';

const stopMs = 3_000;
/** The guardian itself: to begin, or to be gone after the server had its time to stop. */
const guardianMs = 10_000;
const logLinesShown = 15;
const logCharactersShown = 4_000;

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** A server below its guardian (guardian.mjs): it never outlives this process. Standard output is never touched. */
export interface Guarded {
  /** Only while the server is not running. Throws ServerSetupError. */
  start(command: Command): Promise<void>;
  /** Signals the server and waits until it has exited. Nothing happens when it is not running. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Sends a signal that the server survives: SIGSTOP, SIGCONT, SIGHUP. */
  signal(signal: NodeJS.Signals): void;
  /** Stops the server, removes the folders, ends the guardian. May be called again. */
  end(): Promise<void>;
  isRunning(): boolean;
  pid(): number | undefined;
  logTail(): string;
}

type Report =
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'exited'; readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** `removeDirs` are removed when the server is ended or this process is gone. */
export function guard(name: string, logFile: string, removeDirs: readonly string[]): Guarded {
  const guardian = spawnGuardian(removeDirs);
  const waiting = new Set<() => void>();
  let pid: number | undefined;
  let failure: string | undefined;
  let gone = false;

  const changed = () => {
    for (const wake of waiting) wake();
  };
  guardian.on('message', (report: Report) => {
    pid = report.kind === 'started' ? report.pid : undefined;
    if (report.kind === 'failed') failure = report.reason;
    changed();
  });
  const onGone = () => {
    gone = true;
    // Only when somebody killed the guardian: nobody else would stop the server now.
    if (pid !== undefined) killQuietly(pid);
    pid = undefined;
    changed();
  };
  guardian.on('exit', onGone);
  guardian.on('error', onGone);

  const settled = (what: string, done: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      const finish = (error?: Error) => {
        clearTimeout(timer);
        waiting.delete(look);
        if (error === undefined) resolve();
        else reject(error);
      };
      const look = () => {
        if (done()) finish();
        else if (gone) finish(new ServerSetupError(`The guardian process of ${name} ended unexpectedly; start again.`));
      };
      const timer = setTimeout(
        () => finish(new ServerSetupError(`${name} ${what} took longer than ${guardianMs / 1000} s; end it by hand.`)),
        guardianMs,
      );
      waiting.add(look);
      look();
    });
  const startFailure = () => failure;
  const tell = (message: object) => {
    if (guardian.connected) guardian.send(message, () => {});
  };

  return {
    async start({ command, args }) {
      failure = undefined;
      tell({ kind: 'start', command, args, env: serverEnvironment(), logFile });
      await settled('starting', () => pid !== undefined || failure !== undefined);
      const reason = startFailure();
      if (reason !== undefined) throw new ServerSetupError(`${name} cannot be run: ${reason}`);
    },
    async kill(signal) {
      if (pid === undefined) return;
      tell({ kind: 'signal', signal });
      await settled('stopping', () => pid === undefined);
    },
    signal(signal) {
      tell({ kind: 'signal', signal });
    },
    async end() {
      if (gone) return;
      tell({ kind: 'end' });
      await settled('stopping', () => gone);
    },
    isRunning: () => pid !== undefined,
    pid: () => pid,
    logTail: () => tailOf(logFile),
  };
}

function spawnGuardian(removeDirs: readonly string[]): ChildProcess {
  const file = fileURLToPath(new URL('./guardian.mjs', import.meta.url));
  const guardian = spawn(process.execPath, [file, JSON.stringify({ removeDirs, stopMs })], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: serverEnvironment(),
  });
  // A program that has nothing else to do may end; its servers end with it.
  guardian.unref();
  guardian.channel?.unref();
  return guardian;
}

/** Servers need no secrets of ours, and settings of a client (TEMPORAL_*, NATS_*) must not change how they start. */
function serverEnvironment(): Record<string, string> {
  const names = ['PATH', 'HOME', 'USERPROFILE', 'TMPDIR', 'TEMP', 'TMP', 'SystemRoot', 'LANG', 'TZ'];
  const pairs = names.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(pairs.filter((pair): pair is readonly [string, string] => pair[1] !== undefined));
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It had ended by itself.
  }
}

function tailOf(file: string): string {
  try {
    const lines = readFileSync(file, 'utf8').trimEnd().slice(-logCharactersShown).split('\n');
    return lines.slice(-logLinesShown).join('\n');
  } catch {
    return '';
  }
}

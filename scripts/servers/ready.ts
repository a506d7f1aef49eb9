import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, guard, type Guarded } from './guarded.ts';
import { startAttemptsMax } from './ports.ts';
import { ServerSetupError } from './setup-error.ts';

const pollMs = 25;
const portTaken = /address already in use|can't set .* port/i;

/** A folder of its own for one server; its guardian removes it. */
function makeServerFolder(name: string): Promise<string> {
  return mkdtemp(join(tmpdir(), `durable-replay-${name}-`));
}

export interface ServerStart {
  readonly name: string;
  readonly limitMs: number;
  /** True once the server answers as it should, and is ours. */
  answers(): Promise<boolean>;
}

/** Starts the server and waits until it answers. Throws ServerSetupError with the last lines of its log. */
export async function startAndWait(server: Guarded, command: Command, start: ServerStart): Promise<void> {
  await server.start(command);
  const deadline = Date.now() + start.limitMs;
  while (server.isRunning() && Date.now() < deadline) {
    if (await start.answers()) return;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  const what = server.isRunning() ? `did not answer within ${start.limitMs / 1000} s` : 'ended while starting';
  await server.kill('SIGKILL');
  throw new StartError(start.name, what, server.logTail());
}

class StartError extends ServerSetupError {
  readonly portTaken: boolean;

  constructor(name: string, what: string, logTail: string) {
    const log = logTail === '' ? 'Its log is empty.' : `The end of its log:\n${logTail.replaceAll(/^/gm, '  | ')}`;
    super(`${name} ${what}. ${log}\nMend what the log says, then start again.`);
    this.name = 'StartError';
    this.portTaken = portTaken.test(logTail);
  }
}

export interface Launched<T> {
  readonly server: Guarded;
  readonly facts: T;
}

/**
 * Launches a server in a folder of its own. With `movable` ports a start that fails because another program was quicker is
 * tried again with others. When all fails, nothing is left behind.
 */
export async function launch<T>(
  name: string,
  movable: boolean,
  attempt: (folder: string, open: (logFile: string) => Guarded) => Promise<Launched<T>>,
): Promise<Launched<T>> {
  for (let count = 1; ; count++) {
    const folder = await makeServerFolder(name);
    let opened: Guarded | undefined;
    try {
      return await attempt(folder, (logFile) => (opened = guard(name, logFile, [folder])));
    } catch (error) {
      if (opened === undefined) await rm(folder, { recursive: true, force: true });
      else await opened.end();
      if (movable && count < startAttemptsMax && error instanceof StartError && error.portTaken) continue;
      throw error;
    }
  }
}

export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ServerSetupError(`The folder ${path} cannot be made (${code}): choose another one.`, { cause: error });
  }
}

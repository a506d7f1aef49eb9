import type { Client } from '@temporalio/client';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { formatFileProblems, readRequest, type RequestFiles } from '../files.ts';
import type { CheckedRequest } from '../request.ts';
import type { Terminal } from '../terminal.ts';

export interface ReplayOptions extends RequestFiles {
  readonly detach: boolean;
  readonly json: boolean;
  /** The verb that is spelled much like the plan file, if any. */
  readonly meantVerb: string | null;
}

/** Starts a plan and, unless detached, stays with it. Nothing is sent to Temporal when anything is wrong. */
export async function replay(options: ReplayOptions, terminal: Terminal): Promise<ExitStatus> {
  const reading = await readRequest(options, Date.now());
  if (!reading.ok) {
    terminal.err(formatFileProblems(reading.problems));
    if (options.json) tellRefusal(terminal, reading.problems);
    if (options.meantVerb !== null) terminal.err(`Or did you mean the verb: replay-stream ${options.meantVerb}`);
    return exitStatus('refused');
  }
  // Loaded late: a refused plan needs no client of Temporal.
  const { withTemporal } = await import('../connect.ts');
  return await withTemporal((client) => startAndStay(client, reading.value, { options, terminal }));
}

/** With --json a script finds one object on standard output, whatever happens. */
function tellRefusal(terminal: Terminal, problems: readonly object[]): void {
  terminal.out(JSON.stringify({ state: 'refused', problems }, null, 2));
}

interface Use {
  readonly options: ReplayOptions;
  readonly terminal: Terminal;
}

async function startAndStay(client: Client, checked: CheckedRequest, { options, terminal }: Use): Promise<ExitStatus> {
  const { AlreadyRunning, RequestRefused, startReplay } = await import('../replays.ts');
  let started;
  try {
    started = await startReplay(client, checked.request);
  } catch (error) {
    if (!(error instanceof AlreadyRunning || error instanceof RequestRefused)) throw error;
    terminal.err(error.message);
    if (options.json) tellRefusal(terminal, [{ path: '', message: error.message }]);
    return exitStatus('refused');
  }
  if (options.detach) {
    const { outJson } = await import('../terminal.ts');
    if (options.json) outJson(terminal, { workflow_id: started.id, run_id: started.runId });
    else terminal.out(`Started ${started.id}\n  follow it: replay-stream status ${started.id} --follow`);
    return exitStatus('done');
  }
  terminal.err(`${checked.plan.dry_run ? 'Dry run' : 'Replay'} ${started.id} started.`);
  const { attend } = await import('../attend.ts');
  return await attend({ client, handle: started, terminal, json: options.json });
}

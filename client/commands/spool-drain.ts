import type { Client } from '@temporalio/client';
import type { DrainRequest } from '../../core/drain.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { formatFileProblems, readTarget } from '../files.ts';
import { outJson, type Terminal } from '../terminal.ts';

export interface DrainOptions {
  readonly spoolFile: string;
  readonly targetFile: string;
  readonly dryRun: boolean;
  readonly maxRejects: number | null;
  readonly reportFile: string | null;
  readonly detach: boolean;
  readonly json: boolean;
}

/** Starts the drain of a spool and, unless detached, stays with it. Nothing is sent to Temporal when anything is wrong. */
export async function drain(options: DrainOptions, terminal: Terminal): Promise<ExitStatus> {
  const [spool, target] = [await readTarget(options.spoolFile), await readTarget(options.targetFile)];
  if (!spool.ok || !target.ok) {
    const problems = [...(spool.ok ? [] : spool.problems), ...(target.ok ? [] : target.problems)];
    return refuse(formatFileProblems(problems), problems, { options, terminal });
  }
  const { dryRun, maxRejects, reportFile } = options;
  const request: DrainRequest = {
    spool: spool.value.document,
    target: target.value.document,
    drain: { dry_run: dryRun, ...(maxRejects === null ? {} : { max_rejects: maxRejects }), report_file: reportFile },
  };
  const directory = spool.value.parsed?.sink['directory'];
  const name = typeof directory === 'string' ? directory : options.spoolFile;
  const { withTemporal } = await import('../connect.ts');
  return await withTemporal((client) => startAndStay(client, { request, name }, { options, terminal }));
}

interface Use {
  readonly options: DrainOptions;
  readonly terminal: Terminal;
}

/** With --json a script finds one object on standard output, whatever happens. */
function refuse(message: string, problems: readonly object[], { options, terminal }: Use): ExitStatus {
  terminal.err(message);
  if (options.json) outJson(terminal, { state: 'refused', problems });
  return exitStatus('refused');
}

async function startAndStay(
  client: Client,
  { request, name }: { readonly request: DrainRequest; readonly name: string },
  use: Use,
): Promise<ExitStatus> {
  const { options, terminal } = use;
  const { AlreadyRunning, startDrain } = await import('../replays.ts');
  let started;
  try {
    started = await startDrain(client, request, { name, dryRun: options.dryRun });
  } catch (error) {
    if (!(error instanceof AlreadyRunning)) throw error;
    return refuse(error.message, [{ path: '', message: error.message }], use);
  }
  if (options.detach) {
    if (options.json) outJson(terminal, { workflow_id: started.id, run_id: started.runId });
    else terminal.out(`Started ${started.id}\n  follow it: replay-stream status ${started.id} --follow`);
    return exitStatus('done');
  }
  terminal.err(`${options.dryRun ? 'Dry run' : 'Drain'} ${started.id} started.`);
  const { attend } = await import('../attend.ts');
  return await attend({ client, handle: started, terminal, json: options.json });
}

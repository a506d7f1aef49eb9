import { formatProblems } from '../../core/problems.ts';
import { runWorker, workerOptions } from '../../worker/main.ts';
import { taskQueue } from '../../workflows/messages.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import { stopOnSignals } from '../stop.ts';
import { outJson, type Terminal } from '../terminal.ts';

export interface WorkerOptions {
  readonly json: boolean;
}

/** The worker process itself; ends when it has drained. */
export async function worker({ json }: WorkerOptions, terminal: Terminal): Promise<ExitStatus> {
  const options = workerOptions(process.env, stopOnSignals(process));
  if (!options.ok) throw new CommandFailure(`Settings of the worker:\n${formatProblems(options.problems)}`, 'refused');
  const { address, namespace } = options.value.temporal;
  await runWorker({
    ...options.value,
    onReady() {
      if (json) outJson(terminal, { polling: taskQueue, temporal: address, namespace });
      else if (terminal.interactive) terminal.err(`Polling ${taskQueue} at ${address}. Ctrl-C drains and ends this worker.`);
    },
  });
  return exitStatus('done');
}

import { retryRequest } from '../../core/retry-optional.ts';
import type { ReplayRequest } from '../../core/steps.ts';
import { assertWorker, withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import { AlreadyRunning, RequestRefused, startReplay } from '../replays.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { findByName, type FoundReplay, type ReplayName } from '../which.ts';

export interface RetryOptionalOptions {
  readonly name: ReplayName;
  readonly child: string;
  readonly dryRun: boolean;
  readonly detach: boolean;
  readonly json: boolean;
}

/** Brings an optional child of a fan-out what it missed, by a replay of its own. */
export async function retryOptional(options: RetryOptionalOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, options.name);
    await assertWorker(client);
    const request = await requestFor(found, options);
    if (request === null) {
      const message = `${found.handle.id}: the child "${options.child}" misses nothing`;
      if (options.json) outJson(terminal, { workflow_id: found.handle.id, child: options.child, missing: [] });
      else terminal.out(message);
      return exitStatus('done');
    }
    try {
      const started = await startReplay(client, request);
      if (options.detach) {
        if (options.json) outJson(terminal, { workflow_id: started.id, run_id: started.runId });
        else terminal.out(`Started ${started.id}\n  follow it: replay-stream status ${started.id} --follow`);
        return exitStatus('done');
      }
      terminal.err(`${options.dryRun ? 'Dry run' : 'Replay'} ${started.id} started.`);
      const { attend } = await import('../attend.ts');
      return await attend({ client, handle: started, terminal, json: options.json });
    } catch (error) {
      if (!(error instanceof AlreadyRunning || error instanceof RequestRefused)) throw error;
      throw new CommandFailure(error.message, 'refused', { cause: error });
    }
  });
}

/** null: the child misses nothing. */
async function requestFor({ handle }: FoundReplay, { child, dryRun }: RetryOptionalOptions): Promise<ReplayRequest | null> {
  const failures = await handle.optionalFailures();
  const sinks = failures?.target.sink['sinks'];
  const names = typeof sinks === 'object' && sinks !== null ? Object.keys(sinks) : [];
  if (failures === null || !names.includes(child)) {
    const known = names.length === 0 ? 'it is no fan-out' : `its children: ${names.join(', ')}`;
    throw new CommandFailure(`${handle.id} has no child "${child}"; ${known}`, 'refused');
  }
  const tally = failures.children.find(({ name }) => name === child);
  return tally === undefined ? null : retryRequest(failures, tally, dryRun);
}

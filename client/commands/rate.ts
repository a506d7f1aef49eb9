import { WorkflowUpdateFailedError } from '@temporalio/client';
import { groupDigits } from '../../core/problems.ts';
import { temporalFault } from '../../platform/temporal.ts';
import { assertWorker, withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import type { ReplayHandle } from '../replays.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { assertOpen, findByName, type ReplayName } from '../which.ts';

export interface RateOptions {
  readonly name: ReplayName;
  /** Records a second; null: no limit. */
  readonly perSecond: number | null;
  readonly json: boolean;
}

export async function rate({ name, perSecond, json }: RateOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, name);
    assertOpen(found, 'limit');
    await assertWorker(client);
    const { handle } = found;
    await setRate(handle, perSecond);
    if (json) outJson(terminal, { workflow_id: handle.id, rate_limit_per_second: perSecond });
    else terminal.out(`${handle.id}: ${perSecond === null ? 'no limit' : `at most ${groupDigits(perSecond)} records/s`}`);
    return exitStatus('done');
  });
}

async function setRate(handle: ReplayHandle, perSecond: number | null): Promise<void> {
  try {
    await handle.setRate(perSecond);
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw new CommandFailure(error.cause?.message ?? error.message, 'refused', { cause: error });
    if (temporalFault(error) !== 'no_answer') throw error;
    throw new CommandFailure(
      `${handle.id} did not answer, so the rate may not be set. Is a worker running (replay-stream worker)? Then try again.`,
      'failed',
      { cause: error },
    );
  }
}

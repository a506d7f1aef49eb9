import { WorkflowUpdateFailedError } from '@temporalio/client';
import { groupDigits } from '../../core/problems.ts';
import { temporalFault } from '../../platform/temporal.ts';
import type { SetRate } from '../../workflows/messages.ts';
import { assertWorker, withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import type { ReplayHandle } from '../replays.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { assertOpen, findByName, type ReplayName } from '../which.ts';

export interface RateOptions {
  readonly name: ReplayName;
  /** What is absent stays as it is. */
  readonly rate: SetRate;
  readonly json: boolean;
}

export async function rate({ name, rate: asked, json }: RateOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, name);
    assertOpen(found, 'limit');
    await assertWorker(client);
    const { handle } = found;
    await setRate(handle, asked);
    if (json) outJson(terminal, { workflow_id: handle.id, ...namedAsInPlan(asked) });
    else terminal.out(`${handle.id}: ${rateText(asked)}`);
    return exitStatus('done');
  });
}

function namedAsInPlan({ perSecond, bytesPerSecond, factor, allowedHours }: SetRate): object {
  const named = {
    rate_limit_per_second: perSecond,
    rate_limit_bytes_per_second: bytesPerSecond,
    pace_factor: factor,
    allowed_hours: allowedHours,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

function rateText({ perSecond, bytesPerSecond, factor, allowedHours }: SetRate): string {
  const ceiling = (most: number | null | undefined, of: string): string[] => {
    if (most === undefined) return [];
    return [most === null ? `no limit of ${of}` : `at most ${groupDigits(most)} ${of}/s`];
  };
  return [
    ...ceiling(perSecond, 'records'),
    ...ceiling(bytesPerSecond, 'bytes'),
    ...(factor === undefined ? [] : [`${factor} times as fast as the stream`]),
    ...(allowedHours === undefined ? [] : ['at any hour']),
  ].join(', ');
}

async function setRate(handle: ReplayHandle, asked: SetRate): Promise<void> {
  try {
    await handle.setRate(asked);
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

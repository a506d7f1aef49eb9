import { WorkflowUpdateFailedError } from '@temporalio/client';
import type { Decision } from '../../core/run.ts';
import { temporalFault } from '../../platform/temporal.ts';
import { assertWorker, withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import type { ReplayHandle } from '../replays.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { assertOpen, findByName, type ReplayName } from '../which.ts';

export interface DecideOptions {
  readonly name: ReplayName;
  readonly decision: Decision;
  readonly json: boolean;
}

export async function decide({ name, decision, json }: DecideOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, name);
    assertOpen(found, 'decide about');
    await assertWorker(client);
    const { handle } = found;
    await send(handle, decision);
    if (json) outJson(terminal, { workflow_id: handle.id, decision });
    else terminal.out(`${handle.id}: ${meaningOf(decision)}\n  look: replay-stream status ${handle.id}`);
    return exitStatus('done');
  });
}

function meaningOf(decision: Decision): string {
  switch (decision) {
    case 'dead-letter':
      return 'the refused records of this batch become dead letters';
    case 'skip':
      return 'the refused records of this batch are left out; the report lists them';
    case 'retry':
      return 'the batch is written again';
  }
}

async function send(handle: ReplayHandle, decision: Decision): Promise<void> {
  try {
    await handle.decide(decision);
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw new CommandFailure(error.cause?.message ?? error.message, 'refused', { cause: error });
    if (temporalFault(error) !== 'no_answer') throw error;
    throw new CommandFailure(
      `${handle.id} did not answer, so the decision may not be taken. Look at it (replay-stream status ${handle.id}), then try again.`,
      'failed',
      { cause: error },
    );
  }
}

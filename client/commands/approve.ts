import { userInfo } from 'node:os';
import { WorkflowUpdateFailedError } from '@temporalio/client';
import type { Approval, AwaitedApproval } from '../../core/approval.ts';
import { temporalFault } from '../../platform/temporal.ts';
import { assertWorker, withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import { approvalText } from '../render.ts';
import type { ReplayHandle } from '../replays.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { assertOpen, findByName, type ReplayName } from '../which.ts';

export interface ApproveOptions {
  readonly name: ReplayName;
  readonly reason: string;
  /** null: the user of this machine. */
  readonly by: string | null;
  /** null: show what was rehearsed, and ask. */
  readonly fingerprint: string | null;
  readonly json: boolean;
}

/** Exit status 2 when the approval was not taken. */
export async function approve(options: ApproveOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, options.name);
    assertOpen(found, 'approve');
    await assertWorker(client);
    const { handle } = found;
    const { approval: awaited, state } = await handle.progress();
    if (awaited === null) throw new CommandFailure(`${handle.id} awaits no approval; it is ${state}.`, 'refused');
    const fingerprint = options.fingerprint ?? (await askForApproval(handle.id, awaited, { options, terminal }));
    const approval = { by: options.by ?? userInfo().username, reason: options.reason, fingerprint };
    await send(handle, approval);
    if (options.json) outJson(terminal, { workflow_id: handle.id, approval });
    else terminal.out(`${handle.id}: approved by ${approval.by}\n  follow: replay-stream status ${handle.id} --follow`);
    return exitStatus('done');
  });
}

async function askForApproval(
  id: string,
  awaited: AwaitedApproval,
  { options, terminal }: { readonly options: ApproveOptions; readonly terminal: Terminal },
): Promise<string> {
  terminal.err(approvalText(awaited));
  if (!terminal.interactive) {
    throw new CommandFailure(
      `Nobody at a terminal to ask. Say that you have seen this: replay-stream approve ${id} --reason ${JSON.stringify(options.reason)} --fingerprint ${awaited.fingerprint}`,
      'refused',
    );
  }
  const { confirm } = await import('@clack/prompts');
  const answer = await confirm({ message: `Let ${id} write?`, initialValue: false, output: process.stderr });
  if (answer !== true) throw new CommandFailure(`Not approved; ${id} goes on waiting.`);
  return awaited.fingerprint;
}

async function send(handle: ReplayHandle, approval: Approval): Promise<void> {
  try {
    await handle.approve(approval);
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw new CommandFailure(error.cause?.message ?? error.message, 'refused', { cause: error });
    if (temporalFault(error) !== 'no_answer') throw error;
    throw new CommandFailure(
      `${handle.id} did not answer in time, so the approval may not be taken. Look at it: replay-stream status ${handle.id}`,
      'failed',
      { cause: error },
    );
  }
}

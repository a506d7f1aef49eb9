import type { Client } from '@temporalio/client';
import { lastPoll } from './connect.ts';
import type { ReplayResult } from './ending.ts';
import { exitStatus, type ExitStatus } from './exit.ts';
import { followReplay, type FollowEnd, type InterruptAnswer } from './follow.ts';
import { approvalText, problemText, reportSummary } from './render.ts';
import type { ReplayHandle } from './replays.ts';
import { outJson, type Terminal } from './terminal.ts';
import { createView } from './view.ts';

export interface Attendance {
  readonly client: Client;
  readonly handle: ReplayHandle;
  readonly terminal: Terminal;
  readonly json: boolean;
}

/** Stays with a replay until it ends or is left, then says how it went. */
export async function attend(attendance: Attendance): Promise<ExitStatus> {
  const { client, handle, terminal } = attendance;
  const end = await followReplay({
    handle,
    view: createView(terminal),
    lastPoll: () => lastPoll(client),
    ...(terminal.interactive ? { onInterrupt: askWhatCtrlCMeans } : {}),
  });
  return await conclude(attendance, end);
}

async function conclude({ handle, terminal, json }: Attendance, end: FollowEnd): Promise<ExitStatus> {
  switch (end.kind) {
    case 'ended':
      return tellResult(end.result, { id: handle.id, terminal, json });
    case 'blocked':
      terminal.err(`Still blocked, and nobody at a terminal to ask: leaving; the replay goes on waiting.`);
      terminal.err(
        `${problemText(end.problem)}\n${waysBack(handle.id)}\n  once it is mended: replay-stream resume ${handle.id}`,
      );
      if (json) outJson(terminal, await handle.report());
      return exitStatus('blocked');
    case 'awaiting':
      terminal.err(
        `${approvalText(end.approval)}\nIt needs somebody who approves; leaving, it goes on waiting.\n  approve: replay-stream approve ${handle.id} --reason WHY --fingerprint ${end.approval.fingerprint}\n${waysBack(handle.id)}`,
      );
      if (json) outJson(terminal, await handle.report());
      return exitStatus('blocked');
    case 'left':
      terminal.err(`Left; the replay goes on.\n${waysBack(handle.id)}`);
      return exitStatus(end.by === 'SIGINT' ? 'interrupted' : 'terminated');
  }
}

interface Telling {
  readonly id: string;
  readonly terminal: Terminal;
  readonly json: boolean;
}

/** The report on standard output, what went wrong on standard error. */
function tellResult(result: ReplayResult, { id, terminal, json }: Telling): ExitStatus {
  const { state, report, message, exit } = result;
  if (state === 'refused') {
    terminal.err(message ?? state);
    if (json) outJson(terminal, { state, problems: result.problems });
    return exit;
  }
  if (message !== null) terminal.err(message);
  if (report === null) {
    terminal.err(
      `${id}: ${state}. Its report cannot be had just now, since no worker answers; later: replay-stream report ${id}`,
    );
    return exit;
  }
  if (json) outJson(terminal, report);
  else terminal.out(`${reportSummary(report)}\n${nextStep(state, id)}`);
  return exit;
}

function nextStep(state: ReplayResult['state'], id: string): string {
  switch (state) {
    case 'rehearsed':
      return 'Nothing was written. To replay: the same command with --execute';
    case 'canceled':
      return `Everything: replay-stream report ${id} --markdown - to go on where it stopped: the same command again`;
    default:
      return `Everything: replay-stream report ${id} --markdown`;
  }
}

function waysBack(id: string): string {
  return `  follow: replay-stream status ${id} --follow\n  end it: replay-stream cancel ${id}`;
}

async function askWhatCtrlCMeans(over: AbortSignal): Promise<InterruptAnswer> {
  const { isCancel, select } = await import('@clack/prompts');
  const answer = await select<InterruptAnswer>({
    message: 'The replay runs in Temporal, not here. What now?',
    options: [
      { value: 'leave', label: 'Leave it running' },
      { value: 'cancel', label: 'Cancel the replay' },
      { value: 'stay', label: 'Stay' },
    ],
    initialValue: 'leave',
    output: process.stderr,
    signal: over,
  });
  return isCancel(answer) ? 'leave' : answer;
}

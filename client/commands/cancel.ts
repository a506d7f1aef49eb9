import type { ReplayHandle } from '../replays.ts';
import type { ReplayResult } from '../ending.ts';
import { withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { reportSummary } from '../render.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { assertOpen, findByName, type ReplayName } from '../which.ts';

export interface CancelOptions {
  readonly name: ReplayName;
  readonly wait: boolean;
  readonly json: boolean;
}

/** A canceled run has 60 s to settle what is written; then some for the end itself. */
const waitMs = 90_000;

/** Exit status 0 once the replay is over, or was asked to end with --no-wait. */
export async function cancel({ name, wait, json }: CancelOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, name);
    assertOpen(found, 'cancel');
    const { handle } = found;
    await handle.cancel();
    if (!json) terminal.err(`Asked ${handle.id} to cancel; it settles its batch in flight first.`);
    if (!wait) {
      if (json) outJson(terminal, { workflow_id: handle.id, state: 'cancelling', report: null });
      return exitStatus('done');
    }
    const result = await endWithin(handle, waitMs);
    if (result === null) {
      terminal.err(
        `${handle.id} has not ended within ${waitMs / 1_000} s. It ends as soon as a worker runs; is one up? Look: replay-stream status ${handle.id}`,
      );
      return exitStatus('failed');
    }
    tell(result, { id: handle.id, terminal, json });
    return exitStatus('done');
  });
}

/** null: it goes on. */
async function endWithin(handle: ReplayHandle, ms: number): Promise<ReplayResult | null> {
  const patience = AbortSignal.timeout(ms);
  try {
    return await handle.result(patience);
  } catch (error) {
    if (patience.aborted) return null;
    throw error;
  }
}

function tell(
  { state, report, message }: ReplayResult,
  { id, terminal, json }: { id: string; terminal: Terminal; json: boolean },
): void {
  if (message !== null) terminal.err(message);
  if (json) outJson(terminal, { workflow_id: id, state, report });
  else if (report === null) terminal.out(`${id}: ${state}`);
  else terminal.out(reportSummary(report));
}

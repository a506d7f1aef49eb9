import type { ReplayState } from '../../core/progress.ts';
import { temporalFault } from '../../platform/temporal.ts';
import { withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import { textTable } from '../render.ts';
import { listReplays, type ReplayList, type RunFacts } from '../replays.ts';
import { outJson, type Terminal } from '../terminal.ts';

export interface ListOptions {
  readonly all: boolean;
  readonly state: ReplayState | null;
  readonly limit: number;
  readonly json: boolean;
}

/** That --limit takes. */
const limitMax = 1_000;
const finalStates: readonly ReplayState[] = ['rehearsed', 'completed', 'canceled', 'failed', 'refused'];

export async function list({ all, state, limit, json }: ListOptions, terminal: Terminal): Promise<ExitStatus> {
  const closedToo = all || (state !== null && finalStates.includes(state));
  const found = await withTemporal(async (client) => {
    try {
      return await listReplays(client, { closedToo, state, limit });
    } catch (error) {
      if (state === null || temporalFault(error) !== 'invalid') throw error;
      throw new CommandFailure(
        'This Temporal server does not know the search attribute ReplayState, so it cannot pick by state. Register it ' +
          '(replay-stream doctor --register), or list without --state.',
        'failed',
        { cause: error },
      );
    }
  });
  if (json) outJson(terminal, found);
  else terminal.out(listText(found, { closedToo, state, limit }));
  return exitStatus('done');
}

interface Asked {
  readonly closedToo: boolean;
  readonly state: ReplayState | null;
  readonly limit: number;
}

function listText({ replays, more }: ReplayList, { closedToo, state, limit }: Asked): string {
  if (replays.length === 0) {
    if (state !== null) return `No replay is ${state}.`;
    return closedToo ? 'No replays.' : 'No replay is running. Those that ended: replay-stream list --all';
  }
  const table = textTable(['ID', 'STATE', 'STREAM', 'SINK', 'REJECTED', 'STARTED'], replays.map(rowOf));
  return more ? `${table}\nThere are more: ${2 * limit <= limitMax ? `--limit ${2 * limit}` : 'pick with --state'}` : table;
}

function rowOf(facts: RunFacts): string[] {
  const { workflow_id, state, open, stream, sink, rejected, started_at } = facts;
  return [
    workflow_id,
    state ?? (open ? 'running' : 'closed'),
    stream ?? '-',
    sink ?? '-',
    rejected === null ? '-' : String(rejected),
    started_at,
  ];
}

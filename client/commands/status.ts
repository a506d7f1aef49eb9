import type { Client } from '@temporalio/client';
import type { Progress } from '../../core/progress.ts';
import { attend } from '../attend.ts';
import { lastPoll, withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import { progressBlock } from '../render.ts';
import { listReplays } from '../replays.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { findByName, type FoundReplay, type ReplayName } from '../which.ts';

export interface StatusOptions {
  /** null: the one that runs, or the last one that ran. */
  readonly name: ReplayName | null;
  readonly follow: boolean;
  readonly json: boolean;
}

export async function status({ name, follow, json }: StatusOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, name ?? (await onlyReplay(client)));
    if (follow) return await attend({ client, handle: found.handle, terminal, json });
    const progress = (await lastPoll(client)) === null ? null : await progressNow(found);
    if (json) outJson(terminal, { ...found.facts, progress });
    else terminal.out(statusText(found, progress));
    if (progress === null)
      terminal.err(`No worker answers, so this is all that Temporal itself knows. Start one: replay-stream worker`);
    return exitStatus('done');
  });
}

const choicesShown = 20;

async function onlyReplay(client: Client): Promise<ReplayName> {
  const open = await listReplays(client, { closedToo: false, state: null, limit: choicesShown });
  if (open.replays.length > 1) {
    const ids = open.replays.map(({ workflow_id }) => `  replay-stream status ${workflow_id}`).join('\n');
    throw new CommandFailure(`Several replays are running; say which:\n${ids}`, 'refused');
  }
  const [last] = open.replays.length === 1 ? open.replays : await lastReplay(client);
  if (last === undefined) throw new CommandFailure('Temporal knows no replay. Start one: replay-stream PLAN TARGET');
  return [last.workflow_id];
}

async function lastReplay(client: Client) {
  return (await listReplays(client, { closedToo: true, state: null, limit: 1 })).replays;
}

/** null: no worker answers. A run that was ended from outside could not note its own end: Temporal's word counts. */
async function progressNow({ handle, facts }: FoundReplay): Promise<Progress | null> {
  const progress = await handle.progress().catch(() => null);
  if (progress === null || facts.open || facts.state === null) return progress;
  const ended = ['completed', 'rehearsed', 'refused'].includes(progress.state);
  return ended ? progress : { ...progress, state: facts.state, problem: null, secondsLeft: null };
}

function statusText({ facts }: FoundReplay, progress: Progress | null): string {
  const state = progress?.state ?? facts.state ?? (facts.open ? 'running' : 'closed');
  const ended = facts.closed_at === null ? '' : `, ended ${facts.closed_at}`;
  const head = [`${facts.workflow_id}: ${state}`, `  started ${facts.started_at}${ended}`];
  return [...head, ...(progress === null || state === 'refused' ? [] : [progressBlock(progress)])].join('\n');
}

import type { Client } from '@temporalio/client';
import { drainType, replayWorkflowId, workflowType } from '../workflows/messages.ts';
import { CommandFailure } from './failure.ts';
import { findReplay, findScheduled, replayHandle, type ReplayHandle, type RunFacts } from './replays.ts';

/** One replay as the user named it: by its workflow id, or by stream and durable consumer. */
export type ReplayName = readonly [id: string] | readonly [stream: string, durable: string];

export interface FoundReplay {
  readonly handle: ReplayHandle;
  readonly facts: RunFacts;
}

/** Throws CommandFailure when Temporal knows no such replay. */
export async function findByName(client: Client, name: ReplayName): Promise<FoundReplay> {
  const ids = workflowIds(name);
  for (const id of ids) {
    const facts = await latestOf(client, id, name.length === 1);
    if (facts === null) continue;
    if (facts.type !== workflowType && facts.type !== drainType) {
      throw new CommandFailure(
        `${id} is a workflow of the type ${facts.type}, not a replay. Replays: replay-stream list --all`,
      );
    }
    return { handle: replayHandle(client, facts.workflow_id), facts };
  }
  throw new CommandFailure(`${unknownText(ids)}. Those that are known: replay-stream list --all`);
}

/** The run of that id; of a plan also the runs that a Schedule started, whose ids go on with a time. One that runs comes first. */
async function latestOf(client: Client, id: string, exact: boolean): Promise<RunFacts | null> {
  const facts = await findReplay(client, id);
  if (exact || facts?.open === true) return facts;
  const scheduled = await findScheduled(client, id);
  if (scheduled === null || facts === null) return scheduled ?? facts;
  return scheduled.open || scheduled.started_at > facts.started_at ? scheduled : facts;
}

/** An execution and a dry run of the same plan have ids of their own; the execution comes first. */
function workflowIds(name: ReplayName): readonly string[] {
  const [first, durable] = name;
  if (durable === undefined) return [first];
  return [false, true].map((dry_run) => replayWorkflowId({ stream: first, durable_consumer: durable, dry_run }));
}

/** For verbs that change a run. Throws CommandFailure when it is over. */
export function assertOpen({ facts }: FoundReplay, verb: string): void {
  if (facts.open) return;
  throw new CommandFailure(
    `${facts.workflow_id} is over (${facts.state ?? 'closed'}), so there is nothing to ${verb}. What it did: replay-stream report ${facts.workflow_id}`,
  );
}

function unknownText(ids: readonly string[]): string {
  if (ids.length > 1) return `Temporal knows no replay ${ids.join(' and no ')}`;
  const looksLikeId = ids[0]!.includes(':');
  return `Temporal knows no replay with the id ${ids[0]}${looksLikeId ? '' : ' (an id looks like replay:STREAM:DURABLE, or give STREAM DURABLE)'}`;
}

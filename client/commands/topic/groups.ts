import { hostname, userInfo } from 'node:os';
import { exitStatus, type ExitStatus } from '../../exit.ts';
import { textTable } from '../../render.ts';
import type { GroupHandle, Position, ResetTarget } from '../../topics.ts';
import type { ConsumeAction, TopicCommand } from '../topic.ts';
import { pageJson, pageText } from './read.ts';

export async function consumePage({ topics, name, json, terminal }: TopicCommand, action: ConsumeAction): Promise<ExitStatus> {
  const group = (await topics.open(name)).group(action.group);
  const page = action.lease === null ? await consumed(group, action) : await leased(group, action);
  const { records, ...rest } = page;
  terminal.out(json ? pageJson(records, rest) : pageText(records, rest));
  if (!json && rest.handle !== null) terminal.err(`handle ${rest.handle}`);
  return exitStatus('done');
}

async function consumed(group: GroupHandle, { partition, limit, onTruncated }: ConsumeAction) {
  const { records, nextOffset, lag, handle, gap } = await group.consume({ partition, limit, onTruncated });
  return { records, nextOffset, lag, handle, ...(gap === null ? {} : { gap }) };
}

/** Without records and handle: nothing can be leased now. */
async function leased(group: GroupHandle, { partition, limit, onTruncated, lease }: ConsumeAction) {
  const taken = await group.lease({ partition, limit, onTruncated, owner: whoami(), ...lease });
  const { lag } = (await group.positions([partition]))[0]!;
  if (taken === null) return { records: [], nextOffset: null, lag, handle: null };
  const { records, nextOffset, handle, attempt, gap } = taken;
  return { records, nextOffset, lag: Math.max(0, lag - records.length), handle, attempt, ...(gap === null ? {} : { gap }) };
}

export async function commitOffset(
  { topics, name, json, terminal }: TopicCommand,
  {
    group,
    partition,
    nextOffset,
    handle,
  }: { group: string; partition: number; nextOffset: number; handle: string | undefined },
): Promise<ExitStatus> {
  const topic = await topics.open(name);
  const { result, cursor } = await topic.group(group).commit({ partition, nextOffset, handle });
  terminal.out(json ? JSON.stringify({ result, cursor }) : `${result}; the cursor is ${cursor ?? 'not set'}`);
  return exitStatus(result === 'advanced' || result === 'ignored' ? 'done' : 'rejects');
}

export async function resetGroup(
  { topics, name, json, terminal }: TopicCommand,
  { group, target, partition }: { group: string; target: ResetTarget; partition: number | undefined },
): Promise<ExitStatus> {
  const topic = await topics.open(name);
  const by = whoami();
  for (const [one, offset] of await topic.group(group).reset(target, { partition, by })) {
    terminal.out(
      json
        ? JSON.stringify({ group, partition: one, offset, by })
        : `${name}, group ${group}, partition ${one}: set to ${offset} by ${by}`,
    );
  }
  return exitStatus('done');
}

export async function showGroups({ topics, name, json, terminal }: TopicCommand): Promise<ExitStatus> {
  const topic = await topics.open(name);
  const rows: { group: string; position: Position }[] = [];
  for (const group of await topic.groups()) {
    for (const position of await topic.group(group).positions()) rows.push({ group, position });
  }
  if (json) for (const { group, position } of rows) terminal.out(JSON.stringify({ group, ...position }));
  else if (rows.length === 0) terminal.out('No group has a position in this topic.');
  else
    terminal.out(textTable(['GROUP', 'PARTITION', 'CURSOR', 'LAG', 'LAG SECONDS', 'TRUNCATED IN', 'LEASES'], rows.map(rowOf)));
  return exitStatus('done');
}

function rowOf({ group, position }: { group: string; position: Position }): string[] {
  const { partition, cursor, lag, lagSeconds, truncatesInSeconds, held } = position;
  const or = (value: number | null, unit = '') => (value === null ? '-' : `${value}${unit}`);
  return [group, String(partition), or(cursor), String(lag), or(lagSeconds), or(truncatesInSeconds, ' s'), String(held)];
}

function whoami(): string {
  return `${userInfo().username}@${hostname()}`;
}

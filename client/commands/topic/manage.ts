import { counted, groupDigits } from '../../../core/problems.ts';
import type { TopicOptions } from '../../../core/topic.ts';
import { exitStatus, type ExitStatus } from '../../exit.ts';
import { textTable } from '../../render.ts';
import type { ColdLimit, PartitionBounds, Topic } from '../../topics.ts';
import type { TopicCommand } from '../topic.ts';

export async function createTopic({ topics, name, json, terminal }: TopicCommand, options: TopicOptions): Promise<ExitStatus> {
  const { topic } = await topics.create(name, options);
  terminal.out(json ? JSON.stringify(topic) : `Topic ${topic.name}: ${counted(topic.partitions, 'partition')}.`);
  return exitStatus('done');
}

export async function deleteTopic({ topics, name, json, terminal }: TopicCommand): Promise<ExitStatus> {
  if (terminal.interactive && !(await isMeant(name))) {
    terminal.err('Nothing was deleted.');
    return exitStatus('refused');
  }
  await topics.delete(name);
  terminal.out(json ? JSON.stringify({ name, deleted: true }) : `Topic ${name} is deleted.`);
  return exitStatus('done');
}

async function isMeant(name: string): Promise<boolean> {
  const { confirm } = await import('@clack/prompts');
  const message = `Delete the topic ${name} with all its records and positions?`;
  return (await confirm({ message, initialValue: false, output: process.stderr })) === true;
}

export async function listTopics({ topics, json, terminal }: TopicCommand): Promise<ExitStatus> {
  const all = await topics.list();
  if (json) for (const topic of all) terminal.out(JSON.stringify(topic));
  else if (all.length === 0) terminal.out('No topics.');
  else terminal.out(textTable(['NAME', 'PARTITIONS', 'HOT', 'CREATED'], all.map(rowOf)));
  return exitStatus('done');
}

function rowOf({ name, partitions, hot, createdAt }: Topic): string[] {
  return [name, String(partitions), `${groupDigits(hot.maxRecords)} records, ${hot.maxAgeSeconds} s`, createdAt];
}

export async function describeTopic({ topics, name, json, terminal }: TopicCommand): Promise<ExitStatus> {
  const topic = await topics.open(name);
  const bounds = await topic.bounds();
  const groups = await topic.groups();
  const records = bounds.reduce((sum, { oldest, next }) => sum + next - oldest, 0);
  const bytes = bounds.reduce((sum, one) => sum + one.bytes, 0);
  const facts = { ...topic.topic, records, bytes, groups };
  if (json) {
    terminal.out(JSON.stringify(facts));
    return exitStatus('done');
  }
  const { hot, quota } = topic.topic;
  terminal.out(
    textTable(
      ['SETTING', 'VALUE'],
      [
        ['name', facts.name],
        ['id', facts.id],
        ['partitions', `${facts.partitions}, by ${facts.hashVersion}`],
        [
          'hot',
          `${hot.maxAgeSeconds} s, ${groupDigits(hot.maxRecords)} records, ${groupDigits(hot.maxBytes)} bytes a partition`,
        ],
        [
          'quota',
          Object.entries(quota)
            .map(([key, value]) => `${key} ${value === null ? 'none' : groupDigits(value)}`)
            .join(', '),
        ],
        ['holds', `${groupDigits(records)} records, ${groupDigits(bytes)} bytes`],
        ['groups', groups.length === 0 ? 'none' : groups.join(', ')],
        ['created', facts.createdAt],
      ],
    ),
  );
  return exitStatus('done');
}

/** Of what is cold only, and segment by segment. */
export async function expireCold(
  { topics, name, json, terminal }: TopicCommand,
  { before, partition }: { readonly before: ColdLimit; readonly partition: number | undefined },
): Promise<ExitStatus> {
  const expired = await (await topics.open(name)).expireCold({ before, partition });
  if (json) for (const one of expired) terminal.out(JSON.stringify(one));
  else {
    const rows = expired.map((one) => [one.partition, one.segments, one.records, one.oldest].map(String));
    terminal.out(textTable(['PARTITION', 'SEGMENTS', 'RECORDS', 'OLDEST'], rows));
  }
  return exitStatus('done');
}

export async function showBounds({ topics, name, json, terminal }: TopicCommand): Promise<ExitStatus> {
  const bounds = await (await topics.open(name)).bounds();
  if (json) for (const one of bounds) terminal.out(JSON.stringify(boundsJson(one)));
  else {
    const rows = bounds.map(({ partition, oldest, hot, next }) => [partition, oldest, hot, next].map(String));
    terminal.out(textTable(['PARTITION', 'OLDEST', 'HOT', 'NEXT'], rows));
  }
  return exitStatus('done');
}

function boundsJson({ partition, oldest, hot, next }: PartitionBounds): object {
  return { partition, oldest, hot, next };
}

import { InvalidArgumentError, Option, type Command } from 'commander';
import { groupDigits } from '../core/problems.ts';
import { parseTime } from '../core/time.ts';
import {
  coldKinds,
  pageRecordsMax,
  topicDefaults,
  topicLimits,
  type ColdKind,
  type TopicOptions as TopicCreation,
} from '../core/topic.ts';
import type { TopicAction } from './commands/topic.ts';
import { wholeNumber, withExamples, type Example, type Found } from './verbs.ts';
import type { ColdLimit, ResetTarget } from './topics.ts';

/** The verb `topic` with everything below it. */
export function topic(program: Command, found: Found): void {
  const parent = program
    .command('topic')
    .summary('the event stream: create, push, read, consume, commit ...')
    .description(
      'Topics: partitioned, replayable logs on JetStream with consumer groups. Talks to NATS alone (NATS_URL and the other ' +
        'settings of the nats command), sweep and reconcile also to Temporal. With --json one object, or one line per group, partition or record. Exit status: 2 for ' +
        'wrong usage and unknown topics; 3 when a group was rejected, a commit fenced or out of range, or an offset cannot be ' +
        'read; 1 when a push is uncertain.',
    )
    .usage('COMMAND [options]')
    .helpCommand('help [command]', 'show the help of a command');
  withExamples(parent, [
    { command: 'replay-stream topic create orders', does: 'eight partitions, seven days hot' },
    { command: 'replay-stream topic push orders events.jsonl', does: 'one record a line' },
    { command: 'replay-stream topic consume orders --group billing --partition 4 --json', does: 'what comes next' },
  ]);
  const verbs: Verbs = {
    add: (name, usage, summary, example) => {
      const verb = parent
        .command(name)
        .summary(summary)
        .description(`${sentence(summary)}.`)
        .usage(usage);
      withExamples(verb, [example]);
      return verb.option('--json', 'for programs');
    },
    found: (name, json, action) => found({ verb: 'topic', options: { name, json: json === true, action } }),
  };
  for (const define of [
    create,
    push,
    read,
    consume,
    commit,
    groups,
    reset,
    bounds,
    sweep,
    reconcile,
    expireCold,
    list,
    describe,
    remove,
  ])
    define(verbs);
}

interface Verbs {
  readonly add: (name: string, usage: string, summary: string, example: Example) => Command;
  readonly found: (name: string, json: true | undefined, action: TopicAction) => void;
}

interface Json {
  readonly json?: true;
}

function create({ add, found }: Verbs): void {
  const { hot, quota } = topicDefaults;
  const mib = (bytes: number) => `${bytes / 1_048_576}MiB`;
  add('create', 'NAME [options]', 'create a topic', {
    command: 'replay-stream topic create orders --partitions 8 --max-age 7d',
    does: 'with its defaults written out',
  })
    .argument('<NAME>', 'name of the topic, at most 64 bytes')
    .option('--partitions <n>', `default ${topicDefaults.partitions}; for good`, whole('partitions'))
    .option('--max-age <time>', 'how long records stay hot: 7d, 12h, 30m, 10s; default 7d', seconds)
    .option('--max-records <n>', `hot records of a partition; default ${groupDigits(hot.maxRecords)}`, whole('maxRecords'))
    .option('--max-bytes <size>', `hot payload of a partition; default ${mib(hot.maxBytes)}`, byteSize)
    .option('--max-record-bytes <size>', `of one record with its keys; default ${mib(quota.maxRecordBytes)}`, byteSize)
    .option('--max-push-bytes <size>', `of one push into a partition; default ${mib(quota.maxPushBytes)}`, byteSize)
    .option('--max-groups <n>', `consumer groups; default ${groupDigits(quota.maxGroups)}`, whole('maxGroups'))
    .addOption(new Option('--cold <store>', 'keep what leaves the hot window; default: it is gone').choices(coldKinds))
    .option('--records-per-second <n>', 'that one client may push; default no limit', whole('recordsPerSecond'))
    .action((name: string, flags: CreateFlags & Json) => found(name, flags.json, { kind: 'create', options: creation(flags) }));
}

interface CreateFlags {
  readonly partitions?: number;
  readonly maxAge?: number;
  readonly maxRecords?: number;
  readonly maxBytes?: number;
  readonly maxRecordBytes?: number;
  readonly maxPushBytes?: number;
  readonly maxGroups?: number;
  readonly recordsPerSecond?: number;
  readonly cold?: ColdKind;
}

function creation(flags: CreateFlags): TopicCreation {
  const { partitions, maxAge, maxRecords, maxBytes, maxRecordBytes, maxPushBytes, maxGroups, recordsPerSecond, cold } = flags;
  return {
    partitions,
    hot: { maxAgeSeconds: maxAge, maxRecords, maxBytes },
    quota: { maxRecordBytes, maxPushBytes, maxGroups, recordsPerSecond },
    cold,
  };
}

function push({ add, found }: Verbs): void {
  add('push', 'NAME [FILE | -] [options]', 'push JSON lines', {
    command: `echo '{"partitionKey":"user-1","deduplicationKey":"o-1","payload":{"id":1}}' | replay-stream topic push orders`,
    does: 'from standard input',
  })
    .description(
      'Pushes JSON lines {"partitionKey", "payload", "deduplicationKey"} as one push: all records of a partition or none, at most ' +
        '100 of each. The same lines again, with their deduplication keys, are stored once.',
    )
    .argument('<NAME>', 'name of the topic')
    .argument('[FILE]', 'file of JSON lines, or - for standard input', '-')
    .option('--split', 'any number of lines, as several pushes one after the other')
    .action((name: string, file: string, { split, json }: { split?: true } & Json) =>
      found(name, json, { kind: 'push', file, split: split === true }),
    );
}

function read({ add, found }: Verbs): void {
  withPage(
    add('read', 'NAME --partition P --from N [options]', 'read a page of a partition', {
      command: 'replay-stream topic read orders --partition 4 --from 0 --limit 10 --json',
      does: 'the first ten',
    })
      .argument('<NAME>', 'name of the topic')
      .requiredOption('--from <offset>', 'first offset', offset),
  ).action((name: string, { partition, from, limit, json }: PageFlags & { from: number } & Json) =>
    found(name, json, { kind: 'read', partition, from, limit }),
  );
}

interface PageFlags {
  readonly partition: number;
  readonly limit: number;
}

function withPage(verb: Command): Command {
  return verb
    .requiredOption('--partition <p>', 'from 0', offset)
    .option('--limit <n>', `records, at most ${pageRecordsMax}`, wholeNumber(1, Number.MAX_SAFE_INTEGER), pageRecordsMax);
}

interface ConsumeFlags extends PageFlags, Json {
  readonly group: string;
  readonly onTruncated: 'stop' | 'earliest';
  readonly lease?: true;
  readonly leaseSeconds: number;
  readonly parallel: number;
  readonly attemptsMax?: number;
}

function consume({ add, found }: Verbs): void {
  withPage(
    add('consume', 'NAME --group G --partition P [options]', "read on at a group's position", {
      command: 'replay-stream topic consume orders --group billing --partition 4 --lease --json',
      does: 'so that nobody else of the group gets the same records',
    })
      .argument('<NAME>', 'name of the topic')
      .requiredOption('--group <name>', 'consumer group'),
  )
    .addOption(
      new Option(
        '--on-truncated <policy>',
        'records are gone before the group came to them: stop, or go on with a recorded gap',
      )
        .choices(['stop', 'earliest'])
        .default('stop'),
    )
    .option('--lease', 'take a lease; its handle goes to commit')
    .option('--lease-seconds <n>', 'how long it lasts', wholeNumber(1, 86_400), 30)
    .option('--parallel <n>', 'leases held in a partition at a time', wholeNumber(1, 64), 1)
    .option(
      '--attempts-max <n>',
      'deliveries of a record until it becomes a dead letter; default no end',
      wholeNumber(1, 1_000),
    )
    .action((name: string, { group, partition, limit, onTruncated, lease, json, ...flags }: ConsumeFlags) =>
      found(name, json, {
        kind: 'consume',
        group,
        partition,
        limit,
        onTruncated,
        lease:
          lease === true
            ? { leaseMs: flags.leaseSeconds * 1_000, parallel: flags.parallel, attemptsMax: flags.attemptsMax }
            : null,
      }),
    );
}

function commit({ add, found }: Verbs): void {
  add('commit', 'NAME --group G --partition P --offset N [options]', "move a group's position forward", {
    command: 'replay-stream topic commit orders --group billing --partition 4 --offset 100',
    does: 'everything before 100 is done',
  })
    .argument('<NAME>', 'name of the topic')
    .requiredOption('--group <name>', 'consumer group')
    .requiredOption('--partition <p>', 'from 0', offset)
    .requiredOption('--offset <n>', 'first offset that is not done', offset)
    .option('--handle <handle>', 'as consume gave it; without, the commit is fenced only while somebody holds a lease')
    .action((name: string, flags: { group: string; partition: number; offset: number; handle?: string } & Json) =>
      found(name, flags.json, {
        kind: 'commit',
        group: flags.group,
        partition: flags.partition,
        nextOffset: flags.offset,
        handle: flags.handle,
      }),
    );
}

function groups({ add, found }: Verbs): void {
  add('groups', 'NAME [options]', 'where the consumer groups stand, and how far behind', {
    command: 'replay-stream topic groups orders',
    does: 'lag in records and seconds',
  })
    .argument('<NAME>', 'name of the topic')
    .action((name: string, { json }: Json) => found(name, json, { kind: 'groups' }));
}

function reset({ add, found }: Verbs): void {
  add('reset', 'NAME --group G --to earliest|latest|OFFSET|TIME [options]', "set a group's position", {
    command: 'replay-stream topic reset orders --group billing --to 2026-05-01T10:00:00Z',
    does: 'everything since then once more',
  })
    .description(
      "Sets a group's position, forward or back, in one partition or in all. Leases and handles of before are fenced; the change " +
        'is kept with the position (topic groups --json).',
    )
    .argument('<NAME>', 'name of the topic')
    .requiredOption('--group <name>', 'consumer group')
    .requiredOption('--to <target>', 'earliest, latest, an offset, or an RFC 3339 time', resetTarget)
    .option('--partition <p>', 'only this one', offset)
    .action((name: string, flags: { group: string; to: ResetTarget; partition?: number } & Json) =>
      found(name, flags.json, { kind: 'reset', group: flags.group, target: flags.to, partition: flags.partition }),
    );
}

function bounds({ add, found }: Verbs): void {
  add('bounds', 'NAME [options]', 'oldest, first hot, and next offset of each partition', {
    command: 'replay-stream topic bounds orders --json',
    does: 'one line per partition',
  })
    .argument('<NAME>', 'name of the topic')
    .action((name: string, { json }: Json) => found(name, json, { kind: 'bounds' }));
}

function sweep({ add, found }: Verbs): void {
  add('sweep', 'NAME [options]', 'move what is no longer hot into the cold store, or away', {
    command: 'replay-stream topic sweep orders',
    does: 'returns when it is done',
  })
    .description(
      'Moves records that have left the bounds of the hot window into the cold store; of a topic without one they are gone. A ' +
        'worker does it, as a workflow of type sweepTopic: have a Temporal Schedule start it.',
    )
    .argument('<NAME>', 'name of the topic')
    .action((name: string, { json }: Json) => found(name, json, { kind: 'sweep' }));
}

function reconcile({ add, found }: Verbs): void {
  add('reconcile', '[NAME] [options]', 'find and repair what crashes and lost objects left behind', {
    command: 'replay-stream topic reconcile',
    does: 'all topics; a second time it repairs nothing',
  })
    .description(
      'Compares streams, manifests, objects of the cold store, sweeps and positions of one topic, or of all, and repairs what can be ' +
        'repaired without losing a record. A worker does it, as a workflow of type reconcileTopics; schedule create --reconcile keeps ' +
        'it as a Schedule. Exit status: 3 when something is left that a person must look at, 1 when a topic failed.',
    )
    .argument('[NAME]', 'name of the topic; default all')
    .action((name: string | undefined, { json }: Json) => found(name ?? '', json, { kind: 'reconcile' }));
}

function expireCold({ add, found }: Verbs): void {
  add('expire-cold', 'NAME --before OFFSET|TIME [options]', 'give up cold history', {
    command: 'replay-stream topic expire-cold orders --before 2024-05-01T00:00:00Z',
    does: 'in all partitions',
  })
    .description(
      'Gives up cold segments all of whose records lie before an offset, or are older than a time. Readers see them no more at once; ' +
        'the next sweeps remove their objects, an hour later at the earliest.',
    )
    .argument('<NAME>', 'name of the topic')
    .requiredOption('--before <limit>', 'an offset, or an RFC 3339 time', coldLimit)
    .option('--partition <p>', 'only this one', offset)
    .action((name: string, { before, partition, json }: { before: ColdLimit; partition?: number } & Json) =>
      found(name, json, { kind: 'expire-cold', before, partition }),
    );
}

function list({ add, found }: Verbs): void {
  add('list', '[options]', 'all topics', { command: 'replay-stream topic list', does: 'by name' }).action(({ json }: Json) =>
    found('', json, { kind: 'list' }),
  );
}

function describe({ add, found }: Verbs): void {
  add('describe', 'NAME [options]', 'settings of a topic, and how much it holds', {
    command: 'replay-stream topic describe orders',
    does: 'settings and sizes',
  })
    .argument('<NAME>', 'name of the topic')
    .action((name: string, { json }: Json) => found(name, json, { kind: 'describe' }));
}

function remove({ add, found }: Verbs): void {
  add('delete', 'NAME [options]', 'delete a topic with its records, positions and dead letters', {
    command: 'replay-stream topic delete orders',
    does: 'for good',
  })
    .argument('<NAME>', 'name of the topic')
    .action((name: string, { json }: Json) => found(name, json, { kind: 'delete' }));
}

const offset = wholeNumber(0, Number.MAX_SAFE_INTEGER);

function whole(setting: keyof typeof topicLimits): (text: string) => number {
  const { min, max } = topicLimits[setting];
  return wholeNumber(min, max);
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

function seconds(text: string): number {
  const [, count, unit] = /^(\d{1,10})([smhd])$/.exec(text) ?? [];
  if (count === undefined) throw new InvalidArgumentError('Expected a time such as 7d, 12h, 30m or 10s');
  return Number(count) * unitSeconds[unit!]!;
}

const unitBytes: Readonly<Record<string, number>> = { '': 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

function byteSize(text: string): number {
  const [, count, unit] = /^(\d{1,12})(|KiB|MiB|GiB)$/.exec(text) ?? [];
  if (count === undefined) throw new InvalidArgumentError('Expected bytes, such as 1000000, 64KiB, 256MiB or 1GiB');
  return Number(count) * unitBytes[unit!]!;
}

function resetTarget(text: string): ResetTarget {
  if (text === 'earliest' || text === 'latest') return { to: text };
  if (/^\d{1,15}$/.test(text)) return { to: 'offset', offset: Number(text) };
  const time = parseTime(text);
  if (time.ok) return { to: 'time', timeNanos: time.nanos };
  throw new InvalidArgumentError(`Expected earliest, latest, an offset, or a time; as a time it ${time.message}`);
}

function coldLimit(text: string): ColdLimit {
  if (/^\d{1,15}$/.test(text)) return { offset: Number(text) };
  const time = parseTime(text);
  if (time.ok) return { timeNanos: time.nanos };
  throw new InvalidArgumentError(`Expected an offset or a time; as a time it ${time.message}`);
}

function sentence(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}

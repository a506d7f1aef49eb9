import { TopicError } from '../../core/topic-errors.ts';
import type { TopicOptions as TopicCreation } from '../../core/topic.ts';
import type { ExitStatus } from '../exit.ts';
import { CommandFailure } from '../failure.ts';
import type { Terminal } from '../terminal.ts';
import { connectTopics, type ColdLimit, type LeaseOptions, type ResetTarget, type Topics } from '../topics.ts';
import { errorJson, errorText, exitOf } from './topic/errors.ts';
import { commitOffset, consumePage, resetGroup, showGroups } from './topic/groups.ts';
import { createTopic, deleteTopic, describeTopic, expireCold, listTopics, showBounds } from './topic/manage.ts';
import { pushLines } from './topic/push.ts';
import { readRecords } from './topic/read.ts';

export interface TopicOptions {
  /** Empty for `list`, and for `reconcile` of all. */
  readonly name: string;
  readonly json: boolean;
  readonly action: TopicAction;
}

export type TopicAction =
  | { readonly kind: 'create'; readonly options: TopicCreation }
  | { readonly kind: 'push'; readonly file: string; readonly split: boolean }
  | { readonly kind: 'read'; readonly partition: number; readonly from: number; readonly limit: number }
  | ConsumeAction
  | {
      readonly kind: 'commit';
      readonly group: string;
      readonly partition: number;
      readonly nextOffset: number;
      readonly handle: string | undefined;
    }
  | { readonly kind: 'reset'; readonly group: string; readonly target: ResetTarget; readonly partition: number | undefined }
  | { readonly kind: 'expire-cold'; readonly before: ColdLimit; readonly partition: number | undefined }
  | { readonly kind: 'groups' | 'bounds' | 'list' | 'describe' | 'delete' | 'sweep' | 'reconcile' };

export interface ConsumeAction {
  readonly kind: 'consume';
  readonly group: string;
  readonly partition: number;
  readonly limit: number;
  readonly onTruncated: 'stop' | 'earliest';
  /** null: read without a lease. */
  readonly lease: Pick<LeaseOptions, 'leaseMs' | 'parallel' | 'attemptsMax'> | null;
}

/** What every command below `topic` is given. */
export interface TopicCommand {
  readonly topics: Topics;
  readonly name: string;
  readonly json: boolean;
  readonly terminal: Terminal;
}

export async function topic({ name, json, action }: TopicOptions, terminal: Terminal): Promise<ExitStatus> {
  try {
    const topics = await connectTopics();
    try {
      return await run({ topics, name, json, terminal }, action);
    } finally {
      await topics.close();
    }
  } catch (error) {
    if (!(error instanceof TopicError)) throw error;
    if (json) terminal.out(JSON.stringify({ error: errorJson(error) }));
    throw new CommandFailure(errorText(error), exitOf(error.code), { cause: error });
  }
}

async function run(command: TopicCommand, action: TopicAction): Promise<ExitStatus> {
  switch (action.kind) {
    case 'create':
      return await createTopic(command, action.options);
    case 'push':
      return await pushLines(command, action);
    case 'read':
      return await readRecords(command, action);
    case 'consume':
      return await consumePage(command, action);
    case 'commit':
      return await commitOffset(command, action);
    case 'reset':
      return await resetGroup(command, action);
    case 'groups':
      return await showGroups(command);
    case 'bounds':
      return await showBounds(command);
    case 'list':
      return await listTopics(command);
    case 'describe':
      return await describeTopic(command);
    case 'delete':
      return await deleteTopic(command);
    case 'expire-cold':
      return await expireCold(command, action);
    case 'reconcile':
      return await (await import('./topic/reconcile.ts')).reconcileNow(command);
    case 'sweep':
      return await (await import('./topic/sweep.ts')).sweepNow(command);
  }
}

import { Client, Connection } from '@temporalio/client';
import type { TopicHandle, TopicOptions, Topics } from '../../../client/topics.ts';
import type { Progress } from '../../../core/progress.ts';
import type { Report } from '../../../core/report.ts';
import type { Swept } from '../../../core/sweep.ts';
import { atFileEnd, tempDir } from '../../support/file-end.ts';
import { connectTestNats, natsUrl, temporalAddress, uniqueName } from '../../support/servers.ts';
import { startWorker, type TestWorker } from '../../support/worker.ts';
import { addTopic, openTestTopics } from './topics.ts';

/** What tests of replays from a topic share: a worker with a cold store, topics with cold history, and how to run a plan. */

const pushedAtOnce = 90;
const pollMs = 50;
const waitMsMax = 120_000;

export interface ReplayedTopics {
  readonly coldRoot: string;
  readonly topics: Topics;
  readonly client: Client;
  readonly worker: TestWorker;
  readonly deadLetterSubject: string;
  readonly deadLetterStream: string;
  start(input: TopicRequest): Promise<Run>;
  replay(input: TopicRequest): Promise<Report>;
  sweep(topic: TopicHandle): Promise<Swept[]>;
}

export interface Run {
  readonly id: string;
  result(): Promise<Report>;
  until(wanted: (progress: Progress) => boolean): Promise<Progress>;
  signal(name: 'pause' | 'resume'): Promise<void>;
  cancel(): Promise<void>;
  update(name: string, input: unknown): Promise<unknown>;
  report(): Promise<Report>;
}

export interface TopicRequest {
  readonly plan: { readonly replay: Readonly<Record<string, unknown>> };
  readonly target: Readonly<Record<string, unknown>>;
}

export async function startReplayedTopics(env: NodeJS.ProcessEnv = {}): Promise<ReplayedTopics> {
  const coldRoot = await tempDir();
  const topics = await openTestTopics({ env: { NATS_URL: natsUrl(), REPLAY_COLD_ROOT: coldRoot } });
  const connection = await Connection.connect({ address: temporalAddress() });
  atFileEnd(() => connection.close());
  const client = new Client({ connection });
  const worker = await startWorker({ REPLAY_COLD_ROOT: coldRoot, ...env });
  const manager = await (await connectTestNats()).jetstreamManager();
  const [deadLetterStream, deadLetterSubject] = [uniqueName('DLQ'), `dlq-${uniqueName('t')}`];
  await manager.streams.add({
    name: deadLetterStream,
    subjects: [deadLetterSubject],
    allow_direct: true,
    duplicate_window: 3_600_000_000_000,
  });
  const start = async (input: TopicRequest) => await startRun(client, input);
  return {
    coldRoot,
    topics,
    client,
    worker,
    deadLetterSubject,
    deadLetterStream,
    start,
    replay: async (input) => await (await start(input)).result(),
    sweep: (topic) =>
      client.workflow.execute('sweepTopic', {
        taskQueue: 'durable-replay',
        workflowId: uniqueName('sweep'),
        args: [topic.topic.name],
      }),
  };
}

async function startRun(client: Client, input: TopicRequest): Promise<Run> {
  const id = uniqueName('topic-replay');
  const handle = await client.workflow.start('replayPlan', {
    taskQueue: 'durable-replay',
    workflowId: id,
    workflowTaskTimeout: '5s',
    args: [input],
  });
  return {
    id,
    result: async () => (await handle.result()) as Report,
    signal: (name) => handle.signal(name),
    cancel: async () => void (await handle.cancel()),
    update: (name, value) => handle.executeUpdate(name, { args: [value] }),
    report: () => handle.query<Report>('report'),
    async until(wanted) {
      for (const deadline = Date.now() + waitMsMax; ;) {
        // A worker that is killed does not answer for a while.
        const progress = await handle.query<Progress>('progress').catch(() => null);
        if (progress !== null && wanted(progress)) return progress;
        if (Date.now() > deadline) throw new Error(`not in time: ${JSON.stringify(progress)}`);
        await new Promise((resolve) => setTimeout(resolve, pollMs));
      }
    },
  };
}

/** So many records `{ id, name }` over all partitions, in pushes as large as they may be. */
export async function fill(
  topic: TopicHandle,
  { from = 0, count, name = (id) => `customer ${id}` }: { from?: number; count: number; name?: (id: number) => string },
): Promise<void> {
  for (let first = from; first < from + count; first += pushedAtOnce) {
    const records = Array.from({ length: Math.min(pushedAtOnce, from + count - first) }, (_, i) => ({
      partitionKey: `user-${first + i}`,
      deduplicationKey: `d-${first + i}`,
      payload: { id: first + i, name: name(first + i) },
    }));
    const answers = await topic.push(records);
    const bad = answers.find(({ status }) => status !== 'accepted');
    if (bad !== undefined) throw new Error(JSON.stringify(bad));
  }
}

/** A topic of three partitions with cold history: two segments a partition, and up to `maxRecords` records hot. */
export async function addSweptTopic(
  replayed: ReplayedTopics,
  {
    count,
    name,
    maxRecords = 20,
    ...options
  }: { count: number; name?: (id: number) => string; maxRecords?: number } & TopicOptions,
): Promise<TopicHandle> {
  const topic = await addTopic(replayed.topics, { partitions: 3, hot: { maxRecords }, cold: 'file', ...options });
  const half = Math.floor(count / 2);
  await fill(topic, { count: half, ...(name === undefined ? {} : { name }) });
  await replayed.sweep(topic);
  await fill(topic, { from: half, count: count - half, ...(name === undefined ? {} : { name }) });
  await replayed.sweep(topic);
  return topic;
}

/** Into files below the data root, unless told otherwise; one step a batch, so that a run can be met in the middle. */
export function topicRequest(
  { deadLetterSubject }: ReplayedTopics,
  topic: TopicHandle,
  plan: Readonly<Record<string, unknown>> = {},
  sink: Readonly<Record<string, unknown>> = { type: 'file', directory: uniqueName('out') },
): TopicRequest {
  return {
    plan: {
      replay: {
        topic: topic.topic.name,
        from: 'earliest',
        durable_consumer: uniqueName('replay'),
        max_messages: 1_000_000,
        stop_after_idle_seconds: 1,
        dry_run: false,
        ...plan,
      },
    },
    target: { sink, dead_letter: { subject: deadLetterSubject } },
  };
}

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { Topics } from '../../client/topics.ts';
import { addTopic, openTestTopics } from '../integration/topics/topics.ts';
import { fill } from '../integration/topics/replayed.ts';
import type { Crash, CrashPoint } from '../support/crash-points.ts';
import { newPlace, openBench, startLocalWorker, startRun, type Bench } from '../support/fault-bench.ts';
import { tempDir } from '../support/file-end.ts';
import { natsUrl, uniqueName } from '../support/servers.ts';
import { startVictim } from '../support/victim.ts';

/**
 * A worker process is lost (SIGKILL) at a named point of a replay from a topic, partly cold. Then either another worker goes on with
 * the run, or the run is terminated and the same plan starts again where its durables stand.
 */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const long = process.env['REPLAY_TEST_LONG'] === '1';
const [partitions, count, batch, recordBytesMax] = [2, 120, 10, 100] as const;
/** Of every twenty records one is refused. */
const isBad = (id: number): boolean => id % 20 === 7;

let bench: Bench;
let topics: Topics;

beforeAll(async () => {
  // Workers of this file share it, those in processes of their own too.
  process.env['REPLAY_COLD_ROOT'] = await tempDir();
  bench = await openBench();
  topics = await openTestTopics({ env: { NATS_URL: natsUrl(), REPLAY_COLD_ROOT: process.env['REPLAY_COLD_ROOT'] } });
});

type Recovery = 'goes on' | 'starts again';
interface Cell {
  readonly point: CrashPoint;
  readonly at: number;
  readonly recovery: Recovery;
}

const short: readonly Cell[] = [
  { point: 'in_write', at: 4, recovery: 'goes on' },
  { point: 'after_write', at: 5, recovery: 'starts again' },
  { point: 'after_dead_letter', at: 2, recovery: 'starts again' },
  // The first two make the durables, the third is the ACK of a batch.
  { point: 'between_delete_and_create', at: 3, recovery: 'starts again' },
  { point: 'after_put_back', at: 4, recovery: 'goes on' },
];
const rest: readonly CrashPoint[] = [
  'before_pull',
  'after_pull',
  'during_dead_letter',
  'before_close',
  'after_close',
  'before_report',
  'in_report',
];
const cells: readonly Cell[] = long
  ? (['goes on', 'starts again'] as const).flatMap((recovery) => [
      ...short.map((cell) => ({ ...cell, recovery })),
      ...rest.map((point) => ({ point, at: 1, recovery })),
    ])
  : short;

describe.concurrent('a worker lost in the replay of a topic', () => {
  test.each(cells)('$point #$at, then the run $recovery', survives);
});

async function survives({ point, at, recovery }: Cell): Promise<void> {
  const place = await newPlace();
  const topic = await addTopic(topics, { partitions, hot: { maxRecords: 15 }, cold: 'file' });
  const name = (id: number): string => (isBad(id) ? 'x'.repeat(2 * recordBytesMax) : 'good');
  await fill(topic, { count, name });
  const sweeper = await startLocalWorker(bench, place);
  await bench.client.workflow.execute('sweepTopic', {
    taskQueue: place.taskQueue,
    workflowId: uniqueName('sweep'),
    args: [topic.topic.name],
  });
  await sweeper.stop();

  const [stream, subject] = [uniqueName('DLQ'), `dlq-${uniqueName('c')}`];
  await bench.manager.streams.add({ name: stream, subjects: [subject], duplicate_window: 3_600_000_000_000 });
  const request = {
    plan: {
      replay: {
        topic: topic.topic.name,
        from: 'earliest',
        durable_consumer: uniqueName('crash'),
        max_messages: 100_000,
        batch_size: batch,
        stop_after_idle_seconds: 1,
        dry_run: false,
        report_file: 'crash.json',
      },
    },
    target: { sink: { type: 'file', directory: 'out', max_record_bytes: recordBytesMax }, dead_letter: { subject } },
  };
  const crash: Crash = { point, at, delayMs: 1 };
  const victim = await startVictim(bench, place, { crash });
  let run = await startRun(bench.client, place, request);
  const lost = await Promise.race([victim.ended, run.result().then(() => 'reached the end' as const)]);
  expect(lost, victim.log()).toBe('SIGKILL');
  await expectNothingPassed();
  if (recovery === 'starts again') {
    await run.terminate();
    run = await startRun(bench.client, place, request);
  }
  const heir = await startLocalWorker(bench, place);
  const report = await run.result();
  await heir.stop();

  const ends = (await topic.bounds()).map(({ next }) => next);
  expect(report).toMatchObject({ state: 'completed', counts: { vanished: 0, gaps: 0, lost_body: 0 } });
  const { pulled, written, duplicate, skipped, rejected, acked, dead_lettered } = report.counts;
  expect([pulled, rejected]).toEqual([written + duplicate + skipped + rejected, dead_lettered]);
  expect(acked).toBe(pulled);
  expect(report.lanes!.map(({ cursor }) => cursor)).toEqual(ends);
  const { rows, letters } = await places();
  const bad = Array.from({ length: count }, (_, id) => id).filter(isBad).length;
  expect([rows.length, new Set(rows).size]).toEqual([count - bad, count - bad]);
  expect(letters.size).toBe(bad);
  expect(new Set([...rows, ...letters]).size).toBe(count);
  for (let partition = 0; partition < partitions; partition++) {
    const { state } = await bench.manager.streams.info(`REPLAY-TOPIC-${topic.topic.id}-${partition}`);
    expect(state.consumer_count).toBe(0);
  }

  /** Where every record is: `partition/sequence`. */
  async function places(): Promise<{ rows: string[]; letters: Set<string> }> {
    const rows = (await wholeLines(join(place.dataRoot, 'out'))).map((line) => {
      const { stream: of, sequence } = JSON.parse(line) as { stream: string; sequence: number };
      return `${of.split('-').at(-1)}/${sequence}`;
    });
    const letters = new Set<string>();
    const { state } = await bench.manager.streams.info(stream);
    for (let seq = 1; seq <= state.last_seq; seq++) {
      const { header } = await bench.manager.streams.getMessage(stream, { seq });
      letters.add(`${header.get('Replay-Source-Stream').split('-').at(-1)}/${header.get('Replay-Source-Sequence')}`);
    }
    return { rows, letters };
  }

  /** No durable stands after a record that is in neither the file nor the dead-letter stream. */
  async function expectNothingPassed(): Promise<void> {
    const { rows, letters } = await places();
    const kept = new Set([...rows, ...letters]);
    for (let partition = 0; partition < partitions; partition++) {
      const consumers = await bench.manager.consumers.list(`REPLAY-TOPIC-${topic.topic.id}-${partition}`).next();
      for (const { config } of consumers) {
        for (let sequence = 1; sequence < config.opt_start_seq!; sequence++) expect(kept).toContain(`${partition}/${sequence}`);
      }
    }
  }
}

/** A killed writer may leave a torn one at the end. */
async function wholeLines(directory: string): Promise<string[]> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith('.jsonl'));
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')));
  return texts.flatMap((text) => text.split('\n').slice(0, -1));
}

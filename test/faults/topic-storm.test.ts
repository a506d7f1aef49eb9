import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connectTopics, type TopicHandle } from '../../client/topics.ts';
import { topicsNatsMinimum } from '../../scripts/servers/locate.ts';
import { startNats } from '../../scripts/servers/nats.ts';
import { atFileEnd } from '../support/file-end.ts';
import type { ClientOrder, ClientReport } from '../support/topic-client.ts';

const long = process.env['REPLAY_TEST_LONG'] === '1';
const storm = long
  ? { producers: 4, pushes: 2_500, consumers: 3, processKills: 8, serverKills: 4 }
  : { producers: 3, pushes: 80, consumers: 2, processKills: 3, serverKills: 1 };
const recordsPerPush = 3;
const records = storm.producers * storm.pushes * recordsPerPush;

interface Seen {
  /** Place of each key, as the producers were told. */
  readonly places: Map<string, string>;
  readonly settled: { readonly partition: number; readonly first: number; readonly next: number }[];
  fenced: number;
}

/** Everything at once: each producer's pushes, consumers with short leases, processes and the server killed again and again. */
test(
  'nothing is lost, doubled or reused when clients and server are killed',
  { timeout: long ? 3_600_000 : 600_000 },
  async () => {
    const server = await startNats({ minimum: topicsNatsMinimum });
    atFileEnd(() => server.stop());
    const topics = await connectTopics({ env: { NATS_URL: server.url } });
    atFileEnd(() => topics.close());
    const topic = await topics.create('storm', { partitions: 4 });
    const seen: Seen = { places: new Map(), settled: [], fenced: 0 };
    const common = { natsUrl: server.url, topic: 'storm' };
    const clients = [
      ...Array.from({ length: storm.producers }, (_, i) =>
        startClient(seen, { ...common, kind: 'push', name: `p${i}`, pushes: storm.pushes, recordsPerPush }),
      ),
      ...Array.from({ length: storm.consumers }, () => startClient(seen, { ...common, kind: 'consume', leaseMs: 300 })),
    ];

    const kills = storm.processKills + storm.serverKills;
    for (let kill = 0; kill < kills; kill++) {
      // Spread over the whole of the work, however fast it goes.
      const part = ((kill + 1) * records) / (kills + 2);
      while (seen.places.size < part && clients.some(({ isDone }) => !isDone())) await sleep(5);
      if (kill % (kills / storm.serverKills) < 1) {
        await server.kill();
        await server.restart();
      } else clients[kill % clients.length]!.killAndStartAgain();
    }

    for (const { done } of clients.slice(0, storm.producers)) await done;
    const group = topic.group('storm');
    while ((await lagOf(group)) > 0) await sleep(50);
    for (const client of clients) client.kill();
    await assertLog(topic, seen);
    await assertSettled(topic, seen);
  },
);

async function lagOf(group: ReturnType<TopicHandle['group']>): Promise<number> {
  try {
    return (await group.positions()).reduce((sum, { lag }) => sum + lag, 0);
  } catch {
    return 1;
  }
}

/** Every key once, at the place that every answer named. */
async function assertLog(topic: TopicHandle, { places }: Seen): Promise<void> {
  const stored = new Map<string, string>();
  let count = 0;
  for (const { partition, next } of await topic.bounds()) {
    for (let from = 0; from < next;) {
      const page = await topic.read({ partition, from });
      for (const { deduplicationKey, payload, offset } of page.records) {
        expect(payload).toBe(deduplicationKey);
        stored.set(deduplicationKey, `${partition}:${offset}`);
        count++;
      }
      from = page.nextOffset;
    }
  }
  expect(count).toBe(records);
  expect(stored.size).toBe(records);
  for (const [key, place] of places) expect(stored.get(key), key).toBe(place);
}

/** No record was settled by two commits. Answers that a killed consumer did not tell are missing here, so ranges may. */
async function assertSettled(topic: TopicHandle, { settled }: Seen): Promise<void> {
  for (const { partition, next } of await topic.bounds()) {
    const ranges = settled.filter((one) => one.partition === partition).sort((a, b) => a.first - b.first);
    for (const [i, range] of ranges.entries()) expect(range.first).toBeGreaterThanOrEqual(ranges[i - 1]?.next ?? 0);
    expect(ranges.length).toBeGreaterThan(0);
    expect(ranges.at(-1)!.next).toBeLessThanOrEqual(next);
  }
  expect((await topic.group('storm').positions()).map(({ cursor }) => cursor)).toEqual(
    (await topic.bounds()).map(({ next }) => next),
  );
}

function startClient(seen: Seen, order: ClientOrder) {
  let child: ChildProcess;
  let over = false;
  let finish!: () => void;
  const done = new Promise<void>((resolve) => (finish = resolve));
  const start = (): void => {
    let isReady = false;
    child = fork(fileURLToPath(new URL('../support/topic-client.ts', import.meta.url)), {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const mine = child;
    mine.on('message', (report: ClientReport) => {
      if (report.kind !== 'done') note(seen, report);
      else if (!isReady) {
        isReady = true;
        mine.send(order);
      } else {
        over = true;
        finish();
      }
    });
  };
  start();
  const kill = (): void => void child.kill('SIGKILL');
  atFileEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    kill();
    await ended;
  });
  return {
    done,
    isDone: () => over,
    kill,
    killAndStartAgain(): void {
      kill();
      if (!over) start();
    },
  };
}

function note(seen: Seen, report: Exclude<ClientReport, { kind: 'done' }>): void {
  switch (report.kind) {
    case 'accepted':
      for (const [i, key] of report.keys.entries()) {
        const place = `${report.partition}:${report.offsets[i]!}`;
        expect(seen.places.get(key) ?? place, `${key} was told two places`).toBe(place);
        seen.places.set(key, place);
      }
      return;
    case 'settled':
      seen.settled.push(report);
      return;
    case 'fenced':
      seen.fenced++;
  }
}

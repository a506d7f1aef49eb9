import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TopicHandle, Topics } from '../../../client/topics.ts';
import { tempDir } from '../../support/file-end.ts';
import { natsUrl, uniqueName } from '../../support/servers.ts';
import { command, startProgram, type Ended } from '../cli/command-line.ts';
import { addTopic, openTestTopics, records } from './topics.ts';

let topics: Topics;

beforeAll(async () => {
  topics = await openTestTopics();
});

const commandMs = 600_000;

function topic(...words: string[]): Promise<Ended> {
  return command(['topic', ...words], { NATS_URL: natsUrl() });
}

function json(ended: Ended, status = 0): Record<string, unknown>[] {
  expect(ended).toMatchObject({ status });
  return ended.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function linesFile(...lines: readonly object[]): Promise<string> {
  const file = join(await tempDir(), 'lines.jsonl');
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return file;
}

describe('replay-stream topic', () => {
  test(
    'create, push, read, consume, commit, groups, reset, bounds, list, describe, delete',
    async () => {
      const name = uniqueName('cli');
      expect(json(await topic('create', name, '--max-age', '12h', '--max-bytes', '1MiB', '--json'))).toMatchObject([
        { name, partitions: 8, hot: { maxAgeSeconds: 43_200, maxRecords: 50_000, maxBytes: 1_048_576 } },
      ]);
      expect(await topic('create', name)).toMatchObject({ status: 2, stdout: '' });
      const file = await linesFile(
        { partitionKey: 'user-1', payload: { id: 1 }, deduplicationKey: 'd-1' },
        { partitionKey: 'b', payload: 'b' },
        { partitionKey: 'a', payload: [2], deduplicationKey: 'd-2' },
      );
      expect(json(await topic('push', name, file, '--json'))).toMatchObject([
        { partition: 4, status: 'accepted', offsets: [0, 1] },
        { partition: 3, status: 'accepted', offsets: [0] },
      ]);
      const read = await topic('read', name, '--partition', '4', '--from', '0', '--json');
      expect(json(read)).toMatchObject([
        {
          records: [
            { offset: 0, partitionKey: 'user-1', deduplicationKey: 'd-1', payload: { id: 1 } },
            { offset: 1, partitionKey: 'a', deduplicationKey: 'd-2', payload: [2] },
          ],
          nextOffset: 2,
          lag: 0,
        },
      ]);
      const place = ['--group', 'g', '--partition', '4'];
      const [page] = json(await topic('consume', name, ...place, '--limit', '1', '--json'));
      expect(page).toMatchObject({ records: [{ offset: 0 }], nextOffset: 1, lag: 1 });
      const commit = (offset: string, ...more: string[]) =>
        topic('commit', name, ...place, '--offset', offset, ...more, '--json');
      expect(json(await commit('1', '--handle', page!['handle'] as string))).toEqual([{ result: 'advanced', cursor: 1 }]);
      expect(json(await commit('0'))).toMatchObject([{ result: 'ignored' }]);
      expect(json(await commit('9'), 3)).toMatchObject([{ result: 'out_of_range' }]);
      const [lease] = json(await topic('consume', name, ...place, '--lease', '--json'));
      expect(lease).toMatchObject({ records: [{ offset: 1 }], nextOffset: 2, lag: 0, attempt: 1 });
      expect(json(await topic('consume', name, ...place, '--lease', '--json'))).toMatchObject([{ records: [], handle: null }]);
      expect(json(await commit('2'), 3)).toMatchObject([{ result: 'fenced' }]);
      expect(json(await commit('2', '--handle', lease!['handle'] as string))).toEqual([{ result: 'advanced', cursor: 2 }]);
      expect(json(await topic('reset', name, ...place, '--to', '1', '--json'))).toMatchObject([{ partition: 4, offset: 1 }]);
      expect(json(await topic('groups', name, '--json'))[4]).toMatchObject({ group: 'g', partition: 4, cursor: 1, lag: 1 });
      expect(json(await topic('bounds', name, '--json'))[4]).toEqual({ partition: 4, oldest: 0, hot: 0, next: 2 });
      expect((await topic('list')).stdout).toContain(name);
      expect(json(await topic('describe', name, '--json'))).toMatchObject([{ name, records: 3, groups: ['g'] }]);
      expect(await topic('delete', name)).toMatchObject({ status: 0 });
      const gone = await topic('bounds', name);
      expect(gone).toMatchObject({ status: 2, stdout: '' });
      expect(gone.stderr).toContain('There is no topic of this name.');
    },
    commandMs,
  );

  test(
    'numbers keep their spelling from line to line',
    async () => {
      const handle = await addTopic(topics);
      const file = join(await tempDir(), 'exact.jsonl');
      await writeFile(file, '{"partitionKey":"k","payload":{"id": 7088992364139642880, "price": 1.10}}\n');
      expect(await topic('push', handle.topic.name, file)).toMatchObject({
        status: 0,
        stdout: 'partition 0: accepted, offsets 0\n',
      });
      const { stdout } = await topic('read', handle.topic.name, '--partition', '0', '--from', '0', '--json');
      expect(stdout).toContain('"payload":{"id": 7088992364139642880, "price": 1.10}');
    },
    commandMs,
  );

  test(
    'more than 100 of a partition are rejected with status 3, and pushed with --split',
    async () => {
      const handle = await addTopic(topics);
      const file = await linesFile(...Array.from({ length: 250 }, (_, i) => ({ partitionKey: 'k', payload: i })));
      expect(json(await topic('push', handle.topic.name, file, '--json'), 3)).toMatchObject([
        { partition: 0, status: 'rejected', error: { code: 'too_many_records' } },
      ]);
      expect(json(await topic('push', handle.topic.name, file, '--split', '--json'))).toHaveLength(3);
      expect((await handle.read({ partition: 0, from: 200 })).records.at(-1)!.payload).toBe(249);
    },
    commandMs,
  );

  test(
    'wrong lines are all named, without their values, and nothing is pushed',
    async () => {
      const handle = await addTopic(topics);
      const file = await linesFile(
        { partitionKey: 'k', payload: 1 },
        { partitionKey: 7, payload: 'SECRET' },
        { partitionKey: 'k' },
        { partitionKey: 'k', payload: 1, key: 'SECRET' },
      );
      const refused = await topic('push', handle.topic.name, file);
      expect(refused).toMatchObject({ status: 2, stdout: '' });
      expect(refused.stderr).toMatch(/line 2: partitionKey.*\nline 3: payload.*\nline 4: unknown field/);
      expect(refused.stderr).not.toContain('SECRET');
      expect(await topic('push', handle.topic.name, await linesFile())).toMatchObject({ status: 2, stdout: '' });
      expect(await handle.bounds()).toMatchObject([{ next: 0 }]);
    },
    commandMs,
  );

  test(
    'an offset that cannot be read: status 3, the code on standard output',
    async () => {
      const handle = await addTopic(topics);
      await handle.push(records('a'));
      const ended = await topic('read', handle.topic.name, '--partition', '0', '--from', '5', '--json');
      expect(json(ended, 3)).toMatchObject([{ error: { code: 'out_of_range' } }]);
      expect(await topic('read', handle.topic.name, '--partition', '0', '--from', '0', '--limit', '0')).toMatchObject({
        status: 2,
      });
    },
    commandMs,
  );
});

test(
  'the example runs, and runs again without storing anything twice',
  async () => {
    const name = uniqueName('example');
    const run = async () =>
      (await startProgram(process.execPath, ['--import', 'tsx', 'examples/topic.ts', name], { NATS_URL: natsUrl() }).ended)
        .stdout;
    expect(await run()).toBe('pushed 200 orders, 200 of them new\nrevenue 39900 cents, lag 0\n');
    expect(await run()).toBe('pushed 200 orders, 0 of them new\nrevenue 0 cents, lag 0\n');
    const made: TopicHandle = await topics.open(name);
    expect(made.topic.partitions).toBe(8);
    await topics.delete(name);
  },
  commandMs,
);

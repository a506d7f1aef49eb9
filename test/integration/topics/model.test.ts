import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import type { JetStreamManager } from 'nats';
import type { Page, TopicHandle, Topics } from '../../../client/topics.ts';
import { TopicError } from '../../../core/topic-errors.ts';
import { connectTestNats } from '../../support/servers.ts';
import { TopicModel, type ModelPage } from '../../support/topic-model.ts';
import { addTopic, offsetsOf, openTestTopics, payloadsOf } from './topics.ts';

const long = process.env['REPLAY_TEST_LONG'] === '1';
const runs = long ? 500 : 25;

interface Real {
  readonly topic: TopicHandle;
  readonly manager: JetStreamManager;
}

type Command = fc.AsyncCommand<TopicModel, Real>;

let topics: Topics;
let manager: JetStreamManager;

beforeAll(async () => {
  topics = await openTestTopics();
  manager = await (await connectTestNats()).jetstreamManager();
});

const groups = ['a', 'b: 2'];
const group = fc.constantFrom(...groups);
const offset = fc.nat(30);
const limit = fc.integer({ min: 1, max: 6 });
let bodies = 0;

function push(): fc.Arbitrary<Command> {
  return fc.array(fc.constantFrom(...'abcdefghijkl'), { minLength: 1, maxLength: 5 }).map((keys): Command => {
    return named(`push ${keys.join('')}`, async (model, { topic }) => {
      const records = keys.map((key) => ({ key, body: ++bodies }));
      const offsets = offsetsOf(
        await topic.push(records.map(({ key, body }) => ({ partitionKey: '', deduplicationKey: key, payload: body }))),
      );
      expect(offsets).toEqual(model.push(records));
    });
  });
}

function read(): fc.Arbitrary<Command> {
  return fc.tuple(offset, limit).map(([from, most]): Command => {
    return named(`read ${from} ${most}`, async (model, { topic }) => {
      expect(await outcome(topic.read({ partition: 0, from, limit: most }))).toEqual(model.read(from, most));
    });
  });
}

function consume(): fc.Arbitrary<Command> {
  return fc.tuple(group, limit).map(([name, most]): Command => {
    return named(`consume ${name} ${most}`, async (model, { topic }) => {
      expect(await outcome(topic.group(name).consume({ partition: 0, limit: most }))).toEqual(model.consume(name, most));
    });
  });
}

function commit(): fc.Arbitrary<Command> {
  return fc.tuple(group, offset).map(([name, nextOffset]): Command => {
    return named(`commit ${name} ${nextOffset}`, async (model, { topic }) => {
      const { result, cursor } = await topic.group(name).commit({ partition: 0, nextOffset });
      expect(result).toBe(model.commit(name, nextOffset));
      expect(cursor).toBe(model.cursors.get(name) ?? null);
    });
  });
}

function reset(): fc.Arbitrary<Command> {
  return fc.tuple(group, offset).map(([name, to]): Command => {
    return named(`reset ${name} ${to}`, async (model, { topic }) => {
      const done = topic.group(name).reset({ to: 'offset', offset: to }, { by: 'model' });
      expect(await outcome(done.then(() => 'done' as const))).toBe(model.reset(name, to));
    });
  });
}

/** Takes a range, and settles it or gives it back: the position is that of a commit, or stays. */
function lease(): fc.Arbitrary<Command> {
  return fc.tuple(group, limit, fc.boolean()).map(([name, most, settles]): Command => {
    return named(`lease ${name} ${most} ${settles}`, async (model, { topic }) => {
      const at = model.cursors.get(name) ?? model.oldest;
      const taken = await outcome(topic.group(name).lease({ partition: 0, limit: most }));
      if (at < model.oldest) return expect(taken).toBe('truncated');
      if (at >= model.next) return expect(taken).toBeNull();
      const page = model.read(at, most) as ModelPage;
      model.cursors.set(name, at);
      if (taken === null || typeof taken === 'string') throw new Error(`no lease: ${taken}`);
      // What another lease of this group gave back comes first, in its own size.
      expect(page.bodies.slice(0, taken.records.length)).toEqual(payloadsOf(taken));
      if (!settles) return expect(await taken.release()).toBe(true);
      expect(await taken.commit()).toMatchObject({ result: model.commit(name, taken.nextOffset) });
    });
  });
}

function purge(): fc.Arbitrary<Command> {
  return offset.map((before): Command => {
    return named(`sweep before ${before}`, async (model, { topic }) => {
      const oldest = Math.min(before, model.next);
      if (oldest <= model.oldest) return;
      await manager.streams.purge(`REPLAY-TOPIC-${topic.topic.id}-0`, { seq: oldest + 1 });
      model.oldest = oldest;
      expect(await topic.bounds()).toMatchObject([{ oldest, hot: oldest, next: model.next }]);
    });
  });
}

test('any sequence of calls answers as a list in memory does', { timeout: 1_200_000 }, async () => {
  const commands = fc.commands([push(), push(), push(), read(), consume(), commit(), reset(), lease(), purge()], {
    maxCommands: 40,
  });
  await fc.assert(
    fc.asyncProperty(commands, async (steps) => {
      const topic = await addTopic(topics);
      const model = new TopicModel();
      await fc.asyncModelRun(() => ({ model, real: { topic, manager } }), steps);
      expect(await outcome(topic.read({ partition: 0, from: model.oldest }))).toEqual(model.read(model.oldest, 100));
    }),
    { numRuns: runs },
  );
});

function named(name: string, run: (model: TopicModel, real: Real) => Promise<void>): Command {
  return { check: () => true, run, toString: () => name };
}

/** A page as the model has it, any other value as it is, and the code of an error. */
async function outcome<T>(act: Promise<T>): Promise<(T extends Page ? ModelPage : T) | string> {
  try {
    const value = await act;
    if (!isPage(value)) return value as T extends Page ? ModelPage : T;
    return { bodies: payloadsOf(value) as number[], nextOffset: value.nextOffset, lag: value.lag } as T extends Page
      ? ModelPage
      : T;
  } catch (error) {
    if (error instanceof TopicError) return error.code;
    throw error;
  }
}

function isPage(value: unknown): value is Page {
  return typeof value === 'object' && value !== null && 'lag' in value && 'records' in value;
}

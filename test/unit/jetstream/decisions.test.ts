import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReplayFault } from '../../../core/errors.ts';
import { judge } from '../../../jetstream/acknowledgements.ts';
import { readNatsSettings } from '../../../jetstream/connection.ts';
import { deniedFault, faultOfApi } from '../../../jetstream/faults.ts';
import { bisect, riseAt, samplePoints } from '../../../jetstream/range.ts';
import { mayReplace } from '../../../jetstream/replay-consumer.ts';
import { factsOf, type StreamInfo } from '../../../jetstream/stream.ts';

interface Kept {
  readonly sequence: number;
  readonly timeNanos: bigint;
}

const placesOf = (kept: readonly Kept[]) => (sequence: number) =>
  Promise.resolve(kept.find((place) => place.sequence >= sequence) ?? null);

describe('places in a range', () => {
  test('halving finds what a walk finds, whatever was deleted', async () => {
    const stream = fc
      .uniqueArray(fc.integer({ min: 1, max: 400 }), { maxLength: 60 })
      .map((all) => all.toSorted((a, b) => a - b));
    await fc.assert(
      fc.asyncProperty(stream, fc.integer({ min: 0, max: 90 }), async (sequences, wanted) => {
        const kept = sequences.map((sequence, i) => ({ sequence, timeNanos: BigInt(Math.floor(i * 1.5)) }));
        const time = BigInt(wanted);
        const expected = kept.find(({ timeNanos }) => timeNanos >= time)?.sequence ?? 401;
        expect(await bisect({ firstSequence: 1, lastSequence: 400 }, time, placesOf(kept))).toBe(expected);
      }),
    );
  });

  test('a clock set back is noticed', async () => {
    const kept = Array.from({ length: 100 }, (_, i) => ({ sequence: i + 1, timeNanos: BigInt(i < 50 ? 1_000 + i : i) }));
    expect(await riseAt({ first: 1, last: 100 }, placesOf(kept))).toBe(false);
    expect(await riseAt({ first: 1, last: 50 }, placesOf(kept))).toBe(true);
    expect(await riseAt({ first: 51, last: 100 }, placesOf(kept))).toBe(true);
    expect(await riseAt({ first: 1, last: 0 }, placesOf(kept))).toBe(true);
  });

  test('samples hold both ends', () => {
    expect(samplePoints(5, 5, 32)).toEqual([5]);
    expect(samplePoints(6, 5, 32)).toEqual([]);
    expect(samplePoints(1, 3, 32)).toEqual([1, 2, 3]);
    const many = samplePoints(10, 1_000_000, 32);
    expect([many.length, many[0], many.at(-1)]).toEqual([32, 10, 1_000_000]);
  });
});

test('an ACK is confirmed by nothing but the floor', () => {
  const receipt = {
    stream: 'S',
    consumer: 'c',
    incarnation: 'one',
    runs: [5, 6],
    count: 6,
    firstSequence: 5,
    lastSequence: 10,
    lastConsumerSequence: 6,
  };
  const state = (floor: number, delivered: number, incarnation = 'one') => ({
    incarnation,
    consumer: {
      ack_floor: { stream_seq: floor, consumer_seq: 0 },
      delivered: { stream_seq: delivered, consumer_seq: 0 },
    },
  });
  expect(judge(state(10, 10), receipt)).toBe('confirmed');
  expect(judge(state(12, 20), receipt)).toBe('confirmed');
  expect(judge(state(9, 10), receipt)).toBe('waiting');
  expect(judge(state(0, 9), receipt)).toBe('deferred');
  expect(judge(state(10, 10, 'two'), receipt)).toBe('deferred');
  expect(judge({ incarnation: 'one', consumer: null }, receipt)).toBe('deferred');
});

test('only the same replay may replace a durable', () => {
  const owner = { cluster: 'c', namespace: 'n', workflowId: 'w', firstRunId: 'r', fingerprint: 'f' };
  expect(mayReplace(owner, owner)).toBe(true);
  expect(mayReplace({ ...owner, firstRunId: 'other', workflowId: 'other' }, owner)).toBe(true);
  expect(mayReplace({ ...owner, fingerprint: 'other' }, owner)).toBe(false);
  expect(mayReplace({ ...owner, namespace: 'other' }, owner)).toBe(false);
  expect(mayReplace({ ...owner, cluster: 'other' }, owner)).toBe(false);
  expect(mayReplace(null, owner)).toBe(false);
});

describe('stream facts', () => {
  const info = (changes: object): StreamInfo => ({
    created: '2026-05-01T10:00:00.5Z',
    config: { name: 'S', retention: 'limits' },
    state: { messages: 1, bytes: 10, first_seq: 1, last_seq: 1 },
    ...changes,
  });

  test('the incarnation has nine decimals; what the server leaves out has a value', () => {
    expect(factsOf(info({}), 7n)).toEqual({
      stream: 'S',
      incarnation: '2026-05-01T10:00:00.500000000Z',
      firstSequence: 1,
      lastSequence: 1,
      messages: 1,
      bytes: 10,
      retention: 'limits',
      subjects: [],
      allowDirect: false,
      isMirror: false,
      origins: [],
      consumerLimits: { inactiveThresholdMs: null, maxAckPending: null },
      serverTimeNanos: 7n,
    });
  });

  test('sequences beyond 2^53-1 are refused', () => {
    const state = { messages: 1, bytes: 1, first_seq: 1, last_seq: 2 ** 53 };
    expect(() => factsOf(info({ state }), 0n)).toThrow(
      new ReplayFault('stream_unsupported', 'its sequences are beyond 2^53-1'),
    );
  });
});

describe('faults', () => {
  test('of the API by their codes', () => {
    expect(faultOfApi({ code: 404, err_code: 10059 }, 'unexpected').code).toBe('stream_missing');
    expect(faultOfApi({ code: 503, err_code: 10008 }, 'consumer_refused').code).toBe('nats_timeout');
    expect(faultOfApi({ code: 503, err_code: 10039 }, 'consumer_refused').code).toBe('nats_timeout');
    expect(faultOfApi({ code: 400, err_code: 10093 }, 'consumer_refused')).toMatchObject({
      code: 'consumer_refused',
      detail: 'JetStream error 10093',
    });
  });

  test('of permissions name the operation, never stream or consumer', () => {
    const detail = (subject: string) => deniedFault({ operation: 'publish', subject }).detail;
    expect(detail('$JS.API.CONSUMER.MSG.NEXT.SECRET.replay')).toBe('publishing is not allowed: $JS.API.CONSUMER.MSG.NEXT');
    expect(detail('$JS.hub.API.STREAM.INFO.SECRET')).toBe('publishing is not allowed: $JS.API.STREAM.INFO');
    expect(detail('$JS.ACK.SECRET.replay.1.2.0.0.0')).toBe('publishing is not allowed: $JS.ACK');
    expect(detail('secret.letters')).toBe(
      'publishing is not allowed: a subject outside the API of JetStream (dead letters, or the destination stream)',
    );
  });
});

describe('settings of the environment', () => {
  const read = (env: Record<string, string>) => {
    const parsed = readNatsSettings(env);
    return parsed.ok ? parsed.value : parsed.problems.map(({ path }) => path);
  };

  test('several servers, none, users in addresses', () => {
    expect(read({})).toMatchObject({ servers: ['nats://127.0.0.1:4222'], login: { kind: 'none' }, tls: null });
    expect(read({ NATS_URL: 'one:4222, nats://two, tls://three:5' })).toMatchObject({
      servers: ['nats://one:4222', 'nats://two', 'nats://three:5'],
      tls: {},
    });
    expect(read({ NATS_URL: 'nats://me:p%40ss@one:4222,nats://me:p%40ss@[::1]:4223' })).toMatchObject({
      servers: ['nats://one:4222', 'nats://[::1]:4223'],
      login: { kind: 'password', user: 'me', password: 'p@ss' },
    });
    expect(read({ NATS_URL: 'nats://t0ken@one' })).toMatchObject({ login: { kind: 'token', token: 't0ken' } });
  });

  test('exactly one way to log in, and whole pairs; every problem at once, no values', () => {
    expect(read({ NATS_USER: 'u', NATS_PASSWORD: 'p' })).toMatchObject({ login: { kind: 'password' } });
    expect(read({ NATS_CREDS: 'c', NATS_TOKEN: '' })).toMatchObject({ login: { kind: 'creds', file: 'c' } });
    expect(read({ NATS_CREDS: 'c', NATS_TOKEN: 't', NATS_CERT: 'x' })).toEqual(['NATS_CREDS', 'NATS_KEY']);
    expect(read({ NATS_USER: 'u' })).toEqual(['NATS_PASSWORD']);
    expect(read({ NATS_PASSWORD: 'p', NATS_KEY: 'k' })).toEqual(['NATS_USER', 'NATS_CERT']);
    expect(read({ NATS_URL: 'ws://one,nats://a:secret@two,nats://b:secret@three' })).toEqual(['NATS_URL', 'NATS_URL']);
    const all = readNatsSettings({
      NATS_URL: 'nats://u:hunter2@one,ftp://hunter2',
      NATS_TOKEN: 'hunter2',
      NATS_PASSWORD: 'hunter2',
    });
    expect(JSON.stringify(all)).not.toContain('hunter2');
  });
});

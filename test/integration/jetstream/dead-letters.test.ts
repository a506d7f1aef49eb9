import { StorageType, type StreamConfig } from 'nats';
import { describe, expect, test } from 'vitest';
import type { Reject } from '../../../core/record.ts';
import { createSource, type DeadLetter } from '../../../jetstream/source.ts';
import { readStored } from '../../../jetstream/stored-message.ts';
import { openLink } from '../../../jetstream/link.ts';
import { readHeaders } from '../../../jetstream/headers.ts';
import { atFileEnd } from '../../support/file-end.ts';
import { connectTestNats, natsUrl, uniqueName } from '../../support/servers.ts';
import {
  faultCode,
  fill,
  headerPublish,
  makeStream,
  never,
  publishRaw,
  pullRequest,
  ready,
  type TestStream,
} from './streams.ts';

const nc = await connectTestNats();
const source = createSource(nc);
const link = openLink(nc);

async function makeLetter(
  stream: TestStream,
  sequence: number,
  subject: string,
  changes: Partial<Reject> = {},
): Promise<DeadLetter> {
  const spec = await ready(source, stream.name, ['>']);
  const { records } = await source.pull(pullRequest(spec), never);
  const record = records.find(({ position }) => position === sequence)!;
  return {
    subject,
    source: { stream: stream.name, incarnation: spec.incarnation },
    reject: { sequence, time: record.timeNanos.toString(), code: 'value_too_long', field: 'payload', ...changes },
    replayId: uniqueName('replay-id'),
    plan: spec.durable,
    run: 'run-1',
    attempt: 2,
  };
}

async function dlq(config: Partial<StreamConfig> = {}): Promise<{ stream: TestStream; subject: string }> {
  const stream = await makeStream(nc, config);
  return { stream, subject: `${stream.root}.letters` };
}

describe('a dead letter', () => {
  test("holds the body, the original headers and where it came from; the server's names are set aside", async () => {
    const origin = await makeStream(nc, { allow_rollup_hdrs: true });
    const block = Buffer.from(
      `NATS/1.0\r\nTrace: a\r\nTrace: b\r\nNats-Msg-Id: m-1\r\nnats-expected-Stream: ${origin.name}\r\nReplay-Id: older\r\nIndented:   x \r\n\r\n`,
    );
    const body = Buffer.from([0xff, 0x00, 0x80]);
    await publishRaw(natsUrl(), headerPublish(`${origin.root}.x`, block, body));
    const { stream, subject } = await dlq({ allow_rollup_hdrs: true });
    const letter = await makeLetter(origin, 1, subject);
    expect(await source.publishDeadLetter(letter, never)).toEqual({ duplicate: false, body: 'kept' });
    expect(await source.publishDeadLetter(letter, never)).toEqual({ duplicate: true, body: 'kept' });
    const stored = (await readStored(link, stream.name, 1))!;
    expect((await source.describe(stream.name)).messages).toBe(1);
    expect(stored.body.equals(body)).toBe(true);
    const headers = readHeaders(stored.headerBlock);
    expect(Object.fromEntries(headers)).toEqual({
      'Nats-Msg-Id': [letter.replayId],
      'Replay-Schema': ['1'],
      'Replay-Id': [letter.replayId],
      'Replay-Plan': [letter.plan],
      'Replay-Run': ['run-1'],
      'Replay-Source-Stream': [origin.name],
      'Replay-Source-Incarnation': [letter.source.incarnation],
      'Replay-Source-Subject': [`${origin.root}.x`],
      'Replay-Source-Sequence': ['1'],
      'Replay-Source-Time': [expect.stringMatching(/^2.*\.\d{9}Z$/)],
      'Replay-Reason': ['value_too_long'],
      'Replay-Field': ['payload'],
      'Replay-Attempt': ['2'],
      Trace: ['a', 'b'],
      'Replay-Original-Nats-Msg-Id': ['m-1'],
      'Replay-Original-nats-expected-Stream': [origin.name],
      'Replay-Original-Replay-Id': ['older'],
      Indented: ['  x '],
    });
  });

  test('of a message that is gone, or is no longer the same, tells only where it was', async () => {
    const origin = await makeStream(nc);
    await fill(nc, origin, 2, () => 'x');
    const { stream, subject } = await dlq();
    const gone = await makeLetter(origin, 1, subject);
    await origin.jsm.streams.deleteMessage(origin.name, 1);
    expect(await source.publishDeadLetter(gone, never)).toEqual({ duplicate: false, body: 'lost' });
    const other = await makeLetter(origin, 2, subject, { time: '1' });
    expect(await source.publishDeadLetter(other, never)).toEqual({ duplicate: false, body: 'lost' });
    const stored = (await readStored(link, stream.name, 1))!;
    expect(stored.body).toHaveLength(0);
    const headers = readHeaders(stored.headerBlock);
    expect(headers.get('Replay-Body')).toEqual(['lost']);
    expect(headers.get('Replay-Source-Sequence')).toEqual(['1']);
    expect(headers.has('Replay-Source-Subject')).toBe(false);
  });

  test('of a recreated or missing stream is not stored', async () => {
    const origin = await makeStream(nc);
    await fill(nc, origin, 1, () => 'x');
    const { stream, subject } = await dlq();
    const letter = await makeLetter(origin, 1, subject);
    await origin.jsm.streams.delete(origin.name);
    expect(await faultCode(source.publishDeadLetter(letter, never))).toBe('stream_missing');
    await origin.jsm.streams.add({ name: origin.name, subjects: [`${origin.root}.>`] });
    await fill(nc, origin, 1, () => 'x');
    expect(await faultCode(source.publishDeadLetter(letter, never))).toBe('stream_recreated');
    expect((await source.describe(stream.name)).messages).toBe(0);
  });

  test('larger than its stream allows leaves the body out and says so', async () => {
    const origin = await makeStream(nc);
    await nc.jetstream().publish(`${origin.root}.x`, Buffer.alloc(50_000, 1));
    const { stream, subject } = await dlq({ max_msg_size: 2_000 });
    const letter = await makeLetter(origin, 1, subject);
    expect(await source.publishDeadLetter(letter, never)).toEqual({ duplicate: false, body: 'too_large' });
    const stored = (await readStored(link, stream.name, 1))!;
    expect(stored.body).toHaveLength(0);
    expect(readHeaders(stored.headerBlock).get('Replay-Body')).toEqual(['too_large']);
    expect(readHeaders(stored.headerBlock).get('Replay-Source-Subject')).toEqual([`${origin.root}.x`]);
  });

  test('larger than the server allows once its headers are added leaves the body out', async () => {
    const origin = await makeStream(nc);
    await nc.jetstream().publish(`${origin.root}.x`, Buffer.alloc(nc.info!.max_payload - 10, 1));
    const { subject } = await dlq();
    const letter = await makeLetter(origin, 1, subject);
    expect(await source.publishDeadLetter(letter, never)).toMatchObject({ body: 'too_large' });
  });

  test('with original headers near the limit leaves those out too', async () => {
    const origin = await makeStream(nc);
    const block = Buffer.from(`NATS/1.0\r\nHuge: ${'h'.repeat(65_400)}\r\n\r\n`);
    await publishRaw(natsUrl(), headerPublish(`${origin.root}.x`, block, Buffer.from('body')));
    const { stream, subject } = await dlq();
    const letter = await makeLetter(origin, 1, subject);
    expect(await source.publishDeadLetter(letter, never)).toMatchObject({ body: 'too_large' });
    const headers = readHeaders((await readStored(link, stream.name, 1))!.headerBlock);
    expect(headers.get('Replay-Headers')).toEqual(['too_large']);
    expect(headers.has('Huge')).toBe(false);
  });

  test('a body of 900 KB survives', async () => {
    const origin = await makeStream(nc);
    const body = Buffer.alloc(900 * 1024, 7);
    await nc.jetstream().publish(`${origin.root}.x`, body);
    const { stream, subject } = await dlq();
    expect(await source.publishDeadLetter(await makeLetter(origin, 1, subject), never)).toMatchObject({ body: 'kept' });
    expect((await readStored(link, stream.name, 1))!.body.equals(body)).toBe(true);
  });

  test('is refused by name: unbound, full, sealed, too small for anything', async () => {
    const origin = await makeStream(nc);
    await fill(nc, origin, 1, () => 'x');
    expect(await faultCode(source.publishDeadLetter(await makeLetter(origin, 1, uniqueName('nowhere')), never))).toBe(
      'dead_letter_unbound',
    );
    const full = await dlq({ max_msgs: 1, discard: 'new' as never, storage: StorageType.Memory });
    await source.publishDeadLetter(await makeLetter(origin, 1, full.subject), never);
    await expect(source.publishDeadLetter(await makeLetter(origin, 1, full.subject), never)).rejects.toMatchObject({
      code: 'dead_letter_refused',
      detail: 'the dead-letter stream is full',
    });
    const sealed = await dlq();
    await sealed.stream.jsm.streams.update(sealed.stream.name, { sealed: true } as object);
    await expect(source.publishDeadLetter(await makeLetter(origin, 1, sealed.subject), never)).rejects.toMatchObject({
      code: 'dead_letter_refused',
      detail: 'the dead-letter stream is sealed',
    });
    const small = await dlq({ max_msg_size: 50 });
    expect(await faultCode(source.publishDeadLetter(await makeLetter(origin, 1, small.subject), never))).toBe(
      'dead_letter_refused',
    );
  });

  test('a mere subscriber on the subject is not taken for a stream', async () => {
    const subject = uniqueName('chat');
    const subscription = nc.subscribe(subject, { callback: (_, message) => void message.respond('hello') });
    atFileEnd(async () => subscription.unsubscribe());
    await nc.flush();
    expect(await source.isBound(subject)).toBe(false);
    const origin = await makeStream(nc);
    await fill(nc, origin, 1, () => 'x');
    expect(await faultCode(source.publishDeadLetter(await makeLetter(origin, 1, subject), never))).toBe('dead_letter_refused');
  });
});

test('isBound and duplicateWindowMs ask without storing', async () => {
  const { stream, subject } = await dlq({ duplicate_window: 600_000_000_000 });
  expect(await source.isBound(subject)).toBe(true);
  expect(await source.isBound(uniqueName('nowhere'))).toBe(false);
  expect((await source.describe(stream.name)).lastSequence).toBe(0);
  expect(await source.duplicateWindowMs(subject)).toBe(600_000);
  expect(await source.duplicateWindowMs(uniqueName('nowhere'))).toBeNull();
});

import { describe, expect, test } from 'vitest';
import { ackSubject } from '../../../jetstream/acknowledgements.ts';
import { readDeliveryTokens } from '../../../jetstream/envelope.ts';
import { headerLines, readHeaders, readMessageId, readStatus } from '../../../jetstream/headers.ts';
import { othersPulled, readWord } from '../../../jetstream/pull.ts';

describe('the reply subject of a delivery', () => {
  const expected = { deliveries: 2, streamSequence: 12_345, consumerSequence: 67, timeNanos: 1_780_000_000_123_456_789n };

  test.each([
    ['nine tokens', '$JS.ACK.ORDERS.replay.2.12345.67.1780000000123456789.8'],
    ['eleven tokens, with domain and account', '$JS.ACK.hub.ABCDEFGH.ORDERS.replay.2.12345.67.1780000000123456789.8'],
    ['twelve tokens', '$JS.ACK._.ABCDEFGH.ORDERS.replay.2.12345.67.1780000000123456789.8.tail'],
    ['names of digits', '$JS.ACK.1.2.2.12345.67.1780000000123456789.8'],
    ['names beyond ASCII', '$JS.ACK.Größe.ünder.2.12345.67.1780000000123456789.8'],
  ])('%s', (_, reply) => {
    expect(readDeliveryTokens(Buffer.from(reply))).toEqual(expected);
  });

  test('times below a second and large sequences are exact', () => {
    expect(readDeliveryTokens(Buffer.from('$JS.ACK.S.c.1.9007199254740991.1.5.0'))).toEqual({
      deliveries: 1,
      streamSequence: Number.MAX_SAFE_INTEGER,
      consumerSequence: 1,
      timeNanos: 5n,
    });
  });

  test.each([
    '',
    '_INBOX.abc',
    '$JS.ACK.',
    '$JS.FC.S.c.1',
    '$JS.ACK.S.c.1.2.3.4',
    '$JS.ACK.S.c.1.2.3.x.0',
    '$JS.ACK.a.b.c.d.e.f.g.h',
    `$JS.ACK${'.1'.repeat(40)}`,
  ])('others are none: %s', (reply) => {
    expect(readDeliveryTokens(Buffer.from(reply))).toBeNull();
  });

  test('of an ACK has nine tokens, the stream sequence, and a consumer sequence that follows no floor', () => {
    const subject = ackSubject('$JS.ACK.S.c.', 77);
    expect(subject.split('.')).toHaveLength(9);
    expect(readDeliveryTokens(Buffer.from(subject))).toMatchObject({ streamSequence: 77, consumerSequence: 0 });
  });
});

describe('a header block', () => {
  const block = (lines: string) => Buffer.from(`NATS/1.0\r\n${lines}\r\n`);

  test('keeps names, order, repetitions, empty values and inner spaces', () => {
    expect([...readHeaders(block('B: 1\r\na:2\r\nB:  3 \r\nC:\r\n: nameless\r\nno colon\r\nD: a:b\r\n'))]).toEqual([
      ['B', ['1', ' 3 ']],
      ['a', ['2']],
      ['C', ['']],
      ['', ['nameless']],
      ['D', ['a:b']],
    ]);
    expect(readHeaders(Buffer.alloc(0)).size).toBe(0);
    expect(readHeaders(block('')).size).toBe(0);
  });

  test.each([
    ['Nats-Msg-Id: id', 'id'],
    ['NATS-MSG-ID: id', 'id'],
    ['nats-msg-id:id', 'id'],
    ['Nats-Msg-Id: größe', 'größe'],
    ['nats-msg-id: other\r\nNats-Msg-Id: exact', 'exact'],
    ['Nats-Msg-Id: first\r\nNats-Msg-Id: second', 'first'],
    ['X-Nats-Msg-Id: no', undefined],
    ['Nats-Msg-Id: ', undefined],
    ['Trace: Nats-Msg-Id: no', undefined],
    ['', undefined],
  ])('message id of %j is %j', (line, expected) => {
    const bytes = Buffer.concat([block(line === '' ? '' : `${line}\r\n`), Buffer.from('\r\nNats-Msg-Id: in the body\r\n')]);
    expect(readMessageId(bytes, block(line === '' ? '' : `${line}\r\n`).length)).toBe(expected);
  });

  test('lines are given as stored', () => {
    const lines = [...headerLines(Buffer.from('NATS/1.0\r\nA:  x \r\nB:\xe9\r\njunk\r\n\r\n', 'latin1'))];
    expect(lines.map(({ name, line }) => [name, line.toString('latin1')])).toEqual([
      ['A', 'A:  x '],
      ['B', 'B:\xe9'],
    ]);
  });

  test('status', () => {
    expect(readStatus(Buffer.from('NATS/1.0 404 No Messages\r\n\r\n'))).toEqual({ code: 404, description: 'No Messages' });
    expect(readStatus(Buffer.from('NATS/1.0 503\r\n\r\n'))).toEqual({ code: 503, description: '' });
    expect(readStatus(block('A: 1\r\n'))).toEqual({ code: 0, description: '' });
  });
});

test.each([
  ['100 Idle Heartbeat', 'heartbeat'],
  ['404 No Messages', 'nothing_more'],
  ['408 Request Timeout', 'nothing_more'],
  ['408 Requests Pending', 'nothing_more'],
  ['409 Message Size Exceeds MaxBytes', 'too_large'],
  ['409 Batch Completed', 'full'],
  ['409 Exceeded MaxRequestBatch of 30', 'over_limit'],
  ['409 Exceeded MaxRequestExpires of 1s', 'over_limit'],
  ['409 Exceeded MaxRequestMaxBytes of 10', 'over_limit'],
  ['409 Exceeded MaxWaiting', 'broken'],
  ['409 Exceeded MaxAckPending', 'broken'],
  ['409 Consumer Deleted', 'broken'],
  ['409 Leadership Change', 'broken'],
  ['409 Server Shutdown', 'broken'],
  ['409 Consumer is push based', 'broken'],
  ['423 Nats-Wrong-Pin-Id', 'broken'],
  ['503', 'broken'],
])('the status %s means %s', (line, word) => {
  expect(readWord(readStatus(Buffer.from(`NATS/1.0 ${line}\r\n\r\n`)))).toBe(word);
});

test("a delivery that we do not have was somebody else's", () => {
  const info = (consumer: number) => ({ delivered: { consumer_seq: consumer, stream_seq: 100 } });
  expect(othersPulled(info(7), [{ consumerSequence: 6 }, { consumerSequence: 7 }])).toBe(false);
  expect(othersPulled(info(8), [{ consumerSequence: 6 }, { consumerSequence: 7 }])).toBe(true);
  expect(othersPulled(info(8), [])).toBe(false);
});

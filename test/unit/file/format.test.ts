import { expect, test } from 'vitest';
import { formatLines, formRecord } from '../../../sinks/file/format.ts';
import type { ReplayRecord } from '../../../core/record.ts';
import { bytesOf, makeRecord } from '../../contract/records.ts';

const context = { plan: 'orders-replay-2026-05', run: 'run-1' };
const lineOf = (record: ReplayRecord) => formatLines([formRecord(record)], context).toString();
const payloadOf = (body: string | Uint8Array) => {
  const payload = typeof body === 'string' ? bytesOf(body) : body;
  return lineOf(makeRecord(1, { payload }))
    .replace(/^.*"payload_format":/, '')
    .replace(/,"plan":.*\n$/, '');
};

test('the line of the reference', () => {
  const record = makeRecord(1000, {
    subject: 'orders.created',
    timeNanos: 1_777_629_603_123_456_789n,
    messageId: 'o-1',
    headers: new Map([
      ['Nats-Msg-Id', ['o-1']],
      ['Trace', ['a', 'b']],
    ]),
    payload: bytesOf('{"id":1.10}'),
  });
  expect(lineOf(record)).toBe(
    '{"stream":"ORDERS","incarnation":"2026-05-01T10:00:00.000000001Z","sequence":1000,"subject":"orders.created",' +
      '"time":"2026-05-01T10:00:03.123456789Z","message_id":"o-1","headers":{"Nats-Msg-Id":["o-1"],"Trace":["a","b"]},' +
      '"payload_format":"json","payload":{"id":1.10},"plan":"orders-replay-2026-05","run":"run-1"}\n',
  );
});

test('JSON is inlined token for token, a space for each byte of a line break', () => {
  expect(payloadOf('{"b":1.10,"a":9007199254740993,"b2":1E400}')).toBe(
    '"json","payload":{"b":1.10,"a":9007199254740993,"b2":1E400}',
  );
  expect(payloadOf('{\r\n  "a" : [1,\n2]\n}\n')).toBe('"json","payload":{    "a" : [1, 2] } ');
  expect(payloadOf('"\\ud800\\n"')).toBe('"json","payload":"\\ud800\\n"');
});

test('text is a JSON string, the rest base64', () => {
  expect(payloadOf('')).toBe('"text","payload":""');
  expect(payloadOf('a"b\n\u0000👋')).toBe('"text","payload":"a\\"b\\n\\u0000👋"');
  expect(payloadOf('{"a":1,"a":2}')).toBe('"text","payload":"{\\"a\\":1,\\"a\\":2}"');
  expect(payloadOf(Uint8Array.of(0xff, 0xfe, 0x00, 0x80))).toBe('"base64","payload":"//4AgA=="');
  const window = new Uint8Array([1, 0xff, 0xfe, 2]).subarray(1, 3);
  expect(payloadOf(window)).toBe('"base64","payload":"//4="');
});

test('an absent message id is null, no headers are an empty object, times before 1970 have nine decimals too', () => {
  const { messageId: _, ...record } = makeRecord(1, { headers: new Map(), timeNanos: -1n });
  const line = JSON.parse(lineOf(record)) as Record<string, unknown>;
  expect(line).toMatchObject({ message_id: null, headers: {}, time: '1969-12-31T23:59:59.999999999Z' });
});

test('times within one second, and over its end', () => {
  const times = [0n, 1n, 999_999_999n, 1_000_000_000n, 500_000_000n].map((timeNanos) => makeRecord(1, { timeNanos }));
  const lines = formatLines(times.map(formRecord), context).toString().trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { time: string }).time.slice(17))).toEqual([
    '00.000000000Z',
    '00.000000001Z',
    '00.999999999Z',
    '01.000000000Z',
    '00.500000000Z',
  ]);
});

test('the buffer grows with text that takes more room than its bytes', () => {
  const records = Array.from({ length: 50 }, (_, i) => makeRecord(i + 1, { payload: new Uint8Array(5_000).fill(1) }));
  const lines = formatLines(records.map(formRecord), context).toString().split('\n');
  expect(lines).toHaveLength(51);
  for (const line of lines.slice(0, 50)) expect((JSON.parse(line) as { payload: string }).payload).toBe('\u0001'.repeat(5_000));
});

import type { ReplayRecord } from '../../core/record.ts';

const INCARNATION = '2026-05-01T10:00:00.000000001Z';

/** 2026-05-01T10:00:00.000000007Z. */
const FIRST_NANOS = 1_777_629_600_000_000_007n;

/** A record of stream ORDERS; what is given wins. */
export function makeRecord(sequence: number, given: Partial<ReplayRecord> = {}): ReplayRecord {
  return {
    stream: 'ORDERS',
    incarnation: INCARNATION,
    sequence: BigInt(sequence),
    subject: ['orders.created', 'orders.updated', 'orders.closed'][sequence % 3]!,
    timeNanos: FIRST_NANOS + BigInt(sequence) * 1_000_001n,
    messageId: `order-${sequence}`,
    headers: new Map([
      ['Nats-Msg-Id', [`order-${sequence}`]],
      ['Trace', ['a', 'b']],
    ]),
    payload: bytesOf(JSON.stringify({ id: sequence, customer: `customer ${sequence % 17}`, total: sequence / 100 })),
    redelivered: false,
    ...given,
  };
}

export function makeBatch(first: number, count: number, given: Partial<ReplayRecord> = {}): ReplayRecord[] {
  return Array.from({ length: count }, (_, i) => makeRecord(first + i, given));
}

/** One record a body. */
export function makeRecordsOf(bodies: readonly Uint8Array[], first = 1): ReplayRecord[] {
  return bodies.map((payload, i) => makeRecord(first + i, { payload }));
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const NESTING = 100_000;

/** Bodies that a careless writer changes, by what is special about them. */
export const bodies = {
  plain: [
    '',
    ' ',
    'plain text',
    'text with "quotes" and \\ backslashes',
    'two\nlines\r\nof text',
    'null',
    'true',
    '"a string"',
    '[]',
  ].map(bytesOf),
  notUtf8: [
    Uint8Array.of(0xff, 0xfe, 0x00, 0x80),
    Uint8Array.of(0x80),
    Uint8Array.of(0xc0, 0x80),
    Uint8Array.of(0xed, 0xa0, 0x80),
    Uint8Array.of(0xf4, 0x90, 0x80, 0x80),
    Uint8Array.of(0x22, 0xff, 0x22),
    Uint8Array.from({ length: 256 }, (_, i) => i),
  ],
  numbers: [
    '{"id":7088992364139642880}',
    '{"id":9007199254740993,"max":18446744073709551615,"min":-9223372036854775808}',
    '{"price":1.10,"rate":1.0,"zero":-0,"tiny":1E-7}',
    '1e400',
    '{"huge":1e400}',
    '123456789012345678901234567890.123456789012345678901234567890',
  ].map(bytesOf),
  oddJson: [
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    '{"b":1,"a":2,"1":3,"0":4,"__proto__":5}',
    '{"id":NaN}',
    '{"id":Infinity}',
    '{"id":1,}',
    "{'id':1}",
    '\ufeff{"bom":1}',
    '{\n  "pretty": [\r\n    1,\n\t2\n  ]\n}\n',
    '{"line":"a\\nb\\r\\n"}',
  ].map(bytesOf),
  deep: [
    '['.repeat(NESTING) + ']'.repeat(NESTING),
    '{"a":'.repeat(NESTING) + '1' + '}'.repeat(NESTING),
    '['.repeat(101) + ']'.repeat(101),
  ].map(bytesOf),
  characters: [
    'a\u0000b',
    '{"nul":"\\u0000"}',
    '\u0001\u001f\u007f\u0080\u009f',
    'subject 👋',
    '{"subject":"👋","name":"área","long":"𝔘𝔫𝔦"}',
    '{"lone":"\\ud800","other":"\\udfff","pair":"\\ud83d\\ude00"}',
    '"\\ud800"',
    '\u2028\u2029\ufeff\ufffd',
  ].map(bytesOf),
} as const;

/** Envelopes that a careless writer changes. */
export function oddEnvelopes(first: number): ReplayRecord[] {
  const { messageId: _, ...withoutId } = makeRecord(first);
  return [
    { ...withoutId, headers: new Map() },
    makeRecord(first + 1, { messageId: 'ABC', headers: new Map([['nats-msg-id', ['ABC']]]) }),
    makeRecord(first + 2, { messageId: 'abc', headers: new Map([['Nats-Msg-Id', ['abc']]]) }),
    makeRecord(first + 3, {
      headers: new Map([
        ['2', ['second']],
        ['1', ['first', '']],
        ['__proto__', ['x']],
        ['Grüße-👋', ['"quoted", with \\ and ,"payload":']],
      ]),
    }),
    makeRecord(first + 4, { timeNanos: 1n, subject: 'orders.$x_y-z.👋' }),
    makeRecord(first + 5, { timeNanos: 9_223_372_036_854_775_807n, redelivered: true }),
  ];
}

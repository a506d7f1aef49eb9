import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classifyPayload, isStrictJson, isUtf8, payloadText } from '../../../core/payload.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe('strict JSON', () => {
  test.each([
    'null',
    'true',
    'false',
    '0',
    '-0',
    '1.10',
    '1e400',
    '1E-7',
    '-12.5e+3',
    '""',
    '[]',
    '{}',
    '[[],[{}]]',
    ' \t\r\n1 \n',
    '"\\ud800"',
    '"\\u0000"',
    '"\\"\\\\\\/\\b\\f\\n\\r\\t"',
    '{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}',
    '{"":1}',
    '{"__proto__":1}',
    '{"a":1,"A":2}',
    '{"é":1,"e\u0301":2}',
    '{"\\u0061":1,"b":2}',
    '{"a\\"b":1,"a":2}',
    '"\u007f\u2028👋"',
  ])('%j is', (text) => {
    expect(isStrictJson(bytesOf(text))).toBe(true);
    expect(classifyPayload(bytesOf(text))).toBe('json');
  });

  test.each([
    '',
    ' ',
    'NaN',
    'Infinity',
    '-Infinity',
    '01',
    '-',
    '1.',
    '.5',
    '1e',
    '1e+',
    '+1',
    '0x1',
    '1_000',
    'nul',
    'nulll',
    'True',
    "'a'",
    '"a',
    '"\\x"',
    '"\\u12g4"',
    '"\\u123"',
    '"a\nb"',
    '"a\tb"',
    '"a\u0000b"',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[',
    ']',
    '{',
    '}',
    '[}',
    '{]',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,}',
    '{a:1}',
    '{1:1}',
    '{"a":1 "b":2}',
    '1 2',
    '{}{}',
    '[]]',
    '\ufeff1',
    '/**/1',
    '1//',
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":1}',
    '[{"x":{"k":1,"j":2,"k":3}}]',
    '{"":1,"":2}',
    '\v1',
    '\u00a01',
    '"\\',
    '"\\u',
    '"\\u000',
  ])('%j is not', (text) => {
    expect(isStrictJson(bytesOf(text))).toBe(false);
    expect(classifyPayload(bytesOf(text))).toBe('text');
  });

  test('a document of many keys is settled by their number', () => {
    const keys = Array.from({ length: 500 }, (_, i) => `"key-${i}":${i}`);
    expect(isStrictJson(bytesOf(`{${keys.join(',')}}`))).toBe(true);
    expect(isStrictJson(bytesOf(`{${[...keys, '"key-70":1'].join(',')}}`))).toBe(false);
    expect(isStrictJson(bytesOf(`{${[...keys, '"key-\\u0037":1'].join(',')}}`))).toBe(false);
    expect(isStrictJson(bytesOf(`[{"n":{${keys.join(',')}},"m":{${keys.join(',')}}},{"\\u006e":1}]`))).toBe(true);
  });

  test.each([100_000, 1_000_000])('%i levels do not overflow', (levels) => {
    expect(isStrictJson(bytesOf('['.repeat(levels) + ']'.repeat(levels)))).toBe(true);
    expect(isStrictJson(bytesOf('{"a":'.repeat(levels) + '1' + '}'.repeat(levels)))).toBe(true);
    expect(isStrictJson(bytesOf('['.repeat(levels)))).toBe(false);
    expect(isStrictJson(bytesOf('{"\\u0061":'.repeat(levels / 10) + '1' + '}'.repeat(levels / 10)))).toBe(true);
  });

  test('agrees with JSON.parse on whatever comes', () => {
    const pieces = [
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"',
      '\\',
      '"a"',
      '"b"',
      '"\\u0061"',
      '1',
      '-',
      '.',
      'e',
      'null',
      ' ',
      '\n',
      'é',
      'u',
    ];
    const mutated = fc.tuple(fc.json(), fc.nat(), fc.nat(3), fc.constantFrom(...pieces)).map(([json, at, cut, piece]) => {
      const start = at % (json.length + 1);
      return json.slice(0, start) + piece + json.slice(start + cut);
    });
    const small = fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.oneof(fc.json(), mutated, small), (text) => {
        expect(isStrictJson(bytesOf(text))).toBe(slowStrictJson(new TextDecoder().decode(bytesOf(text))));
      }),
      { numRuns: 10_000 },
    );
  });
});

describe('text and binary', () => {
  test('a byte order mark is kept', () => {
    const bytes = Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d);
    expect(classifyPayload(bytes)).toBe('text');
    expect(payloadText(bytes)).toBe('\ufeff{}');
  });

  test.each([
    [[0xff, 0xfe, 0x00, 0x80]],
    [[0xc0, 0x80]],
    [[0xe0, 0x80, 0x80]],
    [[0xed, 0xa0, 0x80]],
    [[0xf0, 0x80, 0x80, 0x80]],
    [[0xf4, 0x90, 0x80, 0x80]],
    [[0xf8, 0x88, 0x80, 0x80, 0x80]],
    [[0xc3]],
    [[0xe2, 0x82]],
    [[0x22, 0xff, 0x22]],
  ])('%j is binary', (bytes) => {
    expect(classifyPayload(Uint8Array.from(bytes))).toBe('binary');
  });

  test('agrees with TextDecoder on whatever comes', () => {
    const edges = fc.constantFrom(
      0x00,
      0x41,
      0x7f,
      0x80,
      0x8f,
      0x90,
      0x9f,
      0xa0,
      0xbf,
      0xc1,
      0xc2,
      0xdf,
      0xe0,
      0xed,
      0xef,
      0xf0,
      0xf4,
      0xf5,
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 12 }),
      fc.array(edges, { maxLength: 8 }).map((list) => Uint8Array.from(list)),
    );
    fc.assert(
      fc.property(fc.oneof(bytes, fc.string({ unit: 'binary' }).map(bytesOf)), (candidate) => {
        expect(isUtf8(candidate)).toBe(decodes(candidate));
      }),
      { numRuns: 10_000 },
    );
  });
});

/** The slow way round: JSON.parse for the grammar, and as many colons outside strings as it kept keys. */
function slowStrictJson(text: string): boolean {
  try {
    const colons = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
    return countKeys(JSON.parse(text)) === colons;
  } catch {
    return false;
  }
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((count, child) => count + countKeys(child), own);
}

function decodes(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonProblems, parseJson, readJson } from '../../../core/json.ts';
import type { JsonValue } from '../../../core/json.ts';
import { fileBytesMax, fileDepthMax, problemsMax } from '../../../core/limits.ts';
import { formatProblems } from '../../../core/problems.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function problemsOf(input: string | Uint8Array): string {
  const parsed = parseJson(typeof input === 'string' ? bytes(input) : input);
  return parsed.ok ? 'accepted' : formatProblems(parsed.problems);
}

describe('refused, with line, column and what is expected', () => {
  test.each([
    ['empty file', '', 'line 1, column 1: the file is empty; expected a JSON object'],
    ['only space', ' \n\t', 'line 1, column 1: the file is empty; expected a JSON object'],
    ['trailing text', '{} x', 'line 1, column 4: expected nothing more after the end of the document'],
    ['second document', '{}\n{}', 'line 2, column 1: expected nothing more after the end of the document'],
    ['cut off', '{"a": [1,', 'a[1]: line 1, column 10: the file ends here; expected a value'],
    [
      'cut off in a string',
      '{"a": "b',
      'a: line 1, column 9: the file ends here; expected a double quote that ends the string',
    ],
    ['NaN', '{"a": {"b": NaN}}', 'a.b: line 1, column 13: expected a number; NaN and Infinity are not JSON'],
    ['-Infinity', '{"a": [-Infinity]}', 'a[0]: line 1, column 8: expected a number; NaN and Infinity are not JSON'],
    ['comma at the end', '{"a": 1,}', 'line 1, column 9: expected a field name in double quotes'],
    ['comma at the end of a list', '[1,]', '[1]: line 1, column 4: expected a value; no comma stands after the last one'],
    ['single quotes', "{'a': 1}", 'line 1, column 2: expected a field name in double quotes'],
    ['single-quoted value', `{"a": 'b'}`, 'a: line 1, column 7: expected a value; strings stand in double quotes'],
    ['comment', '{"a": // why\n1}', 'a: line 1, column 7: expected a value; comments are not JSON'],
    ['no colon', '{"a" 1}', 'line 1, column 6: expected a colon after the field name'],
    ['no comma', '{"a": 1 "b": 2}', 'line 1, column 9: expected a comma or } after the value'],
    ['raw line break in a string', '{"a": "x\ny"}', 'a: line 1, column 9: expected an escape'],
    ['bad escape', '{"a": "\\x"}', 'a: line 1, column 8: expected one of \\"'],
    ['bad unicode escape', '{"a": "\\u12g4"}', 'a: line 1, column 8: expected four hexadecimal digits'],
    ['leading zero', '{"a": 01}', 'a: line 1, column 7: expected a number as JSON writes it'],
    ['plus sign', '{"a": +1}', 'a: line 1, column 7: expected a value'],
    ['bare point', '{"a": 1.}', 'a: line 1, column 7: expected a number as JSON writes it'],
    ['hexadecimal', '{"a": 0x1F}', 'a: line 1, column 7: expected a number as JSON writes it'],
    ['digits apart', '{"a": 1_000}', 'a: line 1, column 7: expected a number as JSON writes it'],
    ['word that goes on', '{"a": nullable}', 'a: line 1, column 7: expected a value'],
    ['capital word', '{"a": True}', 'a: line 1, column 7: expected a value'],
    ['no-break space', '{\u00a0}', 'line 1, column 2: expected a field name in double quotes'],
    ['byte order mark', '\uFEFF{}', 'line 1, column 1: the file begins with a byte order mark; expected UTF-8 without one'],
    ['a line of Windows', '{\r\n\r\n  "é😀": x}', '["é😀"]: line 3, column 9: expected a value'],
  ])('%s', (_name, text, expected) => {
    expect(problemsOf(text)).toContain(expected);
  });

  test('bytes that are not UTF-8', () => {
    const text = new Uint8Array([...bytes('{\n"a": "'), 0xff, 0xfe, ...bytes('"}')]);
    expect(problemsOf(text)).toBe('line 2, column 7: the bytes from here on are not UTF-8; expected a file saved as UTF-8');
    expect(problemsOf(new Uint8Array([0xff, 0xfe, 0x7b, 0x00]))).toContain(
      'line 1, column 1: the bytes from here on are not UTF-8',
    );
    expect(problemsOf(new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]))).toContain('not UTF-8');
  });

  test('a file of 1,048,577 bytes, before it is parsed', () => {
    expect(problemsOf(new Uint8Array(fileBytesMax + 1))).toBe(
      'line 1, column 1: the file has 1,048,577 bytes; expected at most 1,048,576',
    );
    expect(parseJson(bytes(`"${'x'.repeat(fileBytesMax - 2)}"`)).ok).toBe(true);
  });

  test('more levels than allowed, without a stack overflow', () => {
    expect(parseJson(bytes('['.repeat(fileDepthMax) + ']'.repeat(fileDepthMax))).ok).toBe(true);
    expect(problemsOf('['.repeat(fileDepthMax + 1))).toContain('expected at most 64 levels');
    expect(problemsOf('{"a":'.repeat(100_000))).toContain('expected at most 64 levels');
  });

  test('every repeated key at once, by its decoded name', () => {
    expect(problemsOf('{"a": 1,\n "b": {"c": 1, "\\u0063": 2},\n "a": 3, "a": 4}')).toBe(
      [
        'b.c: line 2, column 16: the field stands here again (first in line 2); expected once',
        'a: line 3, column 2: the field stands here again (first in line 1); expected once',
        'a: line 3, column 10: the field stands here again (first in line 1); expected once',
      ].join('\n'),
    );
  });

  test('repeated keys before a fault of grammar are told too', () => {
    expect(problemsOf('{"a": 1, "a": 2, "b" }').split('\n')).toHaveLength(2);
  });

  test('a hundred thousand repeated keys stay a short list and take no time', () => {
    const started = performance.now();
    expect(problemsOf(`{${'"a":1,'.repeat(170_000)}"b":2}`).split('\n').length).toBeLessThanOrEqual(problemsMax + 2);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test.each(['1.0', '1e3', '1.0000000000000000001', '-0.0', '1e-400', '9007199254740993.0'])(
    'whole number written %s',
    (text) => {
      expect(problemsOf(`{"a": ${text}}`)).toBe(
        'a: line 1, column 7: expected a whole number without fraction and exponent (1000, not 1000.0 or 1e3)',
      );
    },
  );

  test('a number beyond any double', () => {
    expect(problemsOf('[1e400]')).toContain('[0]: line 1, column 2: expected a number that fits in 64 bits');
  });
});

describe('accepted', () => {
  test('integers beyond 2^53-1 keep every digit', () => {
    expect(parseJson(bytes('[9007199254740991, 9007199254740993, -7088992364139642880]'))).toEqual({
      ok: true,
      value: [9007199254740991, 9007199254740993n, -7088992364139642880n],
    });
  });

  test('__proto__ is an ordinary key', () => {
    const parsed = parseJson(bytes('{"__proto__": {"polluted": true}, "constructor": 1}'));
    if (!parsed.ok) throw new Error('refused');
    expect(Object.keys(parsed.value as object)).toEqual(['__proto__', 'constructor']);
    expect(Object.getPrototypeOf(parsed.value)).toBe(Object.prototype);
    expect((parsed.value as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test('escapes, lone surrogates and C1 controls, as JSON allows them', () => {
    const text = '["\\ud800", "\\u0000\\b\\/", "\u007f\u0085\u2028", "👋"]';
    expect(parseJson(bytes(text))).toEqual({ ok: true, value: JSON.parse(text) as unknown });
  });
});

test('a cut path is what is shown', () => {
  const { findings } = readJson(bytes('{"password": {"hunter2": 1, "hunter2": 2}}'));
  expect(jsonProblems(findings, (path) => path.slice(0, 1))[0]!.path).toBe('password');
});

describe('properties', () => {
  test('agrees with JSON.parse on valid text', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, '\t', '\r\n '), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const reading = readJson(bytes(text));
        expect(asNumbers(reading.value)).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });

  test('accepts what JSON.parse accepts, refuses what it refuses, on mutilated text', () => {
    const fragment = fc.constantFrom(
      ...'{}[]",:\\ \n\t-+.eE0123nulltruefals\u0001\u00a0é😀'.split(''),
      '"a"',
      'null',
      '\\u00e9',
      '//',
    );
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        if (/\p{Surrogate}/u.test(text)) return;
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        expect(readJson(bytes(text)).value !== undefined).toBe(valid);
      }),
      { numRuns: 5_000 },
    );
  });

  test('never throws on any bytes, and says something when it refuses', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 60 }), fc.string({ unit: 'binary' }).map(bytes)), (input) => {
        const parsed = parseJson(input);
        expect(parsed.ok || parsed.problems.length > 0).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

function asNumbers(value: JsonValue | undefined): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(asNumbers);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, asNumbers(item)]));
}

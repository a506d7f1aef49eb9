import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalNumber, findToken, pointerSteps, stringOf } from '../../../core/json-token.ts';

const at = (json: string, pointer: string) => findToken(json, pointerSteps(pointer))?.text;

test('values keep their spelling', () => {
  const json = '{ "id" : 7088992364139642880, "a":{"b":[1.10, {"c":"x\\"}]"}, [ ] ,-0e5]},"":null, "a/b":true,"m~n":false}';
  expect(at(json, '/id')).toBe('7088992364139642880');
  expect(at(json, '/a/b/0')).toBe('1.10');
  expect(at(json, '/a/b/1/c')).toBe('"x\\"}]"');
  expect(at(json, '/a/b/2')).toBe('[ ]');
  expect(at(json, '/a/b/3')).toBe('-0e5');
  expect(at(json, '/')).toBe('null');
  expect(at(json, '/a~1b')).toBe('true');
  expect(at(json, '/m~0n')).toBe('false');
  expect(at('[1]', '')).toBe('[1]');
  for (const missing of ['/x', '/a/b/4', '/a/b/01', '/a/b/-', '/id/0', '/a/b/0/c']) expect(at(json, missing)).toBeUndefined();
});

test('a key is found whatever escapes it is spelt with', () => {
  expect(at('{"\\u0061":1}', '/a')).toBe('1');
  expect(at('{"__proto__":{"x":2}}', '/__proto__/x')).toBe('2');
});

test('depth costs no stack', () => {
  const depth = 100_000;
  expect(at(`{"a":${'['.repeat(depth)}${']'.repeat(depth)},"b":1}`, '/b')).toBe('1');
});

test('whatever JSON.parse finds is found', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }),
      fc.nat(),
      fc.constantFrom(0, 2),
      (object, pick, indent) => {
        const keys = Object.keys(object);
        const key = keys[pick % keys.length]!;
        const pointer = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        const token = findToken(JSON.stringify(object, null, indent), pointerSteps(pointer))!;
        expect(JSON.parse(token.text)).toEqual(JSON.parse(JSON.stringify(object[key])));
        if (token.kind === 'string') expect(stringOf(token)).toBe(object[key]);
      },
    ),
  );
});

test('equal numbers have one spelling, others have another', () => {
  expect(['1.10', '11e-1', '1.1', '0.11E+1'].map(canonicalNumber)).toEqual(['11e-1', '11e-1', '11e-1', '11e-1']);
  expect(['0', '-0', '0.00', '0e9'].map(canonicalNumber)).toEqual(['0', '0', '0', '0']);
  expect(canonicalNumber('1e3')).toBe(canonicalNumber('1000.0'));
  expect(canonicalNumber('9007199254740993')).not.toBe(canonicalNumber('9007199254740992'));
  expect(canonicalNumber('-5')).not.toBe(canonicalNumber('5'));
});

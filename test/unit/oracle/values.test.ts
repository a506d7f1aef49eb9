import { describe, expect, test } from 'vitest';
import type { ColumnValue } from '../../../sinks/sql/columns.ts';
import { classOf } from '../../../sinks/oracle/table.ts';
import { giveValue, keyText, storedKeyText } from '../../../sinks/oracle/values.ts';
import type { Given } from '../../../sinks/oracle/values.ts';

interface Type {
  readonly length?: number;
  readonly scale?: number;
  readonly emptyString?: 'reject' | 'null';
  readonly unicode?: boolean;
}

function give(
  value: ColumnValue,
  type: string,
  { length = 4_000, scale, emptyString = 'reject', unicode = true }: Type = {},
): Given {
  const column = { name: 'C', class: classOf(type, { length, scale: scale ?? null }), nullable: true };
  return giveValue(value, column, { emptyString, unicode });
}

/** The text or number that is bound; `null`, `empty`, or the code of the refusal. */
function said(given: Given): string {
  if (!given.ok) return given.code;
  const { bound } = given;
  if (bound === null || bound.kind === 'empty') return bound === null ? 'null' : 'empty';
  if (bound.kind === 'bytes') return `bytes ${Buffer.from(bound.bytes).toString('hex')}`;
  return bound.kind === 'text' ? bound.text : `integer ${bound.value}`;
}

const token = (text: string): ColumnValue => {
  const kind = text.startsWith('"') ? 'string' : /^[tf]/.test(text) ? 'boolean' : /^[[{]/.test(text) ? 'object' : 'number';
  return { kind: 'token', token: { kind, text } };
};

describe('numbers', () => {
  const digits38 = '12345678901234567890123456789012345678';
  test.each([
    ['1.10', 'NUMBER', {}, '11E-1'],
    ['-0', 'NUMBER', {}, '0'],
    ['1e3', 'NUMBER', {}, '1E3'],
    ['18446744073709551615', 'NUMBER', { scale: 0 }, '18446744073709551615'],
    [digits38, 'NUMBER', {}, digits38],
    [`0.${digits38}`, 'NUMBER', {}, `${digits38}E-38`],
    [`${digits38}9`, 'NUMBER', {}, 'value_invalid'],
    [`${digits38}0`, 'NUMBER', {}, `${digits38}E1`],
    ['1.239', 'NUMBER', { scale: 2 }, 'value_invalid'],
    ['1.23', 'NUMBER', { scale: 2 }, '123E-2'],
    ['1.5', 'NUMBER', { scale: 0 }, 'value_invalid'],
    ['1234', 'NUMBER', { scale: -2 }, 'value_invalid'],
    ['1200', 'NUMBER', { scale: -2 }, '12E2'],
    ['1e125', 'NUMBER', {}, '1E125'],
    ['1e126', 'NUMBER', {}, 'value_invalid'],
    ['1e400', 'NUMBER', {}, 'value_invalid'],
    ['1e-130', 'NUMBER', {}, '1E-130'],
    ['1e-131', 'NUMBER', {}, 'value_invalid'],
    ['1e99999999999999999999', 'NUMBER', {}, 'value_invalid'],
    ['0.1', 'BINARY_DOUBLE', {}, '1E-1'],
    ['1e309', 'BINARY_DOUBLE', {}, 'value_invalid'],
    ['1e39', 'BINARY_FLOAT', {}, 'value_invalid'],
    ['1.10', 'VARCHAR2', {}, '1.10'],
    ['1.10', 'CLOB', {}, '1.10'],
    ['1.10', 'JSON', {}, '1.10'],
    ['"1.10"', 'NUMBER', {}, '11E-1'],
    ['"0x10"', 'NUMBER', {}, 'value_invalid'],
    ['"NaN"', 'NUMBER', {}, 'value_invalid'],
    ['"Infinity"', 'BINARY_DOUBLE', {}, 'value_invalid'],
    ['true', 'NUMBER', {}, '1'],
    ['false', 'NUMBER', {}, '0'],
    ['true', 'VARCHAR2', {}, 'true'],
    ['{"a":1}', 'NUMBER', {}, 'value_invalid'],
  ])('%s into %s %j: %s', (text, type, options, expected) => {
    expect(said(give(token(text), type, options))).toBe(expected);
  });

  test('sequences and times go in as integers', () => {
    expect(said(give({ kind: 'integer', value: 18446744073709551615n }, 'NUMBER', { scale: 0 }))).toBe(
      'integer 18446744073709551615',
    );
    expect(said(give({ kind: 'time', nanos: 7n }, 'NUMBER'))).toBe('integer 7');
    expect(said(give({ kind: 'integer', value: 7n }, 'VARCHAR2'))).toBe('7');
    expect(said(give({ kind: 'integer', value: 7n }, 'DATE'))).toBe('value_invalid');
  });
});

describe('times', () => {
  const text = '"2026-05-01T12:00:00.123456789+02:00"';
  test.each([
    ['TIMESTAMP(9) WITH TIME ZONE', '2026-05-01T10:00:00.123456789+00:00'],
    ['TIMESTAMP(6) WITH LOCAL TIME ZONE', '2026-05-01T10:00:00.123456000+00:00'],
    ['TIMESTAMP(3)', '2026-05-01T10:00:00.123000000'],
    ['TIMESTAMP(0)', '2026-05-01T10:00:00.000000000'],
    ['DATE', '2026-05-01T10:00:00'],
    ['VARCHAR2', '2026-05-01T12:00:00.123456789+02:00'],
  ])('%s', (type, expected) => {
    expect(said(give(token(text), type))).toBe(expected);
  });

  test('what is no time is refused', () => {
    for (const wrong of ['"yesterday"', '"2026-05-01"', '20260501', '""'])
      expect(said(give(token(wrong), 'DATE'))).toBe('value_invalid');
  });
});

describe('texts and bytes', () => {
  const bytes = (...values: number[]): ColumnValue => ({ kind: 'bytes', bytes: Uint8Array.from(values) });
  test.each([
    [token('""'), 'VARCHAR2', {}, 'value_invalid'],
    [token('""'), 'VARCHAR2', { emptyString: 'null' } as const, 'null'],
    [token('""'), 'CLOB', {}, 'empty'],
    [token('""'), 'BLOB', {}, 'empty'],
    [token('""'), 'RAW', {}, 'value_invalid'],
    [bytes(), 'BLOB', {}, 'empty'],
    [bytes(), 'RAW', { emptyString: 'null' } as const, 'null'],
    [bytes(0xff, 0), 'BLOB', {}, 'bytes ff00'],
    [bytes(0xff, 0), 'VARCHAR2', {}, 'value_invalid'],
    [bytes(0xff, 0), 'RAW', { length: 1 }, 'value_too_long'],
    [bytes(0x61), 'CLOB', {}, 'a'],
    [token('"12345"'), 'VARCHAR2', { length: 4 }, 'value_too_long'],
    [token('"éé"'), 'VARCHAR2', { length: 3 }, 'value_too_long'],
    [token('"éé"'), 'NVARCHAR2', { length: 4 }, 'éé'],
    [token('"\\ud800"'), 'CLOB', {}, 'value_invalid'],
    [token('"é"'), 'VARCHAR2', { unicode: false }, 'value_invalid'],
    [token('"é"'), 'NVARCHAR2', { unicode: false }, 'é'],
    [token('"a\\u0000b"'), 'VARCHAR2', {}, 'a\0b'],
    [token('"x"'), 'JSON', {}, '"x"'],
    [token('{"a":1}'), 'JSON', {}, '{"a":1}'],
    [token('{"a":1}'), 'VARCHAR2', {}, '{"a":1}'],
    [null, 'CLOB', {}, 'null'],
  ])('%j into %s %j: %s', (value, type, options, expected) => {
    expect(said(give(value, type, options))).toBe(expected);
  });
});

test('keys are equal where the column holds them to be', () => {
  const number = { name: 'ID', class: classOf('NUMBER', { length: 22, scale: null }), nullable: false };
  const text = { name: 'ID', class: classOf('VARCHAR2', { length: 20, scale: null }), nullable: false };
  expect(keyText({ kind: 'text', text: '11E-1' }, number)).toBe(storedKeyText('1.1', number));
  expect(keyText({ kind: 'text', text: '5E-1' }, number)).toBe(storedKeyText('.5', number));
  expect(keyText({ kind: 'text', text: '-5E-1' }, number)).toBe(storedKeyText('-.5', number));
  expect(keyText({ kind: 'integer', value: 1000n }, number)).toBe(storedKeyText('1000', number));
  expect(keyText({ kind: 'text', text: 'a ' }, text)).not.toBe(storedKeyText('a', text));
});

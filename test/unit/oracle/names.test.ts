import { describe, expect, test } from 'vitest';
import { foldName, nameProblem, parseTable, quoteTable, tableProblem } from '../../../sinks/oracle/names.ts';

test.each([
  ['orders', 'ORDERS'],
  ['Orders_2', 'ORDERS_2'],
  ['größe', 'GRÖSSE'],
  ['"orders"', 'orders'],
  ['"Order Lines"', 'Order Lines'],
  ['"a.b"', 'a.b'],
])('the name %s is kept as %s', (name, kept) => {
  expect(nameProblem(name)).toBeUndefined();
  expect(foldName(name)).toBe(kept);
});

test.each([
  '',
  '""',
  ' orders',
  'or ders',
  '1st',
  '_x',
  'a-b',
  'a"b',
  '"a"b"',
  '"a\u0000"',
  'T; drop',
  'n'.repeat(129),
  `"${'é'.repeat(65)}"`,
])('the name %j is refused', (name) => {
  expect(nameProblem(name)).toBeDefined();
});

describe('tables', () => {
  test.each([
    ['orders', '"ORDERS"'],
    ['shop.orders', '"SHOP"."ORDERS"'],
    ['"Shop".orders', '"Shop"."ORDERS"'],
    ['shop."a.b"', '"SHOP"."a.b"'],
    [`${'s'.repeat(128)}.${'t'.repeat(128)}`, `"${'S'.repeat(128)}"."${'T'.repeat(128)}"`],
  ])('%s', (text, quoted) => {
    expect(tableProblem(text)).toBeUndefined();
    expect(quoteTable(parseTable(text))).toBe(quoted);
  });

  test.each(['a.b.c', '.orders', 'shop.', 'shop..orders', '"unclosed.orders'])('%j is refused', (text) => {
    expect(tableProblem(text)).toBeDefined();
  });
});

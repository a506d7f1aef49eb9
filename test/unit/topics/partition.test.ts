import { describe, expect, test } from 'vitest';
import { groupByPartition, partitionOf } from '../../../core/partition.ts';

describe('hash fnv1a-utf16-v1', () => {
  test.each([
    ['', 5],
    ['a', 4],
    ['b', 3],
    ['user-1', 4],
    ['user-42', 3],
    ['order-1001', 4],
    ['tenant/acme', 0],
    ['customer-7', 1],
    ['hello', 3],
    ['foobar', 0],
    ['café', 4],
    ['日本', 4],
    ['😀', 0],
  ])('%j of 8 is in partition %d', (key, partition) => {
    expect(partitionOf(key, 8)).toBe(partition);
  });

  test('10,000 users fall evenly', () => {
    const counts = Array.from({ length: 8 }, () => 0);
    for (let i = 0; i < 10_000; i++) counts[partitionOf(`user-${i}`, 8)]!++;
    for (const count of counts) {
      expect(count).toBeGreaterThanOrEqual(1_150);
      expect(count).toBeLessThanOrEqual(1_350);
    }
  });

  test('a push is grouped by partition, each group in its order', () => {
    const keys = ['a', 'b', 'user-1'].map((partitionKey) => ({ partitionKey }));
    expect([...groupByPartition(keys, 8)]).toEqual([
      [4, [0, 2]],
      [3, [1]],
    ]);
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { metricCatalogue } from '../../core/metrics.ts';

/** What ships in deploy/ and cannot run here is checked by what it names. */

const read = (file: string): string => readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');

describe('dashboard and alert rules', () => {
  const files = ['grafana/durable-replay.json', 'prometheus/alerts.yml'];

  test.each(files)('%s names only metrics that there are', (file) => {
    const names = [...read(file).matchAll(/\breplay_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|count|sum)$/, ''));
    expect(names.length).toBeGreaterThan(5);
    expect(Object.keys(metricCatalogue)).toEqual(expect.arrayContaining(names));
  });

  test.each(files)('%s asks only for labels that the metrics have', (file) => {
    const labelled = [...read(file).matchAll(/\b(replay_[a-z_]+)\{(\w+)/g)];
    expect(labelled.length).toBeGreaterThan(0);
    for (const [, name, label] of labelled)
      expect(metricCatalogue[name as keyof typeof metricCatalogue].labels, name).toContain(label);
  });

  test('every panel has an expression', () => {
    const { panels } = JSON.parse(read('grafana/durable-replay.json')) as { panels: { targets: { expr: string }[] }[] };
    for (const { targets } of panels) expect(targets.map(({ expr }) => expr).join('')).not.toBe('');
  });
});

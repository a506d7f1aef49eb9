import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { metricCatalogue } from '../../core/metrics.ts';
import { settingsSchema } from '../../platform/settings.ts';

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

describe('containers and manifests', () => {
  const files = ['compose.yaml', 'kubernetes/worker.yaml', 'kubernetes/autoscaling.yaml', 'prometheus/alerts.yml'];
  const documents = (file: string) => parseAllDocuments(read(file));
  const all = [...files.map(read), read('Containerfile')].join('\n');

  test.each(files)('%s is YAML', (file) => {
    expect(documents(file).flatMap(({ errors }) => errors)).toEqual([]);
  });

  test('name only settings that there are', () => {
    const named = [...all.matchAll(/\bREPLAY_[A-Z_]+/g)].map(([name]) => name);
    const known = [...Object.keys(settingsSchema.shape), 'REPLAY_SECRET_MYSQL', 'REPLAY_SECRET_ORACLE'];
    const ofCompose = ['REPLAY_MYSQL_PASSWORD', 'REPLAY_ORACLE_PASSWORD'];
    expect([...known, ...ofCompose]).toEqual(expect.arrayContaining(named));
  });

  test('pin their images', () => {
    const images = [...all.matchAll(/^\s*(?:image:|FROM) (\S+)/gm)].map(([, image]) => image!);
    expect(images.length).toBeGreaterThan(4);
    for (const image of images) expect(image).toMatch(/:\d/);
  });

  test('the image is built of what is there, on a Node that the package takes', () => {
    const containerfile = read('Containerfile');
    const { engines, bin } = JSON.parse(read('../package.json')) as { engines: { node: string }; bin: Record<string, string> };
    expect(containerfile).toContain(`"${bin['replay-stream']}"`);
    const major = Number(/^FROM node:(\d+)/m.exec(containerfile)![1]);
    expect(major).toBe(Number(/\d+/.exec(engines.node)![0]));
    for (const file of ['package.json', 'package-lock.json', '.npmrc']) expect(() => read(`../${file}`)).not.toThrow();
    const ignored = read('../.dockerignore').split('\n');
    for (const folder of ['scripts', 'sinks', 'workflows', 'client', 'worker']) expect(ignored).not.toContain(folder);
  });

  test('the worker may write where its folders are, is probed at its metrics, and has time to drain', () => {
    const [, deployment] = documents('kubernetes/worker.yaml').map((document) => document.toJS() as unknown) as [
      unknown,
      {
        spec: {
          template: {
            spec: {
              terminationGracePeriodSeconds: number;
              containers: [
                {
                  ports: { name: string; containerPort: number }[];
                  readinessProbe: { httpGet: { port: string } };
                  volumeMounts: { mountPath: string; readOnly?: boolean }[];
                },
              ];
            };
          };
        };
      },
    ];
    const { containers, terminationGracePeriodSeconds } = deployment.spec.template.spec;
    const [{ ports, readinessProbe, volumeMounts }] = containers;
    expect(terminationGracePeriodSeconds).toBeGreaterThan(10);
    const port = ports.find(({ name }) => name === readinessProbe.httpGet.port)!.containerPort;
    expect(all).toContain(`REPLAY_METRICS_ADDRESS: 0.0.0.0:${port}`);
    const writable = volumeMounts.filter(({ readOnly }) => readOnly !== true).map(({ mountPath }) => mountPath);
    for (const [, folder] of read('Containerfile').matchAll(/REPLAY_(?:DATA|REPORT)_ROOT=(\S+)/g))
      expect(writable).toContain(folder);
  });
});

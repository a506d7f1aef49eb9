import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkCertified } from '../../../activities/describe-checks.ts';
import type { Deps } from '../../../activities/deps.ts';
import { ReplayFault } from '../../../core/errors.ts';
import { parseTarget, type ReplayTarget } from '../../../core/target.ts';
import { CERTIFICATION_FORMAT } from '../../../sinks/certification.ts';
import { loadSinkPackages } from '../../../sinks/packages.ts';
import { findSinkSpec, sinkSpecs } from '../../../sinks/registry.ts';
import { createTargets } from '../../../worker/targets.ts';
import { tempDir } from '../../support/file-end.ts';

/** A package in node_modules of a new folder, which is returned. */
async function install(name: string, code: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await tempDir();
  const place = join(folder, 'node_modules', name);
  await mkdir(place, { recursive: true });
  await writeFile(join(place, 'package.json'), JSON.stringify({ name, type: 'module', exports: './index.js' }));
  await writeFile(join(place, 'index.js'), code);
  for (const [file, text] of Object.entries(more)) await writeFile(join(place, file), text);
  return folder;
}

/** A sink of two modes, `a` and `b`; nothing of it is ever loaded. */
const specCode = (type: string) => `({
  type: '${type}',
  summary: 'Nothing.',
  config: { safeParse: (data) => ({ success: true, data }) },
  keys: ['stream_sequence'],
  local: false,
  example: { type: '${type}' },
  evidence: new URL('./certification.json', import.meta.url),
  modeOf: ({ mode }) => mode,
  load: async () => { throw new Error('loaded'); },
})`;

describe('packages of sinks', () => {
  test('their sinks stand in the registry; adding them again does nothing', async () => {
    const folder = await install('sink-one', `export const sinks = [${specCode('one')}, ${specCode('one-more')}];`);
    const before = sinkSpecs.length;
    expect(await loadSinkPackages(['sink-one'], folder)).toEqual([]);
    expect(await loadSinkPackages(['sink-one', 'sink-one'], folder)).toEqual([]);
    expect(sinkSpecs.slice(before).map(({ type }) => type)).toEqual(['one', 'one-more']);
    expect(findSinkSpec('one')).toBeDefined();
  });

  test('all problems at once, and then nothing is added', async () => {
    const folder = await install('sink-file', `export const sinks = [${specCode('fresh')}, ${specCode('file')}];`);
    const problems = await loadSinkPackages(['sink-file', '../sneaky', 'sink-nowhere'], folder);
    expect(problems.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'REPLAY_SINKS: "sink-file" brings the sink "file", which is there already',
      'REPLAY_SINKS: "../sneaky" is not the name of a package, such as durable-replay-sqlite',
      'REPLAY_SINKS: no package "sink-nowhere"; install it where this runs: npm install sink-nowhere',
    ]);
    expect(findSinkSpec('fresh')).toBeUndefined();
  });

  test.each([
    ['exports nothing', 'export {};', 'is none of sinks'],
    ['exports an empty list', 'export const sinks = [];', 'is none of sinks'],
    ['exports something else', "export const sinks = [{ type: 'x' }];", 'is none of sinks'],
    ['throws', "throw new Error('no such driver');", 'cannot be loaded: no such driver'],
  ])('one that %s is refused', async (_, code, message) => {
    const [problem] = await loadSinkPackages(['sink-bad'], await install('sink-bad', code));
    expect(problem?.message).toContain(message);
  });

  test('a fault of another copy of this package is a fault', () => {
    const foreign = Object.assign(new Error('full'), { [Symbol.for('durable-replay.fault')]: true });
    expect(foreign).toBeInstanceOf(ReplayFault);
    expect(new Error('full')).not.toBeInstanceOf(ReplayFault);
    expect(new ReplayFault('sink_full')).toBeInstanceOf(ReplayFault);
  });
});

describe('describing', () => {
  const evidence = (modes: readonly object[]) =>
    JSON.stringify({ format: CERTIFICATION_FORMAT, type: 'two', package_version: '1.0.0', modes });
  const passed = [{ name: 'opens twice', result: 'passed' }];
  const failed = [...passed, { name: 'an empty batch', result: 'failed' }];

  test('refuses a mode without a whole pass, in a child of a fan-out too, and any type without evidence', async () => {
    const certified = evidence([
      { mode: 'a', cases: passed },
      { mode: 'b', cases: failed },
    ]);
    const code = `export const sinks = [${specCode('two')}, ${specCode('three')}];`;
    const folder = await install('sink-two', code, { 'certification.json': certified });
    expect(await loadSinkPackages(['sink-two'], folder)).toEqual([]);
    const targets = createTargets(folder, undefined as never, null);
    const problemsOf = (sink: object) =>
      checkCertified({ targets } as Deps, { sink } as ReplayTarget).map(({ path, message }) => `${path}: ${message}`);
    const lacks = (type: string, mode: string) => [
      `sink.type: the sink "${type}" has no certification for its mode "${mode}"; certify it (docs/certification.md), then start again`,
    ];
    expect(problemsOf({ type: 'two', mode: 'a' })).toEqual([]);
    expect(problemsOf({ type: 'two', mode: 'b' })).toEqual(lacks('two', 'b'));
    expect(problemsOf({ type: 'two', mode: 'c' })).toEqual(lacks('two', 'c'));
    expect(problemsOf({ type: 'three', mode: 'a' })).toEqual(lacks('three', 'a'));
    const inFanOut = (mode: string) => ({ type: 'fanout', sinks: { one: { sink: { type: 'two', mode } } } });
    expect(problemsOf(inFanOut('a'))).toEqual([]);
    expect(problemsOf(inFanOut('b'))).toEqual(lacks('two', 'b'));
  });

  test('a target of an unknown type hears of packages', () => {
    const parsed = parseTarget({ sink: { type: 'elsewhere' } }, sinkSpecs);
    expect(parsed.ok ? [] : parsed.problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('got "elsewhere"; a package that brings it is named in REPLAY_SINKS'),
    ]);
  });
});

import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CERTIFICATION_FORMAT, certificationOf, isCertified } from '../../../sinks/certification.ts';
import type { Certification } from '../../../sinks/certification.ts';
import { fileSpec } from '../../../sinks/file/config.ts';
import { sinkSpecs } from '../../../sinks/registry.ts';
import type { SinkSpec } from '../../../sinks/registry.ts';
import { destinations } from '../../contract/destinations.ts';
import { contractCases } from '../../contract/sink-contract.ts';
import { tempDir } from '../../support/file-end.ts';

test('every sink has a destination for the contract suite', () => {
  expect(Object.keys(destinations)).toEqual(expect.arrayContaining(sinkSpecs.map(({ type }) => type)));
});

describe.each(Object.keys(destinations))('the evidence of the sink "%s"', (type) => {
  test(`is of today's cases, all passed; else run: npm run certify -- ${type}`, async () => {
    const names = contractCases.map(({ name }) => name);
    const found = await destinations[type]!();
    const certification = certificationOf(found[0]!.spec);
    const modes = found.map(({ mode }) => mode);
    expect(certification?.modes.map(({ mode }) => mode)).toEqual(modes);
    for (const { cases } of certification!.modes) {
      expect(cases.map(({ name }) => name)).toEqual(names);
      expect(cases.filter(({ result }) => result === 'failed')).toEqual([]);
    }
  });
});

test('names of cases are unique', () => {
  expect(new Set(contractCases.map(({ name }) => name)).size).toBe(contractCases.length);
});

describe('a sink is not certified', () => {
  const passed = { mode: 'plain', cases: [{ name: 'x', result: 'passed' }] } as const;
  const whole: Certification = { format: CERTIFICATION_FORMAT, type: 'file', package_version: '1', modes: [passed] };

  async function specWith(certification: object): Promise<SinkSpec> {
    const file = join(await mkdtemp(join(await tempDir(), 'evidence-')), 'certification.json');
    await writeFile(file, JSON.stringify(certification));
    return { ...fileSpec, evidence: pathToFileURL(file) };
  }

  test('but with a whole pass it is', async () => {
    expect(isCertified(await specWith(whole), { compression: 'none' })).toBe(true);
  });

  test.each([
    ['for another type', { ...whole, type: 'mysql' }],
    ['in another format', { ...whole, format: 0 }],
    ['with a failed case', { ...whole, modes: [{ mode: 'plain', cases: [{ name: 'x', result: 'failed' }] }] }],
    ['without cases', { ...whole, modes: [{ mode: 'plain', cases: [] }] }],
    ['for another mode', { ...whole, modes: [{ ...passed, mode: 'gzip' }] }],
  ])('%s', async (_, certification) => {
    expect(isCertified(await specWith(certification), { compression: 'none' })).toBe(false);
  });

  test('without evidence', async () => {
    const { evidence: _, ...without } = fileSpec;
    expect(isCertified(without, {})).toBe(false);
    expect(isCertified({ ...fileSpec, evidence: pathToFileURL(join(await tempDir(), 'none.json')) }, {})).toBe(false);
  });
});

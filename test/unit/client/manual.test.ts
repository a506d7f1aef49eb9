import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import { seeAlsoOf } from '../../../client/manual.ts';
import { createProgram, parseCommandLine } from '../../../client/parse.ts';
import { examplesOf, pathOf, verbsBelow } from '../../../client/verbs.ts';

const nothing = (): void => undefined;
const program = createProgram(nothing, { out: nothing, err: nothing });

const verbs = new Map(verbsBelow(program).map((verb) => [pathOf(verb), verb]));

function told(...words: string[]): { readonly status: number; readonly out: string; readonly err: string } {
  let [out, err] = ['', ''];
  try {
    parseCommandLine(words, { out: (text) => (out += text), err: (text) => (err += text) });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { status: error.exitCode, out, err };
  }
  throw new Error(`${words.join(' ')} was taken`);
}

function sectionsOf(page: string): Record<string, string> {
  const parts = page.split(/^([A-Z][A-Z ]+)\n/m).slice(1);
  return Object.fromEntries(parts.flatMap((part, i) => (i % 2 === 0 ? [[part, parts[i + 1]!]] : [])));
}

describe('the manual page', () => {
  test.each(['', ...verbs.keys()])('of replay-stream %s', (path) => {
    const verb = verbs.get(path) ?? program;
    const words = path.split(' ').filter((word) => word !== '');
    const page = told(...words, '--help');
    expect(page).toMatchObject({ status: 0, err: '' });
    expect(told('help', ...words)).toEqual(page);

    const sections = sectionsOf(page.out);
    expect(sections['NAME']).toMatch(new RegExp(`^ {4}replay-stream ${path}${path === '' ? '' : ' '}- .`));
    expect(sections['SYNOPSIS']).toContain(`replay-stream ${path}`);
    expect(sections['DESCRIPTION']!.trim().length).toBeGreaterThan(10);
    for (const { long } of verb.options) expect(sections['OPTIONS']).toContain(long);
    for (const { command } of examplesOf(verb)) expect(sections['EXAMPLES']).toContain(command);
    expect(sections['EXIT STATUS']).toMatch(/^ {4}0 {2,}done/);
    expect(sections['EXIT STATUS']).toMatch(/^ {4}2 {2,}\w/m);
    expect(sections['SEE ALSO']!.trim()).not.toBe('');
    for (const line of page.out.replace(sections['EXAMPLES']!, '').replace(sections['SYNOPSIS']!, '').split('\n'))
      expect(line.length, line).toBeLessThanOrEqual(100);
  });

  test.each(['', ...verbs.keys()])('of replay-stream %s points at what is there', (path) => {
    for (const other of seeAlsoOf(verbs.get(path) ?? program)) {
      expect(other).not.toBe(path);
      if (!other.startsWith('docs/')) expect([...verbs.keys()]).toContain(other);
      else expect(existsSync(fileURLToPath(new URL(`../../../${other}`, import.meta.url))), other).toBe(true);
    }
  });

  test('of a verb that is misspelled', () => {
    expect(told('help', 'shedule')).toMatchObject({
      out: '',
      err: expect.stringContaining('did you mean schedule?') as string,
    });
    expect(told('help', 'topic', 'raed').err).toContain('unknown verb "raed"; did you mean read?');
    expect(told('help', 'qqqqqqqq').status).not.toBe(0);
    expect(told('help', 'status', 'ORDERS')).toEqual(told('status', '--help'));
  });
});

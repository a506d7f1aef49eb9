import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { completionScript, shells } from '../../../client/completion.ts';
import { createProgram } from '../../../client/parse.ts';

const nothing = (): void => undefined;
const program = createProgram(nothing, { out: nothing, err: nothing });

/** What bash offers after these words; the last one is being typed. */
function offered(...words: string[]): string[] {
  const line = ['replay-stream', ...words];
  const script = `${completionScript(program, 'bash')}
COMP_WORDS=("$@"); COMP_CWORD=${line.length - 1}; _replay_stream; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script, 'bash', ...line], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);
}

describe('in bash', () => {
  test('verbs, and the options of the main form', () => {
    expect(offered('st')).toContain('status');
    expect(offered('--ex')).toEqual(['--execute']);
  });

  test('options of a verb, and of a verb below it', () => {
    expect(offered('report', 'ID', '--m')).toEqual(['--markdown']);
    expect(offered('schedule', 'cr')).toEqual(['create']);
    expect(offered('schedule', 'create', 'x', '--cr')).toEqual(['--cron']);
  });

  test('choices of an option', () => expect(offered('list', '--state', 'bl')).toEqual(['blocked']));
});

test.each(shells)('%s knows every verb', (shell) => {
  const script = completionScript(program, shell);
  for (const verb of program.commands) expect(script).toContain(verb.name());
});

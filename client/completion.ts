import type { Command } from 'commander';
import { pathOf, verbsBelow } from './verbs.ts';

/** Completion of the command line for shells, from its own definition. */

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

export function completionScript(program: Command, shell: Shell): string {
  switch (shell) {
    case 'bash':
      return bashScript(program);
    case 'zsh':
      return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(program)}`;
    case 'fish':
      return fishScript(program);
  }
}

/** The words that may follow each path of verbs; files besides. */
function bashScript(program: Command): string {
  const cases = [program, ...verbsBelow(program)].map(
    (command) => `    ${JSON.stringify(pathOf(command))}) words=${JSON.stringify(wordsOf(command).join(' '))} ;;`,
  );
  const choices = [program, ...verbsBelow(program)].flatMap(({ options }) =>
    options.flatMap(({ long, argChoices }) =>
      argChoices === undefined ? [] : [`    ${long}) words=${JSON.stringify(argChoices.join(' '))} ;;`],
    ),
  );
  return `_replay_stream() {
  local current=\${COMP_WORDS[COMP_CWORD]} verbs="" words="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$verbs $word" in
${verbsBelow(program)
  .map((command) => `      ${JSON.stringify(` ${pathOf(command)}`)}) verbs=${JSON.stringify(` ${pathOf(command)}`)} ;;`)
  .join('\n')}
    esac
  done
  case "\${verbs# }" in
${cases.join('\n')}
  esac
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
${[...new Set(choices)].join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}
complete -o filenames -F _replay_stream replay-stream`;
}

function fishScript(program: Command): string {
  const lines = [program, ...verbsBelow(program)].flatMap((command) => {
    const path = pathOf(command);
    const seen =
      path === ''
        ? '__fish_use_subcommand'
        : path
            .split(' ')
            .map((verb) => `__fish_seen_subcommand_from ${verb}`)
            .join('; and ');
    const verbs = command.commands.map((verb) => `-a ${verb.name()} -d ${quoted(verb.summary())}`);
    const options = command.options.map(
      ({ long, description, argChoices }) =>
        `-l ${(long ?? '').slice(2)} -d ${quoted(description)}${argChoices === undefined ? '' : ` -x -a ${quoted(argChoices.join(' '))}`}`,
    );
    return [...verbs, ...options].map((rest) => `complete -c replay-stream -n ${quoted(seen)} ${rest}`);
  });
  return lines.join('\n');
}

function wordsOf(command: Command): string[] {
  const options = command.options.flatMap(({ long }) => (long === undefined ? [] : [long]));
  return [...command.commands.map((verb) => verb.name()), ...options, '--help'];
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

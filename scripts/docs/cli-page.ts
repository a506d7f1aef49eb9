import { posix } from 'node:path';
import type { Command } from 'commander';
import { exitStatuses } from '../../client/exit.ts';
import { seeAlsoOf } from '../../client/manual.ts';
import { createProgram } from '../../client/parse.ts';
import { examplesOf } from '../../client/verbs.ts';
import { code, page, table } from './markdown.ts';

export function cliPage(): string {
  const silent = (): void => undefined;
  const program = createProgram(silent, { out: silent, err: silent });
  const statuses = Object.values(exitStatuses).map(({ status, meaning }) => [String(status), meaning]);
  return page(
    'client/parse.ts',
    `# Command line

${program.description()}

Results go to standard output, everything else (progress, problems, what to do next) to standard error. \`--json\` prints exactly
one JSON object on standard output (verbs of \`topic\`: one line per group, partition or record). Where Temporal is, is read from \`TEMPORAL_ADDRESS\`, \`TEMPORAL_NAMESPACE\` and the other
settings of the \`temporal\` command. ID is a workflow id such as \`replay:ORDERS:orders-replay-2026-05\`; STREAM DURABLE means the
same, and its dry run where there is no execution.

${section(program, 'PLAN TARGET')}

${attachedText}

## Exit status

${table(['Status', 'Meaning'], statuses)}

The numbers 3, 4, 5, 130 and 143 come from the main form and from \`status --follow\`. Other verbs end with 0 when they did what they
were asked, else with 1, or with 2 for wrong usage; \`check\` ends with 2 when a plan with these files could not run.

${program.commands.flatMap(sections).join('\n\n')}
`,
  );
}

const attachedText = `Attached to a terminal, it draws one line with bar, percentage, time left and rate; Ctrl-C asks whether to leave the
replay running, to cancel it or to stay, and a second Ctrl-C leaves at once. Elsewhere it writes a line when the state changes and
every 10 seconds; Ctrl-C and SIGTERM leave the replay running, and a plan that stays \`blocked\` for 10 seconds ends the command with
status 5 (the replay goes on waiting; with \`--json\` the report so far is printed). Problems of plan and target are all shown at
once, and then nothing was sent to Temporal. When Temporal stops answering, the command keeps trying for 10 minutes; the replay does
not depend on it.`;

/** A verb and the verbs below it. */
function sections(verb: Command): string[] {
  const names = verb.parent?.parent == null ? [verb.name()] : [verb.parent.name(), verb.name()];
  return [section(verb, names.join(' ')), ...verb.commands.flatMap(sections)];
}

function section(command: Command, title: string): string {
  const inputs = command.registeredArguments.map((argument) => [code(argument.name()), argument.description]);
  const options = command.options.map((option) => [code(option.flags), optionText(option)]);
  const examples = examplesOf(command).map(({ command: line, does }) => `# ${does}\n${line}`);
  return [
    `## ${title}`,
    ...(command.parent === null ? [] : [command.description()]),
    `\`\`\`text\n${usageOf(command)}\n\`\`\``,
    ...(inputs.length + options.length === 0 ? [] : [table(['Input', 'Meaning'], [...inputs, ...options])]),
    `\`\`\`sh\n${examples.join('\n')}\n\`\`\``,
    `See also: ${seeAlsoOf(command).map(linkTo).join(', ')}.`,
  ].join('\n\n');
}

/** From docs/reference/cli.md to a verb on the same page, or to another page. */
function linkTo(verbOrPage: string): string {
  if (!verbOrPage.startsWith('docs/')) return `[${verbOrPage}](#${verbOrPage.replaceAll(' ', '-')})`;
  const file = verbOrPage.replace('docs/', '');
  return `[${file}](${posix.relative('reference', file)})`;
}

function usageOf(command: Command): string {
  const names = [command.name()];
  for (let above = command.parent; above !== null; above = above.parent) names.unshift(above.name());
  return `${names.join(' ')} ${command.usage()}`;
}

function optionText({ description, defaultValue, argChoices }: Command['options'][number]): string {
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`;
  // A negated option such as --no-wait defaults to true.
  const fallback =
    defaultValue === undefined || typeof defaultValue === 'boolean' ? '' : ` (default ${code(String(defaultValue))})`;
  return `${description}${choices}${fallback}`;
}

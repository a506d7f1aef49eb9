import type { Command, Help } from 'commander';
import { exitStatuses, type ExitName } from './exit.ts';
import { examplesOf, pathOf } from './verbs.ts';

/** The help of the command and of each verb, in the sections of a manual page. */

interface Ending {
  readonly exits: Exits;
  /** Verbs, and pages of the docs. */
  readonly seeAlso: readonly string[];
}

type Exits = Readonly<Partial<Record<ExitName, string>>>;

const plain: Exits = { done: 'done', failed: 'it could not be done; standard error says why', refused: 'wrong usage' };
const reading: Exits = { ...plain, refused: 'wrong usage, or something is wrong in the files' };
const attached = Object.fromEntries(Object.entries(exitStatuses).map(([name, { meaning }]) => [name, meaning])) as Exits;
const topic: Exits = { ...plain, refused: 'wrong usage, or no such topic' };

/** By the path of the verb, empty for the main form. */
const endings: Readonly<Record<string, Ending>> = {
  '': { exits: attached, seeAlso: ['check', 'doctor', 'status', 'docs/reference/plan.md', 'docs/reference/target.md'] },
  status: { exits: attached, seeAlso: ['list', 'report', 'resume', 'decide', 'docs/reference/errors.md'] },
  list: { exits: plain, seeAlso: ['status', 'docs/temporal.md'] },
  pause: { exits: plain, seeAlso: ['resume', 'cancel', 'rate'] },
  resume: { exits: plain, seeAlso: ['pause', 'status', 'decide'] },
  cancel: { exits: plain, seeAlso: ['pause', 'report'] },
  rate: { exits: plain, seeAlso: ['pause', 'status', 'docs/reference/plan.md'] },
  decide: { exits: plain, seeAlso: ['status', 'inspect', 'resume', 'docs/reference/errors.md'] },
  approve: { exits: plain, seeAlso: ['status', 'cancel', 'docs/temporal.md'] },
  schedule: { exits: plain, seeAlso: ['check', 'list', 'docs/temporal.md'] },
  'schedule create': { exits: reading, seeAlso: ['check', 'schedule list', 'docs/reference/plan.md'] },
  'schedule list': { exits: plain, seeAlso: ['list', 'schedule create'] },
  'schedule pause': { exits: plain, seeAlso: ['schedule resume', 'schedule list', 'pause'] },
  'schedule resume': { exits: plain, seeAlso: ['schedule pause', 'schedule list', 'resume'] },
  'schedule trigger': { exits: plain, seeAlso: ['schedule list', 'status'] },
  'schedule delete': { exits: plain, seeAlso: ['schedule pause', 'schedule list', 'cancel'] },
  report: { exits: plain, seeAlso: ['status', 'inspect', 'docs/delivery.md'] },
  check: {
    exits: { ...plain, refused: 'wrong usage, or a plan with these files could not run' },
    seeAlso: ['doctor', 'docs/reference/plan.md', 'docs/reference/target.md'],
  },
  inspect: { exits: plain, seeAlso: ['report', 'doctor', 'docs/permissions.md'] },
  doctor: {
    exits: { ...reading, failed: 'something is wrong' },
    seeAlso: ['check', 'worker', 'docs/permissions.md', 'docs/reference/settings.md'],
  },
  'retry-optional': { exits: attached, seeAlso: ['status', 'report', 'docs/fan-out.md'] },
  spool: { exits: attached, seeAlso: ['status', 'docs/spool.md', 'docs/reference/sinks.md'] },
  worker: { exits: plain, seeAlso: ['dev', 'doctor', 'docs/reference/settings.md', 'docs/deploy.md'] },
  dev: { exits: plain, seeAlso: ['worker', 'doctor'] },
  topic: {
    exits: {
      ...topic,
      failed: 'it could not be done, or a push is uncertain',
      rejects: 'a group was rejected, a commit fenced, or an offset cannot be read',
    },
    seeAlso: ['docs/topics.md', 'docs/reference/errors.md'],
  },
  'topic create': { exits: topic, seeAlso: ['topic describe', 'topic delete', 'docs/topics.md'] },
  'topic push': {
    exits: { ...topic, failed: 'a group is uncertain: push the same again', rejects: 'a group was rejected' },
    seeAlso: ['topic read', 'docs/topics.md'],
  },
  'topic read': {
    exits: { ...topic, rejects: 'the offset cannot be read: gone, or not there yet' },
    seeAlso: ['topic bounds', 'topic consume'],
  },
  'topic consume': {
    exits: { ...topic, rejects: 'records are gone before the group came to them' },
    seeAlso: ['topic commit', 'topic groups'],
  },
  'topic commit': {
    exits: { ...topic, rejects: 'fenced, or out of range: the position stays' },
    seeAlso: ['topic consume', 'topic reset'],
  },
  'topic groups': { exits: topic, seeAlso: ['topic consume', 'topic reset'] },
  'topic reset': { exits: { ...topic, rejects: 'the offset is out of range' }, seeAlso: ['topic groups', 'topic bounds'] },
  'topic reconcile': {
    exits: { ...topic, failed: 'a topic could not be looked at', rejects: 'something is left that a person must look at' },
    seeAlso: ['topic sweep', 'schedule create', 'docs/topics.md'],
  },
  'topic expire-cold': { exits: topic, seeAlso: ['topic sweep', 'topic bounds', 'docs/topics.md'] },
  'topic bounds': { exits: topic, seeAlso: ['topic read', 'topic describe'] },
  'topic sweep': { exits: topic, seeAlso: ['topic bounds', 'schedule', 'docs/topics.md'] },
  'topic list': { exits: topic, seeAlso: ['topic describe', 'topic create'] },
  'topic describe': { exits: topic, seeAlso: ['topic bounds', 'topic groups'] },
  'topic delete': { exits: topic, seeAlso: ['topic list', 'topic create'] },
  completion: { exits: plain, seeAlso: ['docs/reference/cli.md'] },
};

/** Verbs and pages. */
export function seeAlsoOf(command: Command): readonly string[] {
  return endingOf(command).seeAlso;
}

function endingOf(command: Command): Ending {
  const ending = endings[pathOf(command)];
  if (ending === undefined) throw new Error(`the verb ${pathOf(command)} has no entry in client/manual.ts`);
  return ending;
}

const indent = '    ';
const columnsMax = 100;

/** A section for each thing a reader of manual pages looks for, in their usual order. */
export function manualPage(command: Command, helper: Help): string {
  const columns = Math.min(helper.helpWidth ?? columnsMax, columnsMax);
  const wrapped = (text: string): string => helper.boxWrap(text, columns - indent.length);
  const items = (list: readonly (readonly [term: string, text: string])[]): string => {
    const width = Math.max(...list.map(([term]) => term.length).filter((length) => length <= termColumnsMax), 0);
    return list.map(([term, text]) => item(term, helper.boxWrap(text, columns - indent.length - width - 2), width)).join('\n');
  };
  const { exits, seeAlso } = endingOf(command);
  const isVerb = command.parent !== null;
  const sections: readonly (readonly [title: string, text: string])[] = [
    ['NAME', `${commandLine(command)} - ${isVerb ? command.summary() : 'replay a range of a stream into a sink'}`],
    ['SYNOPSIS', helper.commandUsage(command).replace(/\n +/g, '\n')],
    ['DESCRIPTION', wrapped(command.description())],
    [
      'ARGUMENTS',
      items(helper.visibleArguments(command).map((one) => [helper.argumentTerm(one), helper.argumentDescription(one)])),
    ],
    ['OPTIONS', items(helper.visibleOptions(command).map((one) => [helper.optionTerm(one), helper.optionDescription(one)]))],
    [
      'VERBS',
      items(helper.visibleCommands(command).map((one) => [helper.subcommandTerm(one), helper.subcommandDescription(one)])),
    ],
    [
      'EXAMPLES',
      examplesOf(command)
        .map(({ command: line, does }) => `# ${does}\n${line}`)
        .join('\n'),
    ],
    [
      'EXIT STATUS',
      items(Object.entries(exits).map(([name, meaning]) => [String(exitStatuses[name as ExitName].status), meaning])),
    ],
    ['SEE ALSO', wrapped(seeAlso.map((one) => (one.startsWith('docs/') ? one : `replay-stream ${one}`)).join(', '))],
  ];
  return sections
    .filter(([, text]) => text !== '')
    .map(([title, text]) => `${title}\n${text.replace(/^(?=.)/gm, indent)}\n`)
    .join('\n');
}

const termColumnsMax = 34;

/** A term that is too long for its column stands on a line of its own. */
function item(term: string, text: string, width: number): string {
  const [first, ...rest] = text.split('\n');
  const margin = ' '.repeat(width + 2);
  const start = term.length > width ? `${term}\n${margin}` : `${term.padEnd(width)}  `;
  return [`${start}${first!}`, ...rest.map((line) => `${margin}${line}`)].join('\n');
}

function commandLine(command: Command): string {
  return `replay-stream ${pathOf(command)}`.trim();
}

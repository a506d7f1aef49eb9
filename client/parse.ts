import { readFileSync } from 'node:fs';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { planLimits, type IntegerLimits } from '../core/limits.ts';
import { groupDigits, nearest } from '../core/problems.ts';
import type { ReplayState } from '../core/progress.ts';
import type { ApproveOptions } from './commands/approve.ts';
import type { CancelOptions } from './commands/cancel.ts';
import type { CheckOptions } from './commands/check.ts';
import { decisions } from '../core/run.ts';
import type { CompletionOptions } from './commands/completion.ts';
import type { DecideOptions } from './commands/decide.ts';
import type { DoctorOptions } from './commands/doctor.ts';
import type { InspectOptions } from './commands/inspect.ts';
import type { DevOptions } from './commands/dev.ts';
import type { ListOptions } from './commands/list.ts';
import type { PauseOptions } from './commands/pause.ts';
import type { RateOptions } from './commands/rate.ts';
import type { ReplayOptions } from './commands/replay.ts';
import type { ReportOptions } from './commands/report.ts';
import type { ResumeOptions } from './commands/resume.ts';
import type { RetryOptionalOptions } from './commands/retry-optional.ts';
import type { DrainOptions } from './commands/spool-drain.ts';
import type { StatusOptions } from './commands/status.ts';
import type { WorkerOptions } from './commands/worker.ts';
import type { TopicOptions } from './commands/topic.ts';
import type { ScheduleOptions } from './commands/schedule.ts';
import { manualPage } from './manual.ts';
import { approve, completion, doctor, inspect, schedule } from './operate-verbs.ts';
import { topic } from './topic-verbs.ts';
import { controlVerb, nameOf, pathOf, verbsBelow, wholeNumber, withExamples, type Found } from './verbs.ts';

/** What each command is given. Reading the command line decides nothing else; see act.ts. */
export interface Invocations {
  readonly replay: ReplayOptions;
  readonly status: StatusOptions;
  readonly list: ListOptions;
  readonly pause: PauseOptions;
  readonly resume: ResumeOptions;
  readonly cancel: CancelOptions;
  readonly rate: RateOptions;
  readonly decide: DecideOptions;
  readonly approve: ApproveOptions;
  readonly schedule: ScheduleOptions;
  readonly report: ReportOptions;
  readonly check: CheckOptions;
  readonly inspect: InspectOptions;
  readonly doctor: DoctorOptions;
  readonly retryOptional: RetryOptionalOptions;
  readonly drain: DrainOptions;
  readonly worker: WorkerOptions;
  readonly dev: DevOptions;
  readonly topic: TopicOptions;
  readonly completion: CompletionOptions;
}

export type Verb = keyof Invocations;
export type Invocation = { [V in Verb]: { readonly verb: V; readonly options: Invocations[V] } }[Verb];

export interface Output {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Throws CommanderError for help, version and wrong usage, whose text is then already written. */
export function parseCommandLine(words: readonly string[], output: Output): Invocation {
  let invocation: Invocation | undefined;
  const program = createProgram((parsed) => (invocation = parsed), output);
  if (words[0] === 'help') return showHelp(program, words.slice(1));
  program.parse(words, { from: 'user' });
  if (invocation === undefined) throw new Error('a command line without a command');
  return invocation;
}

/** The whole command line; `found` is told what was asked for. */
export function createProgram(found: (invocation: Invocation) => void, output: Output): Command {
  const program = new Command('replay-stream');
  program
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .showHelpAfterError('(replay-stream --help shows everything)')
    .configureHelp({
      subcommandTerm: (verb) => `${verb.name()} ${verb.usage().replace('[options]', '').trim()}`.trim(),
      formatHelp: manualPage,
    })
    .helpCommand('help [verb...]', 'show the help of a verb')
    .version(packageVersion(), '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    // Otherwise --json after a verb would be taken for the main form's.
    .enablePositionalOptions();
  mainForm(program, found);
  for (const define of [
    status,
    list,
    pause,
    resume,
    cancel,
    rate,
    decide,
    approve,
    schedule,
    report,
    check,
    inspect,
    doctor,
    retryOptional,
    spool,
    worker,
    dev,
    topic,
    completion,
  ])
    define(program, found);
  for (const verb of verbsBelow(program)) verb.showHelpAfterError(`(replay-stream ${pathOf(verb)} --help shows how)`);
  return program;
}

/** `help schedule create`; the words behind a verb that has no verbs below it do not matter. */
function showHelp(program: Command, words: readonly string[]): never {
  let command = program;
  for (const word of words) {
    if (word.startsWith('-') || command.commands.length === 0) break;
    const below = command.commands.find((verb) => verb.name() === word);
    if (below === undefined) return command.error(unknownVerb(command, word));
    command = below;
  }
  return command.help();
}

function unknownVerb(above: Command, word: string): string {
  const meant = nearestVerb(above, word);
  return `error: unknown verb ${JSON.stringify(word)}${meant === null ? '' : `; did you mean ${meant}?`}`;
}

interface MainFlags {
  readonly dryRun?: true;
  readonly execute?: true;
  readonly detach?: true;
  readonly json?: true;
}

function mainForm(program: Command, found: Found): void {
  program
    .description(
      'Replays a bounded range of a NATS JetStream stream into a sink, as a durable Temporal workflow: it goes on whatever ' +
        'happens to this command.',
    )
    .usage('PLAN TARGET [options]\n       replay-stream VERB [options]')
    .argument('[PLAN]', 'plan file; one that is named like a verb as ./status')
    .argument('[TARGET]', 'target file, or the name of a target in the targets folder of the worker')
    .addOption(new Option('--dry-run', 'only say what would be replayed, whatever the plan says').conflicts('execute'))
    .addOption(new Option('--execute', 'write, whatever the plan says').conflicts('dryRun'))
    .option('--detach', 'start it and leave')
    .option('--json', 'the report as one JSON object on standard output, nothing else there')
    .hook('preSubcommand', (root, verb) => {
      if (Object.keys(root.opts()).length > 0)
        root.error(`error: options stand after the verb: replay-stream ${verb.name()} ...`);
    })
    .action((planFile: string | undefined, targetFile: string | undefined, flags: MainFlags) => {
      if (planFile === undefined) return program.help({ error: true });
      const meantVerb = nearestVerb(program, planFile);
      if (targetFile === undefined) return program.error(missingTarget(planFile, meantVerb));
      const dryRun = flags.dryRun ? true : flags.execute ? false : undefined;
      found({
        verb: 'replay',
        options: { planFile, targetFile, dryRun, detach: flags.detach === true, json: flags.json === true, meantVerb },
      });
    });
  withExamples(program, [
    { command: 'replay-stream plan.json target.json --dry-run', does: 'say what would be replayed' },
    { command: 'replay-stream plan.json target.json --execute', does: 'replay, with a progress bar' },
    { command: 'replay-stream plan.json warehouse --execute --detach', does: "into a target of the worker's; leave at once" },
  ]);
}

function nearestVerb(program: Command, word: string): string | null {
  return (
    nearest(
      word,
      program.commands.map((command) => command.name()),
    ) ?? null
  );
}

function missingTarget(word: string, meantVerb: string | null): string {
  if (meantVerb !== null) return `error: missing TARGET; or did you mean the verb ${meantVerb}?`;
  return `error: missing TARGET: ${JSON.stringify(word)} is no verb, so it is taken for a plan file`;
}

function status(program: Command, found: Found): void {
  const verb = program
    .command('status')
    .summary('how far a replay is')
    .description('Shows how far a replay is, and what to do when it is blocked.')
    .usage('[ID | STREAM DURABLE] [options]')
    .argument('[name...]', 'workflow id, or stream and durable consumer; without: the one that runs, or the last one')
    .option('--follow', 'stay with it until it ends, as the main form does; exit status as there')
    .option('--json', 'one JSON object')
    .action((words: string[], flags: { follow?: true; json?: true }) => {
      const name = words.length === 0 ? null : nameOf(verb, words);
      found({ verb: 'status', options: { name, follow: flags.follow === true, json: flags.json === true } });
    });
  withExamples(verb, [
    { command: 'replay-stream status ORDERS orders-replay-2026-05', does: 'by stream and durable consumer' },
    { command: 'replay-stream status replay:ORDERS:orders-replay-2026-05 --follow', does: 'by id; stay until it ends' },
  ]);
}

const states = [
  'describing',
  'rehearsed',
  'awaiting_approval',
  'running',
  'paused',
  'blocked',
  'cancelling',
  'completed',
  'canceled',
  'failed',
] as const satisfies readonly ReplayState[];
const listDefault = 20;
const listMax = 1_000;

function list(program: Command, found: Found): void {
  const verb = program
    .command('list')
    .summary('replays, the newest first')
    .description('Lists replays, those that run first, then the newest.')
    .usage('[options]')
    .option('--all', 'those that ended too')
    .addOption(new Option('--state <state>', 'only those in this state').choices(states))
    .option('--limit <n>', `at most so many, up to ${groupDigits(listMax)}`, wholeNumber(1, listMax), listDefault)
    .option('--json', 'one JSON object')
    .action((flags: { all?: true; state?: ReplayState; limit: number; json?: true }) => {
      const { all, state, limit, json } = flags;
      found({ verb: 'list', options: { all: all === true, state: state ?? null, limit, json: json === true } });
    });
  withExamples(verb, [
    { command: 'replay-stream list --state blocked', does: 'what waits for a person' },
    { command: 'replay-stream list --all --limit 100 --json', does: 'for a script' },
  ]);
}

function pause(program: Command, found: Found): void {
  const verb = controlVerb(program, 'pause', 'stop after the batch in flight')
    .description('Pauses a replay after its batch in flight, for as long as you like: nothing is held open, nothing expires.')
    .option('--reason <text>', "kept in the run's history")
    .action((words: string[], { reason, json }: { reason?: string; json?: true }) => {
      found({ verb: 'pause', options: { name: nameOf(verb, words), reason: reason ?? null, json: json === true } });
    });
  withExamples(verb, [
    { command: 'replay-stream pause ORDERS orders-replay-2026-05 --reason "maintenance"', does: 'go on with resume' },
  ]);
}

function resume(program: Command, found: Found): void {
  const verb = controlVerb(program, 'resume', 'go on after pause; try again when blocked')
    .description('Goes on after pause. A blocked replay tries again at once; over its reject budget, it is granted one more.')
    .option('--reason <text>', "kept in the run's history")
    .action((words: string[], { reason, json }: { reason?: string; json?: true }) => {
      found({ verb: 'resume', options: { name: nameOf(verb, words), reason: reason ?? null, json: json === true } });
    });
  withExamples(verb, [{ command: 'replay-stream resume ORDERS orders-replay-2026-05', does: 'go on' }]);
}

function cancel(program: Command, found: Found): void {
  const verb = controlVerb(program, 'cancel', 'end a replay')
    .description(
      'Ends a replay: what is written is settled, the durable consumer is kept, and the same plan started again goes on there. ' +
        'Waits up to 90 s for the end.',
    )
    .option('--no-wait', 'ask only')
    .action((words: string[], { wait, json }: { wait: boolean; json?: true }) => {
      found({ verb: 'cancel', options: { name: nameOf(verb, words), wait, json: json === true } });
    });
  withExamples(verb, [{ command: 'replay-stream cancel ORDERS orders-replay-2026-05', does: 'end it and show its report' }]);
}

function rate(program: Command, found: Found): void {
  const { min, max } = planLimits.rate_limit_per_second;
  const bytes = planLimits.rate_limit_bytes_per_second;
  const factor = planLimits.pace_factor;
  const verb = program
    .command('rate')
    .summary('set or lift the rate limit')
    .description('Changes what holds a running replay back, at once: records and bytes a second, pace, allowed hours.')
    .usage('(ID | STREAM DURABLE) [N | off] [options]')
    .argument('<words...>', `workflow id, or stream and durable consumer; then ${min} to ${groupDigits(max)} records/s, or off`)
    .option('--bytes <n>', `payload bytes/s, ${groupDigits(bytes.min)} to ${groupDigits(bytes.max)}, or off`)
    .option(
      '--factor <x>',
      `of a plan with a pace: how many times faster than the stream, ${factor.min} to ${groupDigits(factor.max)}`,
    )
    .option('--any-hour', 'lift the allowed hours for the rest of this replay')
    .option('--json', 'one JSON object')
    .action((words: string[], flags: RateFlags) => {
      const more = {
        ...(flags.bytes === undefined ? {} : { bytesPerSecond: rateOf(verb, flags.bytes, bytes) }),
        ...(flags.factor === undefined ? {} : { factor: factorOf(verb, flags.factor) }),
        ...(flags.anyHour === undefined ? {} : { allowedHours: null }),
      };
      const last = words.at(-1)!;
      const alone = Object.keys(more).length > 0 && !/^(?:off|\d+)$/.test(last);
      const name = alone ? words : words.slice(0, -1);
      if (name.length === 0) return verb.error(`error: expected an ID (or STREAM DURABLE), then a number or off`);
      const asked = alone ? more : { perSecond: rateOf(verb, last, planLimits.rate_limit_per_second), ...more };
      found({ verb: 'rate', options: { name: nameOf(verb, name), rate: asked, json: flags.json === true } });
    });
  withExamples(verb, [
    { command: 'replay-stream rate ORDERS orders-replay-2026-05 500', does: 'at most 500 records/s' },
    { command: 'replay-stream rate ORDERS orders-replay-2026-05 off --bytes 1048576', does: 'at most 1 MiB/s, of any number' },
    { command: 'replay-stream rate replay:ORDERS:orders-replay-2026-05 --any-hour', does: 'do not wait for the night' },
  ]);
}

interface RateFlags {
  readonly bytes?: string;
  readonly factor?: string;
  readonly anyHour?: true;
  readonly json?: true;
}

function rateOf(verb: Command, word: string, { min, max }: IntegerLimits): number | null {
  if (word === 'off') return null;
  try {
    return wholeNumber(min, max)(word);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    return verb.error(`error: the rate ${JSON.stringify(word)} is wrong. ${error.message}, or off`);
  }
}

function factorOf(verb: Command, word: string): number {
  const { min, max } = planLimits.pace_factor;
  const factor = /^\d+(?:\.\d+)?$/.test(word) ? Number(word) : Number.NaN;
  if (factor >= min && factor <= max) return factor;
  return verb.error(`error: the factor ${JSON.stringify(word)} is wrong. Expected a number from ${min} to ${groupDigits(max)}`);
}

function decide(program: Command, found: Found): void {
  const verb = program
    .command('decide')
    .summary('settle the refused records that block a replay')
    .description(
      'Decides about the refused records of the batch that blocks a replay. dead-letter: store them as dead letters, whatever ' +
        'the reject budget says. skip: leave them out for good; the report lists them, and the exit status is 3. retry: ' +
        'the destination is mended, write the batch again.',
    )
    .usage(`(ID | STREAM DURABLE) (${decisions.join(' | ')}) [options]`)
    .argument('<words...>', `workflow id, or stream and durable consumer; then ${decisions.join(', ')}`)
    .option('--json', 'one JSON object')
    .action((words: string[], flags: { json?: true }) => {
      const decision = decisions.find((one) => one === words.at(-1));
      const name = words.slice(0, -1);
      if (decision === undefined || name.length === 0) {
        return verb.error(`error: expected an ID (or STREAM DURABLE), then ${decisions.join(', ')}`);
      }
      found({ verb: 'decide', options: { name: nameOf(verb, name), decision, json: flags.json === true } });
    });
  withExamples(verb, [
    { command: 'replay-stream decide ORDERS orders-replay-2026-05 dead-letter', does: 'these, and no more' },
    { command: 'replay-stream decide replay:ORDERS:orders-replay-2026-05 skip', does: 'leave them out' },
  ]);
}

function report(program: Command, found: Found): void {
  const verb = controlVerb(program, 'report', 'what a replay did')
    .description('Shows the report of a replay: as it stands while it runs, final once it has ended.')
    .addOption(new Option('--markdown', 'everything, as Markdown').conflicts(['json', 'html']))
    .addOption(new Option('--html', 'everything, as one HTML page with a plot').conflicts(['json', 'markdown']))
    .action((words: string[], { markdown, html, json }: { markdown?: true; html?: true; json?: true }) => {
      const form = json ? 'json' : html ? 'html' : markdown ? 'markdown' : 'text';
      found({ verb: 'report', options: { name: nameOf(verb, words), form } });
    });
  withExamples(verb, [
    { command: 'replay-stream report ORDERS orders-replay-2026-05 --markdown > report.md', does: 'for a ticket' },
    { command: 'replay-stream report ORDERS orders-replay-2026-05 --html > report.html', does: 'for a browser' },
    { command: 'replay-stream report replay:ORDERS:orders-replay-2026-05 --json', does: 'for a script' },
  ]);
}

function check(program: Command, found: Found): void {
  const verb = program
    .command('check')
    .summary('check plan and target')
    .description('Checks plan and target, all problems at once, and starts no replay. Offline unless --connect.')
    .usage('PLAN TARGET [options]')
    .argument('<PLAN>', 'plan file')
    .argument('<TARGET>', 'target file, or the name of a target in the targets folder of the worker')
    .option('--connect', 'let a worker look at the destination too; nothing is written there')
    .option('--json', 'one JSON object')
    .action((planFile: string, targetFile: string, { connect, json }: { connect?: true; json?: true }) => {
      found({
        verb: 'check',
        options: { planFile, targetFile, dryRun: undefined, connect: connect === true, json: json === true },
      });
    });
  withExamples(verb, [{ command: 'replay-stream check plan.json target.json --connect', does: 'before a replay' }]);
}

interface RetryFlags {
  readonly dryRun?: true;
  readonly detach?: true;
  readonly json?: true;
}

function retryOptional(program: Command, found: Found): void {
  const verb = program
    .command('retry-optional')
    .summary('bring what an optional child missed')
    .description(
      'Replays into one optional child of a fan-out what it missed in a run, as a replay of its own: the range from the first to the ' +
        'last record that it missed, routed as before. What it has already is a duplicate.',
    )
    .usage('(ID | STREAM DURABLE) CHILD [options]')
    .argument('<words...>', 'workflow id, or stream and durable consumer; then the name of the child')
    .option('--dry-run', 'only say what would be replayed')
    .option('--detach', 'start it and leave')
    .option('--json', 'the report as one JSON object on standard output, nothing else there')
    .action((words: string[], flags: RetryFlags) => {
      const name = words.slice(0, -1);
      if (name.length === 0) return verb.error('error: expected an ID (or STREAM DURABLE), then the name of a child');
      found({
        verb: 'retryOptional',
        options: {
          name: nameOf(verb, name),
          child: words.at(-1)!,
          dryRun: flags.dryRun === true,
          detach: flags.detach === true,
          json: flags.json === true,
        },
      });
    });
  withExamples(verb, [
    {
      command: 'replay-stream retry-optional ORDERS orders-replay-2026-05 search',
      does: 'once the child "search" is well again',
    },
  ]);
}

interface DrainFlags {
  readonly dryRun?: true;
  readonly execute?: true;
  readonly detach?: true;
  readonly maxRejects?: number;
  readonly reportFile?: string;
  readonly json?: true;
}

function spool(program: Command, found: Found): void {
  const { min, max } = planLimits.max_rejects;
  const verb = program
    .command('spool')
    .summary('drain a spool')
    .description(
      'spool drain moves what a spool holds into a target, as a workflow like a replay: its records leave the spool once the target ' +
        'has them. Without --execute it only says what would be moved. status, pause, resume, rate, decide, cancel and report ' +
        'take its ID.',
    )
    .usage('drain SPOOL TARGET [options]')
    .addArgument(new Argument('<verb>', 'what to do').choices(['drain']))
    .argument('<SPOOL>', 'target file whose sink is the spool, or the name of such a target of the worker')
    .argument('<TARGET>', 'target file, or the name of a target in the targets folder of the worker')
    .addOption(new Option('--dry-run', 'only say what would be moved: the default').conflicts('execute'))
    .addOption(new Option('--execute', 'move').conflicts('dryRun'))
    .option('--max-rejects <n>', 'reject budget', wholeNumber(min, max))
    .option('--report-file <file>', 'below the report root of the worker; .json or .md')
    .option('--detach', 'start it and leave')
    .option('--json', 'the report as one JSON object on standard output, nothing else there')
    .action((_: string, spoolFile: string, targetFile: string, flags: DrainFlags) => {
      found({
        verb: 'drain',
        options: {
          spoolFile,
          targetFile,
          dryRun: flags.execute !== true,
          maxRejects: flags.maxRejects ?? null,
          reportFile: flags.reportFile ?? null,
          detach: flags.detach === true,
          json: flags.json === true,
        },
      });
    });
  withExamples(verb, [
    { command: 'replay-stream spool drain spool.json target.json', does: 'say what would be moved' },
    { command: 'replay-stream spool drain spool.json warehouse --execute', does: "move it, into a target of the worker's" },
  ]);
}

function worker(program: Command, found: Found): void {
  const verb = program
    .command('worker')
    .summary('run a worker')
    .description(
      'Runs a worker, which does the work of the replays, until Ctrl-C or SIGTERM; it then settles or hands back its batch.',
    )
    .usage('[options]')
    .option('--json', 'one JSON object once it polls')
    .action(({ json }: { json?: true }) => found({ verb: 'worker', options: { json: json === true } }));
  withExamples(verb, [
    { command: 'TEMPORAL_ADDRESS=temporal:7233 NATS_URL=nats://nats:4222 replay-stream worker', does: 'beside your servers' },
  ]);
}

interface DevFlags {
  readonly data: string;
  readonly temporary?: true;
  readonly uiPort?: number;
  readonly temporalPort?: number;
  readonly natsPort?: number;
  readonly json?: true;
}

function dev(program: Command, found: Found): void {
  const port = wholeNumber(1, 65_535);
  const verb = program
    .command('dev')
    .summary('servers and a worker on this machine')
    .description(
      'Starts Temporal with its UI, NATS with JetStream, and a worker on this machine, until Ctrl-C. A server named by ' +
        'TEMPORAL_ADDRESS or NATS_URL is used instead of starting one.',
    )
    .usage('[options]')
    .option('--data <folder>', 'where the servers keep their data', '.durable-replay')
    .option('--temporary', 'keep nothing when it ends')
    .option('--temporal-port <port>', 'default 7233, or a free one', port)
    .option('--ui-port <port>', 'default 8233, or a free one', port)
    .option('--nats-port <port>', 'default 4222, or a free one', port)
    .option('--json', 'one JSON object once everything is up')
    .action((flags: DevFlags) => {
      const { data, temporary, temporalPort, uiPort, natsPort, json } = flags;
      found({
        verb: 'dev',
        options: { dataFolder: temporary ? null : data, temporalPort, uiPort, natsPort, json: json === true },
      });
    });
  withExamples(verb, [
    { command: 'replay-stream dev', does: 'then, in another terminal: replay-stream PLAN TARGET' },
    { command: 'replay-stream dev --temporary --ui-port 9090', does: 'leaves nothing behind' },
  ]);
}

/** From source it stands one folder up, built two. */
function packageVersion(): string {
  for (const place of ['../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8')) as Record<string, string>;
      if (name === 'durable-replay' && version !== undefined) return version;
    } catch {
      continue;
    }
  }
  return 'unknown';
}

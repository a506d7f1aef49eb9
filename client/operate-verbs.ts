import { Argument, InvalidArgumentError, Option, type Command } from 'commander';
import { durationSeconds } from '../core/duration.ts';
import { groupDigits } from '../core/problems.ts';
import { filterProblem, nameProblem } from '../core/subjects.ts';
import { shells, type Shell } from './completion.ts';
import { controlVerb, nameOf, wholeNumber, withExamples, type Found } from './verbs.ts';

/** Verbs for those who operate replays: approval, Schedules, and looking around. */

export function approve(program: Command, found: Found): void {
  const verb = controlVerb(program, 'approve', 'let a rehearsed plan write')
    .description(
      'Approves what a plan with require_approval has rehearsed: shows it, then asks, or takes the fingerprint that you have seen ' +
        'before. Refused when the stream, the target or the destination has changed since.',
    )
    .requiredOption('--reason <text>', "kept in the run's history and report")
    .option('--by <name>', 'who approves; default: the user of this machine')
    .option('--fingerprint <hash>', 'of the rehearsal that you have seen; without it, a person at a terminal is asked')
    .action((words: string[], flags: { reason: string; by?: string; fingerprint?: string; json?: true }) => {
      const { reason, by, fingerprint, json } = flags;
      found({
        verb: 'approve',
        options: { name: nameOf(verb, words), reason, by: by ?? null, fingerprint: fingerprint ?? null, json: json === true },
      });
    });
  withExamples(verb, [
    { command: 'replay-stream approve ORDERS orders-replay-2026-05 --reason INC-42', does: 'look, then say yes' },
    {
      command: 'replay-stream approve ORDERS orders-replay-2026-05 --reason INC-42 --fingerprint 0123456789abcdef',
      does: 'for a script',
    },
  ]);
}

interface CreateFlags {
  readonly reconcile?: true;
  readonly every?: number;
  readonly cron?: string;
  readonly timezone?: string;
  readonly jitter?: number;
  readonly catchUp: number;
  readonly paused?: true;
  readonly pauseOnFailure?: true;
  readonly note?: string;
  readonly dryRun?: true;
  readonly execute?: true;
  readonly json?: true;
}

const catchUpDefaultSeconds = 86_400;

export function schedule(program: Command, found: Found): void {
  const verb = program
    .command('schedule')
    .summary('replays that run again and again')
    .description(
      'Keeps a plan as a Schedule of Temporal, which starts it when it is due. A run that is due while the last one goes on is left out; a plan with a window says what each run replays.',
    )
    .usage('(create | list | pause | resume | trigger | delete) [options]');
  withExamples(verb, [{ command: 'replay-stream schedule list', does: 'last results and next times' }]);
  createSchedule(verb, found);
  const list = verb
    .command('list')
    .summary('last results and next times')
    .description('Lists the Schedules of replays, with their last results and next times.')
    .usage('[options]')
    .option('--json', 'one JSON object')
    .action(({ json }: { json?: true }) => found({ verb: 'schedule', options: { action: 'list', json: json === true } }));
  withExamples(list, [{ command: 'replay-stream schedule list --json', does: 'for a script' }]);
  for (const [action, summary] of [
    ['pause', 'start no more runs'],
    ['resume', 'start runs again'],
    ['trigger', 'start a run now'],
    ['delete', 'remove it; a run that goes on is left alone'],
  ] as const) {
    const one = verb
      .command(action)
      .summary(summary)
      .description(describedAs[action])
      .usage('NAME [options]')
      .argument('<NAME>', 'name of the Schedule')
      .option('--json', 'one JSON object');
    if (action === 'pause' || action === 'resume') one.option('--reason <text>', 'shown as the note of the Schedule');
    one.action((name: string, { reason, json }: { reason?: string; json?: true }) =>
      found({ verb: 'schedule', options: { action, name, reason: reason ?? null, json: json === true } }),
    );
    withExamples(one, [{ command: `replay-stream schedule ${action} orders-nightly`, does: summary }]);
  }
}

const describedAs = {
  pause: 'Pauses a Schedule: no run is started until resume. A run that goes on is left alone.',
  resume: 'Resumes a paused Schedule.',
  trigger: 'Starts a run of a Schedule now, paused or not; refused while its last run goes on.',
  delete: 'Removes a Schedule. A run that goes on is left alone.',
} as const;

function createSchedule(verb: Command, found: Found): void {
  const create = verb
    .command('create')
    .summary('keep a plan as a Schedule')
    .description('Keeps a plan as a Schedule. Plan and target are checked now, and again each time that a run begins.')
    .usage('NAME (PLAN TARGET | --reconcile) (--every TIME | --cron LINE) [options]')
    .argument('<NAME>', 'name of the Schedule')
    .argument('[PLAN]', 'plan file; with a window it replays something new each time')
    .argument('[TARGET]', 'target file, or the name of a target in the targets folder of the worker')
    .addOption(new Option('--every <time>', 'such as 15m, 24h or 7d').argParser(duration).conflicts('cron'))
    .addOption(new Option('--cron <line>', 'such as "30 3 * * *"').conflicts('every'))
    .option('--timezone <zone>', 'of --cron, such as Europe/Berlin; default UTC')
    .addOption(new Option('--jitter <time>', 'start each run up to so much later').argParser(duration))
    .addOption(
      new Option('--catch-up <time>', 'runs missed while Temporal was down are made up for this long')
        .argParser(duration)
        .default(catchUpDefaultSeconds, '1d'),
    )
    .option('--paused', 'create it paused')
    .option('--pause-on-failure', 'pause it when a run fails')
    .option('--reconcile', 'instead of a plan: repair all topics each time, as topic reconcile does')
    .option('--note <text>', 'what it is for')
    .addOption(new Option('--dry-run', 'runs only say what they would replay').conflicts('execute'))
    .addOption(new Option('--execute', 'runs write, whatever the plan says').conflicts('dryRun'))
    .option('--json', 'one JSON object')
    .action((name: string, planFile: string | undefined, targetFile: string | undefined, flags: CreateFlags) => {
      const { every, cron } = flags;
      if (every === undefined && cron === undefined) return create.error('error: expected --every TIME or --cron LINE');
      const isReconcile = flags.reconcile === true;
      if (isReconcile ? planFile !== undefined : targetFile === undefined)
        return create.error('error: expected PLAN and TARGET, or --reconcile without them');
      found({
        verb: 'schedule',
        options: {
          action: 'create',
          name,
          files: isReconcile
            ? null
            : {
                planFile: planFile!,
                targetFile: targetFile!,
                dryRun: flags.dryRun ? true : flags.execute ? false : undefined,
              },
          due: every === undefined ? { cron: cron!, timezone: flags.timezone ?? 'UTC' } : { everySeconds: every },
          jitterSeconds: flags.jitter ?? 0,
          catchUpSeconds: flags.catchUp,
          paused: flags.paused === true,
          pauseOnFailure: flags.pauseOnFailure === true,
          note: flags.note ?? null,
          json: flags.json === true,
        },
      });
    });
  withExamples(create, [
    {
      command: 'replay-stream schedule create orders-nightly plan.json target.json --cron "30 3 * * *" --execute',
      does: 'every night',
    },
    {
      command: 'replay-stream schedule create topics-repair --reconcile --every 1h',
      does: 'repair of all topics',
    },
    {
      command: 'replay-stream schedule create orders-hourly plan.json warehouse --every 1h --jitter 5m --execute',
      does: "every hour, into a target of the worker's",
    },
  ]);
}

function duration(text: string): number {
  const seconds = durationSeconds(text);
  if (seconds === null) throw new InvalidArgumentError('Expected a length of time such as 90s, 15m, 24h or 7d');
  return seconds;
}

const inspectDefault = 10;
const inspectMax = 1_000;
const inspectBytesDefault = 1_048_576;
const inspectBytesMax = 64 * 1_048_576;

export function inspect(program: Command, found: Found): void {
  const verb = program
    .command('inspect')
    .summary('look at stored messages')
    .description(
      'Shows messages of a stream in order, read-only: no consumer, no ACK, no sink. Bodies by size and hash, header values that ' +
        'look like credentials left out. Asks the NATS server that NATS_URL of this shell names.',
    )
    .usage('STREAM [options]')
    .argument('<STREAM>', 'name of the stream')
    .option('--subject <filter...>', 'only these subjects; default: all')
    .option('--from <sequence>', 'first sequence', wholeNumber(1, Number.MAX_SAFE_INTEGER), 1)
    .option('--limit <n>', `at most so many, up to ${groupDigits(inspectMax)}`, wholeNumber(1, inspectMax), inspectDefault)
    .option('--max-bytes <n>', 'bytes of bodies read in all', wholeNumber(0, inspectBytesMax), inspectBytesDefault)
    .option('--bodies', 'the beginning of each body too')
    .option('--json', 'one JSON object')
    .action((stream: string, flags: InspectFlags) => {
      const { subject, from, limit, maxBytes, bodies, json } = flags;
      const filters = subject ?? ['>'];
      const wrong = nameProblem(stream) ?? filters.map(filterProblem).find((problem) => problem !== undefined);
      if (wrong !== undefined) return verb.error(`error: a name or subject ${wrong}`);
      found({
        verb: 'inspect',
        options: { stream, filters, from, limit, bytesMax: maxBytes, bodies: bodies === true, json: json === true },
      });
    });
  withExamples(verb, [
    { command: 'replay-stream inspect ORDERS --from 1000 --limit 5', does: 'five messages' },
    { command: 'replay-stream inspect DLQ --subject dlq.orders --bodies', does: 'what was dead-lettered' },
  ]);
}

interface InspectFlags {
  readonly subject?: string[];
  readonly from: number;
  readonly limit: number;
  readonly maxBytes: number;
  readonly bodies?: true;
  readonly json?: true;
}

export function doctor(program: Command, found: Found): void {
  const verb = program
    .command('doctor')
    .summary('what is wrong, and what to type')
    .description(
      'Looks at servers, versions, search attributes, workers, folders and settings as this shell sees them; with PLAN and TARGET also ' +
        'at the stream, the permissions and the clocks. Changes nothing unless --register. Exit status 1 when something is wrong.',
    )
    .usage('[PLAN TARGET] [options]')
    .argument('[PLAN]', 'plan file')
    .argument('[TARGET]', 'target file, or the name of a target in the targets folder of the worker')
    .option('--register', 'register the search attributes that the Temporal server lacks')
    .option('--json', 'one JSON object')
    .action((planFile: string | undefined, targetFile: string | undefined, flags: { register?: true; json?: true }) => {
      if (planFile !== undefined && targetFile === undefined) return verb.error('error: missing TARGET');
      const files = planFile === undefined || targetFile === undefined ? null : { planFile, targetFile, dryRun: undefined };
      found({ verb: 'doctor', options: { files, register: flags.register === true, json: flags.json === true } });
    });
  withExamples(verb, [
    { command: 'replay-stream doctor', does: 'servers and this machine' },
    { command: 'replay-stream doctor plan.json target.json', does: 'and what this plan needs' },
  ]);
}

export function completion(program: Command, found: Found): void {
  const verb = program
    .command('completion')
    .summary('completion for a shell')
    .description('Prints the completion of verbs and options for a shell.')
    .usage('(bash | zsh | fish) [options]')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .option('--json', 'one JSON object')
    .action((shell: Shell, { json }: { json?: true }) =>
      found({ verb: 'completion', options: { shell, json: json === true } }),
    );
  withExamples(verb, [
    { command: 'replay-stream completion bash > /etc/bash_completion.d/replay-stream', does: 'bash' },
    { command: 'replay-stream completion fish > ~/.config/fish/completions/replay-stream.fish', does: 'fish' },
  ]);
}

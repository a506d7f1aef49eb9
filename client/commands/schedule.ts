import type { Client } from '@temporalio/client';
import { withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { formatFileProblems, readRequest, type RequestFiles } from '../files.ts';
import { textTable } from '../render.ts';
import {
  createReconcileSchedule,
  createSchedule,
  deleteSchedule,
  listSchedules,
  pauseSchedule,
  resumeSchedule,
  triggerSchedule,
  type NewSchedule,
  type ScheduleFacts,
} from '../schedules.ts';
import { outJson, type Terminal } from '../terminal.ts';

export type ScheduleOptions = { readonly json: boolean } & (
  | ({ readonly action: 'create'; readonly files: RequestFiles | null } & NewSchedule)
  | { readonly action: 'list' }
  | {
      readonly action: 'pause' | 'resume' | 'trigger' | 'delete';
      readonly name: string;
      /** null: none was given. */
      readonly reason: string | null;
    }
);

export async function schedule(options: ScheduleOptions, terminal: Terminal): Promise<ExitStatus> {
  switch (options.action) {
    case 'create':
      return await create(options, terminal);
    case 'list':
      return await list(options, terminal);
    default:
      return await change(options, terminal);
  }
}

async function create(
  options: Extract<ScheduleOptions, { readonly action: 'create' }>,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (options.files === null) return await createRepair(options, terminal);
  const reading = await readRequest(options.files, Date.now());
  if (!reading.ok) {
    terminal.err(formatFileProblems(reading.problems));
    return exitStatus('refused');
  }
  const { plan } = reading.value;
  if (plan.window === null)
    terminal.err('Note: the plan has no window, so that every run replays the same range (docs/delivery.md, "Windows").');
  if (plan.dry_run) terminal.err('Note: its runs are dry runs; with --execute they write.');
  await withTemporal((client) => createSchedule(client, reading.value, options));
  const { name } = options;
  if (options.json) outJson(terminal, { name, dry_run: plan.dry_run, window: plan.window });
  else
    terminal.out(
      `Created ${name}${options.paused ? ', paused' : ''}\n  look: replay-stream schedule list\n  run it now: replay-stream schedule trigger ${name}`,
    );
  return exitStatus('done');
}

/** Of all topics. */
async function createRepair(options: NewSchedule & { readonly json: boolean }, terminal: Terminal): Promise<ExitStatus> {
  await withTemporal((client) => createReconcileSchedule(client, options));
  const { name } = options;
  if (options.json) outJson(terminal, { name, reconcile: true });
  else terminal.out(`Created ${name}${options.paused ? ', paused' : ''}: repairs all topics each time`);
  return exitStatus('done');
}

async function list({ json }: ScheduleOptions, terminal: Terminal): Promise<ExitStatus> {
  const schedules = await withTemporal(listSchedules);
  if (json) outJson(terminal, { schedules });
  else if (schedules.length === 0) terminal.out('No Schedule starts replays. Create one: replay-stream schedule create --help');
  else terminal.out(textTable(['NAME', 'NEXT', 'LAST STATE', 'LAST RUN', 'NOTE'], schedules.map(rowOf)));
  return exitStatus('done');
}

function rowOf({ name, paused, note, next_at, last }: ScheduleFacts): string[] {
  const [latest] = last;
  const states = last.slice(0, 3).map(({ state }) => state ?? 'gone');
  return [name, paused ? 'paused' : (next_at ?? '-'), states.join(', ') || '-', latest?.workflow_id ?? '-', note ?? ''];
}

async function change(
  { action, name, reason, json }: Extract<ScheduleOptions, { readonly reason: unknown }>,
  terminal: Terminal,
): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const started = await changeSchedule(client, { action, name, reason });
    if (json) outJson(terminal, { name, asked: action, ...(started === null ? {} : { workflow_id: started }) });
    else if (started === null) terminal.out(`${name}: ${done[action]}`);
    else terminal.out(`Started ${started}\n  follow it: replay-stream status ${started} --follow`);
    return exitStatus('done');
  });
}

const done = { pause: 'paused', resume: 'resumed', trigger: 'triggered', delete: 'deleted' } as const;

/** Id of the run that was started; null: none was asked for. */
async function changeSchedule(
  client: Client,
  { action, name, reason }: Pick<Extract<ScheduleOptions, { readonly reason: unknown }>, 'action' | 'name' | 'reason'>,
): Promise<string | null> {
  if (action === 'trigger') return await triggerSchedule(client, name);
  if (action === 'pause') await pauseSchedule(client, name, reason);
  else if (action === 'resume') await resumeSchedule(client, name, reason);
  else await deleteSchedule(client, name);
  return null;
}

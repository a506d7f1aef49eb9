import type { ExitStatus } from './exit.ts';
import type { Invocation, Invocations, Verb } from './parse.ts';
import type { Terminal } from './terminal.ts';

type Action<V extends Verb> = (options: Invocations[V], terminal: Terminal) => Promise<ExitStatus>;

/** Each verb is loaded when it is asked for: help and mistakes cost no client, no worker. */
const actions: { readonly [V in Verb]: () => Promise<Action<V>> } = {
  replay: async () => (await import('./commands/replay.ts')).replay,
  status: async () => (await import('./commands/status.ts')).status,
  list: async () => (await import('./commands/list.ts')).list,
  pause: async () => (await import('./commands/pause.ts')).pause,
  resume: async () => (await import('./commands/resume.ts')).resume,
  cancel: async () => (await import('./commands/cancel.ts')).cancel,
  rate: async () => (await import('./commands/rate.ts')).rate,
  decide: async () => (await import('./commands/decide.ts')).decide,
  approve: async () => (await import('./commands/approve.ts')).approve,
  schedule: async () => (await import('./commands/schedule.ts')).schedule,
  report: async () => (await import('./commands/report.ts')).report,
  check: async () => (await import('./commands/check.ts')).check,
  inspect: async () => (await import('./commands/inspect.ts')).inspect,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  retryOptional: async () => (await import('./commands/retry-optional.ts')).retryOptional,
  drain: async () => (await import('./commands/spool-drain.ts')).drain,
  worker: async () => (await import('./commands/worker.ts')).worker,
  dev: async () => (await import('./commands/dev.ts')).dev,
  completion: async () => (await import('./commands/completion.ts')).completion,
  topic: async () => (await import('./commands/topic.ts')).topic,
};

/** They read targets, or write into what targets name. */
const sinkVerbs: readonly Verb[] = ['replay', 'check', 'schedule', 'retryOptional', 'drain', 'worker', 'dev'];

export async function act({ verb, options }: Invocation, terminal: Terminal): Promise<ExitStatus> {
  if (sinkVerbs.includes(verb)) await (await import('./sinks.ts')).loadSinks(process.env);
  // The pair fits by construction of Invocation; the union itself cannot say so.
  const action = (await actions[verb]()) as Action<Verb>;
  return await action(options, terminal);
}

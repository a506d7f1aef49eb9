import type { Report } from '../core/report.ts';

/** Exit statuses of `replay-stream`, each with what it says. Scripts rely on the numbers. */
export const exitStatuses = {
  done: { status: 0, meaning: 'done' },
  failed: { status: 1, meaning: 'failed: the replay, the connection to Temporal, or the command itself' },
  refused: { status: 2, meaning: 'refused: plan, target or usage; nothing was replayed' },
  rejects: { status: 3, meaning: 'done, with rejects (see the dead letters), or messages vanished before they were reached' },
  canceled: { status: 4, meaning: 'canceled' },
  blocked: { status: 5, meaning: 'blocked, or awaiting approval, and nobody at a terminal to ask; the replay goes on waiting' },
  interrupted: { status: 130, meaning: 'left by Ctrl-C (SIGINT); the replay goes on' },
  terminated: { status: 143, meaning: 'left by SIGTERM; the replay goes on' },
} as const;

export type ExitName = keyof typeof exitStatuses;
export type ExitStatus = (typeof exitStatuses)[ExitName]['status'];

export function exitStatus(name: ExitName): ExitStatus {
  return exitStatuses[name].status;
}

/** Of a run that completed. */
export function exitOfReport(report: Report): ExitStatus {
  const { rejected, vanished } = report.counts;
  return exitStatus(rejected > 0 || vanished > 0 ? 'rejects' : 'done');
}

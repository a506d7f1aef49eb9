import { randomUUID } from 'node:crypto';
import type { Finding } from '../../sinks/sink.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { formatFileProblems, readRequest, type FileProblem, type RequestFiles } from '../files.ts';
import type { CheckedRequest } from '../request.ts';
import { startDetails } from '../start-details.ts';
import { outJson, type Terminal } from '../terminal.ts';

export interface CheckOptions extends RequestFiles {
  /** Let a worker look at the destination. */
  readonly connect: boolean;
  readonly json: boolean;
}

interface Verdict {
  readonly ok: boolean;
  readonly problems: readonly FileProblem[];
  /** null: the destination was not looked at. */
  readonly findings: readonly Finding[] | null;
}

/** Offline unless `connect`; starts no replay. Exit status 2 when a plan with these files could not run. */
export async function check(options: CheckOptions, terminal: Terminal): Promise<ExitStatus> {
  const verdict = await judge(options, terminal);
  if (options.json) outJson(terminal, verdict);
  return exitStatus(verdict.ok ? 'done' : 'refused');
}

async function judge(options: CheckOptions, terminal: Terminal): Promise<Verdict> {
  const reading = await readRequest(options, Date.now());
  if (!reading.ok) {
    terminal.err(formatFileProblems(reading.problems));
    return { ok: false, problems: reading.problems, findings: null };
  }
  if (!options.json) terminal.out(`Plan and target are right.\n${startDetails(reading.value)}`);
  if (!options.connect) {
    if (!options.json) terminal.out('The destination was not looked at; --connect lets a worker do that.');
    return { ok: true, problems: [], findings: null };
  }
  return await lookAtDestination(reading.value, options, terminal);
}

async function lookAtDestination({ request }: CheckedRequest, options: CheckOptions, terminal: Terminal): Promise<Verdict> {
  const { assertWorker, withTemporal } = await import('../connect.ts');
  const { probeTarget, RequestRefused } = await import('../replays.ts');
  return await withTemporal(async (client) => {
    await assertWorker(client);
    try {
      const findings = await probeTarget(client, request, `check:${randomUUID()}`);
      if (!options.json) terminal.out(findingsText(findings));
      return { ok: !findings.some(({ severity }) => severity === 'error'), problems: [], findings };
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      const problems = error.problems.map((problem) => ({ file: options.targetFile, ...problem }));
      terminal.err(formatFileProblems(problems));
      return { ok: false, problems, findings: null };
    }
  });
}

function findingsText(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'The destination is ready.';
  return findings
    .map(({ severity, message, next }) => `${severity}: ${message}${next === undefined ? '' : `\n  next: ${next}`}`)
    .join('\n');
}

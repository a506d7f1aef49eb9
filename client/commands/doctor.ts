import { checkMachine } from '../doctor/machine.ts';
import { checkNats, type Asked } from '../doctor/nats.ts';
import { checkTemporal } from '../doctor/temporal.ts';
import type { Check } from '../doctor/check.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { formatFileProblems, readRequest, type RequestFiles } from '../files.ts';
import { outJson, type Terminal } from '../terminal.ts';

export interface DoctorOptions {
  /** null: servers and machine only. */
  readonly files: RequestFiles | null;
  /** Register the search attributes that the server lacks. */
  readonly register: boolean;
  readonly json: boolean;
}

/** Exit status 1 when something is wrong. Looks from this shell: a worker elsewhere may see other servers and folders. */
export async function doctor({ files, register, json }: DoctorOptions, terminal: Terminal): Promise<ExitStatus> {
  let asked: Asked | null = null;
  if (files !== null) {
    const reading = await readRequest(files, Date.now());
    if (!reading.ok) {
      terminal.err(formatFileProblems(reading.problems));
      return exitStatus('refused');
    }
    asked = { plan: reading.value.plan, target: reading.value.target };
  }
  const checks = (await Promise.all([checkMachine(), checkTemporal({ register }), checkNats(asked)])).flat();
  const wrong = checks.some(({ status }) => status === 'error');
  if (json) outJson(terminal, { ok: !wrong, checks });
  else terminal.out(checks.map(lineOf).join('\n'));
  return exitStatus(wrong ? 'failed' : 'done');
}

const marks = { ok: 'ok     ', warning: 'warning', error: 'ERROR  ', skipped: '-      ' } as const;

function lineOf({ name, status, message, next }: Check): string {
  return `${marks[status]}  ${name.padEnd(18)}${message}${next === null ? '' : `\n         next: ${next}`}`;
}

import type { AwaitedApproval } from '../core/approval.ts';
import { formatDuration, limitsText, progressBar, waitingText } from '../core/details.ts';
import { counted, groupDigits } from '../core/problems.ts';
import type { BlockedBy, Counts, Progress } from '../core/progress.ts';
import { rejectDetail } from '../core/record.ts';
import type { Report } from '../core/report.ts';

/** Text for people. Pure; widths in cells. */

const barCells = 20;
const shortBarCells = 10;
const rejectsShown = 5;
/** Below this width of the terminal the bar is short. */
const narrowColumns = 72;

/** One line, never longer than `columns` less one: a line that wraps cannot be drawn again in place. */
export function progressLine(progress: Progress, columns: number): string {
  const cells = columns < narrowColumns ? shortBarCells : barCells;
  const bar = progress.percent === null ? [] : [`${progressBar(progress.percent, cells)} ${progress.percent} %`];
  return fitted([progress.state, ...bar, ...progressParts(progress)], columns - 1);
}

/** One line for logs and pipes. */
export function progressText(progress: Progress): string {
  const percent = progress.percent === null ? [] : [`${progress.percent} %`];
  return [progress.state, ...percent, ...progressParts(progress)].join(', ');
}

/** Why a plan is blocked and what to do: two lines. */
export function problemText(problem: BlockedBy): string {
  const detail = problem.detail === null ? '' : ` (${problem.detail})`;
  const retry = problem.retry_at === null ? 'not tried again until resume' : `tried again at ${problem.retry_at}`;
  return `blocked: ${problem.code}${detail} since ${problem.since}, ${retry}\n  next: ${problem.next}`;
}

/** What a person is about to approve. */
export function approvalText({ messages, bytes, exact, fingerprint, expires_at, preflight }: AwaitedApproval): string {
  return [
    `awaiting approval until ${expires_at}, fingerprint ${fingerprint}`,
    `  would replay ${exact ? '' : 'about '}${counted(messages, 'message')}, about ${formatBytes(bytes)} stored`,
    ...preflight.map(
      ({ severity, message, next }) => `  destination, ${severity}: ${message}${next === undefined ? '' : ` ${next}`}`,
    ),
  ].join('\n');
}

/** The block that `status` shows. */
export function progressBlock(progress: Progress): string {
  const { range, counts, problem, rejects } = progress;
  const limit = limitsText(progress);
  const left = !progress.secondsLeft ? '' : `, ${formatDuration(progress.secondsLeft)} left`;
  const rows: [string, string][] = [
    ['range', `${range.first} to ${range.last ?? 'the end of the stream'}, cursor ${progress.cursor}`],
    ['rate', `${decimal(progress.rate)} records/s${limit}${left}`],
    ...countRows(counts),
  ];
  const bar = progress.percent === null ? [] : [`  ${progressBar(progress.percent)} ${progress.percent} %`];
  const lines = [...bar, ...aligned(rows)];
  if (progress.waiting != null) lines.push(waitingText(progress.waiting));
  if (progress.approval != null) lines.push(approvalText(progress.approval));
  if (problem !== null) lines.push(problemText(problem));
  if (rejects.length > 0) lines.push(rejectLine(rejects.slice(-rejectsShown), counts.rejected));
  return lines.join('\n');
}

/** What a finished run, or one still going on, comes to. */
export function reportSummary(report: Report): string {
  const { plan, sink, range, timings, counts } = report;
  const reason = report.stop_reason === null || report.stop_reason === report.state ? '' : ` (${report.stop_reason})`;
  const rows: [string, string][] = [
    ['from', `stream ${plan.stream}, subject families ${plan.subject_families.join(', ')}`],
    [
      'into',
      `${sink.type}, idempotency key ${sink.key}${sink.duplicates_safe ? '' : ', duplicates are NOT safe'}${sink.dead_letter ? '' : ', no dead letters'}`,
    ],
    ['range', `${range.first} to ${range.last ?? 'the end of the stream'}, ${rangeSize(report)}`],
  ];
  if (report.state !== 'rehearsed') {
    rows.push(
      ['cursor', `${range.cursor}${range.not_reached ? `, ${groupDigits(range.not_reached)} not reached` : ''}`],
      ...countRows(counts),
      ['time', `${formatDuration(Math.round(timings.total_seconds))}, ${decimal(timings.records_per_second)} records/s`],
    );
  }
  const lines = [`${plan.durable_consumer}: ${report.state}${reason}`, ...aligned(rows)];
  if (report.warnings.length > 0) lines.push('warnings', ...report.warnings.map((warning) => `  - ${warning}`));
  if (report.rejects.length > 0) lines.push(rejectLine(report.rejects.slice(0, rejectsShown), counts.rejected));
  return lines.join('\n');
}

/** Rows under a head, columns as wide as their widest cell; the last column is not padded. */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** 1.2 MiB */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1_024 ** step;
  return `${step === 0 ? value : value.toFixed(1)} ${units[step]}`;
}

function progressParts({ counts, rate, secondsLeft }: Progress): string[] {
  const settled = counts.written + counts.duplicate + counts.rejected;
  return [
    ...(secondsLeft === null ? [] : [`${formatDuration(secondsLeft)} left`]),
    ...(rate > 0 ? [`${decimal(rate)}/s`] : []),
    ...(settled > 0 ? [`${groupDigits(settled)} settled`] : []),
    ...(counts.rejected > 0 ? [`${groupDigits(counts.rejected)} rejected`] : []),
  ];
}

/** As many of the parts, from the front, as fit; the first one always, cut if need be. */
function fitted([first = '', ...rest]: readonly string[], width: number): string {
  let line = first.slice(0, Math.max(0, width));
  for (const part of rest) {
    const longer = `${line}  ${part}`;
    if (longer.length > width) return line;
    line = longer;
  }
  return line;
}

function countRows(counts: Counts): [string, string][] {
  const named = (names: readonly (keyof Counts)[]): string =>
    names.map((name) => `${name} ${groupDigits(counts[name])}`).join(', ');
  const rare = (['lost_body', 'vanished', 'gaps'] as const).filter((name) => counts[name] > 0);
  return [
    ['settled', named(['written', 'duplicate', 'rejected', 'dead_lettered'])],
    ['pulled', `${groupDigits(counts.pulled)}, ${named(['acked', 'skipped', ...rare])}, ${formatBytes(counts.bytes)}`],
  ];
}

function rangeSize({ range }: Report): string {
  const messages = `${range.count_exact ? '' : 'about '}${counted(range.count, 'message')}`;
  return `${messages}, ${range.bytes_exact ? '' : 'about '}${formatBytes(range.bytes)} stored`;
}

function rejectLine(rejects: Report['rejects'], total: number): string {
  const shown = rejects.map((reject) => {
    const detail = rejectDetail(reject);
    return `${reject.sequence} ${reject.code}${detail === '' ? '' : ` (${detail})`}`;
  });
  return `rejects (${shown.length} of ${groupDigits(total)}): ${shown.join('; ')}`;
}

function aligned(rows: readonly [string, string][]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
}

/** 12,345.6 */
function decimal(value: number): string {
  const [whole, fraction] = String(value).split('.');
  return `${groupDigits(Number(whole))}${fraction === undefined ? '' : `.${fraction}`}`;
}

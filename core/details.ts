import type { AwaitedApproval } from './approval.ts';
import type { Description } from './description.ts';
import { faultEntry, type FaultCode } from './errors.ts';
import { counted, groupDigits, type Problem } from './problems.ts';
import type { BlockedBy, Progress, Waiting } from './progress.ts';

const barCells = 20;

/** `##########----------` */
export function progressBar(percent: number, cells: number = barCells): string {
  const full = Math.floor((percent / 100) * cells);
  return '█'.repeat(full) + '░'.repeat(cells - full);
}

export function formatDuration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

/** The status of a plan that has not been described yet. */
export function describingMarkdown({ state, problem }: Pick<Progress, 'state' | 'problem'>): string {
  return [`**${state}**`, '', ...problemLines(problem)].join('\n');
}

/** The status of a plan that was refused: all that is wrong with it. */
export function refusedMarkdown(problems: readonly Problem[]): string {
  const lines = problems.map(({ path, message }) => `- ${path === '' ? '' : `\`${path}\`: `}${message}`);
  return ['**refused**: nothing was replayed', '', ...lines, '', '**Next**: mend this, then start it again.'].join('\n');
}

function problemLines(problem: BlockedBy | null): string[] {
  if (problem === null) return [];
  const { code, detail, since, next, retry_at: retryAt } = problem;
  return [
    `**Problem**: ${faultEntry(code).meaning}`,
    '',
    `- \`${code}\`${detail === null ? '' : `: ${detail}`}`,
    `- since ${since}; ${retryAt === null ? 'it waits for you' : `tried again by itself at ${retryAt}`}`,
    '',
    `**Next**: ${next}`,
    '',
    ...howLines(problem),
    '',
  ];
}

const aboutRecords: readonly FaultCode[] = ['reject_budget', 'drift', 'dead_letter_not_configured'];

const decisionTexts = {
  'dead-letter': 'store the refused records of this batch as dead letters',
  skip: 'leave them out for good',
  retry: 'the destination is mended: write the batch again',
} as const;

/** What to send from the menu More Actions of Temporal's UI, ready to copy. */
function howLines({ code }: BlockedBy): string[] {
  const resume = '- More Actions, Send a Signal: `resume`, no input: try again now';
  if (!aboutRecords.includes(code)) return [resume];
  const decisions = Object.entries(decisionTexts).filter(
    ([decision]) => decision !== 'dead-letter' || code !== 'dead_letter_not_configured',
  );
  return [
    resume,
    ...decisions.map(
      ([decision, does]) => `- More Actions, Send an Update: \`decide\`, input \`${JSON.stringify({ decision })}\`: ${does}`,
    ),
    '- Queries, `progress`: the last records that were refused, each with its reason',
  ];
}

/** The short Markdown status of a plan for Temporal's UI. Lists only: it does not draw tables. */
export function detailsMarkdown(description: Description, progress: Progress): string {
  if (progress.approval === null) return workingMarkdown(description.plan.stream, description.sink.type, progress);
  const lines = headLines(description.plan.stream, description.sink.type, progress);
  return [...lines, ...approvalLines(description, progress.approval)].join('\n');
}

function headLines(from: string, into: string, { state, problem }: Progress): string[] {
  return [`**${state}**: ${from} → ${into}`, '', ...problemLines(problem)];
}

/** Of a run at work: a plan, or the drain of a spool. */
export function workingMarkdown(from: string, into: string, progress: Progress): string {
  const { counts } = progress;
  const lines = headLines(from, into, progress);
  lines.push(...waitingLines(progress.waiting));
  if (progress.percent !== null) lines.push(`\`${progressBar(progress.percent)}\` ${progress.percent} %`, '');
  lines.push(
    `- written ${counts.written}, duplicate ${counts.duplicate}, rejected ${counts.rejected}, dead-lettered ${counts.dead_lettered}`,
    `- acknowledged ${counts.acked} of ${counts.pulled} pulled`,
    `- cursor ${progress.cursor}, range ${progress.range.first} to ${progress.range.last ?? 'the end of the stream'}`,
    `- ${progress.rate} records/s${limitsText(progress)}` +
      (progress.secondsLeft === null ? '' : `, about ${formatDuration(progress.secondsLeft)} left`),
  );
  return lines.join('\n');
}

/** ` (limit 500, 1048576 bytes/s, pace of the stream x 10)`, or nothing. */
export function limitsText(
  progress: Pick<Progress, 'rate_limit_per_second' | 'rate_limit_bytes_per_second' | 'pace_factor'>,
): string {
  const { rate_limit_per_second: records, rate_limit_bytes_per_second: bytes, pace_factor: factor } = progress;
  const limits = [
    ...(records == null ? [] : [`limit ${groupDigits(records)}`]),
    ...(bytes == null ? [] : [`limit ${groupDigits(bytes)} bytes/s`]),
  ];
  const all = factor == null ? limits : [...limits, `pace of the stream x ${factor}`];
  return all.length === 0 ? '' : ` (${all.join(', ')})`;
}

const waitsFor: Readonly<Record<Waiting['for'], readonly [why: string, how: string]>> = {
  rate_limit: ['the rate limit', 'update `setRate`: `{"perSecond":null}` lifts it'],
  original_pace: ['the next message is due then, at the pace of the stream', 'update `setRate`: `{"factor":100}` goes faster'],
  allowed_hours: ['outside of the allowed hours', 'update `setRate`: `{"allowedHours":null}` goes on now'],
};

/** `waits until 2026-05-01T22:00:00.000Z: outside of the allowed hours` */
export function waitingText({ for: reason, until }: Waiting): string {
  return `waits until ${until}: ${waitsFor[reason][0]}`;
}

function waitingLines(waiting: Waiting | null): string[] {
  return waiting === null ? [] : [`**${waitingText(waiting)}**`, '', `- ${waitsFor[waiting.for][1]}`, ''];
}

/** What is to be approved, and how, ready to copy. */
function approvalLines({ plan, range, target, warnings }: Description, awaited: AwaitedApproval): string[] {
  const about = awaited.exact ? '' : 'about ';
  return [
    `- would replay ${about}${counted(awaited.messages, 'message')}, ${plan.subject_filters.map((filter) => `\`${filter}\``).join(', ')}`,
    `- range ${range.first} to ${range.last ?? 'the end of the stream'}, at most ${plan.max_messages}`,
    `- dead letters: ${target.dead_letter === null ? 'none' : `\`${target.dead_letter.subject}\``}`,
    ...warnings.map((warning) => `- warning: ${warning}`),
    ...awaited.preflight.map(({ severity, message }) => `- destination, ${severity}: ${message}`),
    '',
    `**Next**: approve until ${awaited.expires_at}, with the update \`approve\`; or cancel.`,
    '',
    '```json',
    JSON.stringify({ by: 'YOUR NAME', reason: 'WHY', fingerprint: awaited.fingerprint }),
    '```',
  ];
}

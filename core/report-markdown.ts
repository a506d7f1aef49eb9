import { counted } from './problems.ts';
import { formatDuration } from './details.ts';
import { rejectDetail } from './record.ts';
import type { Report } from './report.ts';

/** A report for people: what happened, whether the counts add up, what was refused. */
export function reportMarkdown(report: Report): string {
  const { counts, range, timings } = report;
  const sections = [
    `# Replay ${report.plan.durable_consumer}: ${report.state}`,
    list([
      `stream ${report.plan.stream}, subject families ${report.plan.subject_families.join(', ')}`,
      `sink ${report.sink.type}, idempotency key ${report.sink.key}`,
      `stopped by: ${report.stop_reason ?? 'still going on'}`,
      `range ${range.first} to ${range.last ?? 'the end of the stream'}, cursor ${range.cursor}, ` +
        `${range.count_exact ? '' : 'about '}${counted(range.count, 'message')} when described`,
      ...(report.approval == null
        ? []
        : [`approved by ${plain(report.approval.by)}: ${plain(report.approval.reason)} (${report.approval.at})`]),
      `${formatDuration(Math.round(timings.total_seconds))}, ${timings.records_per_second} records/s`,
    ]),
    '## Counts',
    table(['count', 'records'], Object.entries(counts)),
  ];
  if (report.warnings.length > 0) sections.push('## Warnings', list(report.warnings));
  if (report.rejects.length > 0) {
    sections.push(
      '## Rejects',
      table(
        ['sequence', 'reason', 'field or size'],
        report.rejects.map((reject) => [
          reject.sequence,
          reject.decision === 'skip' ? `${reject.code} (skipped)` : reject.code,
          rejectDetail(reject),
        ]),
      ),
    );
    if (report.rejects_not_listed > 0) sections.push(`${report.rejects_not_listed} more are not listed.`);
  }
  if (report.batches.length > 0) {
    sections.push(
      '## Batches',
      table(
        ['first', 'last', 'records', 'duplicate', 'rejected', 'pull ms', 'write ms'],
        report.batches.map((batch) => Object.values(batch)),
      ),
    );
    if (report.batches_not_listed > 0) sections.push(`${report.batches_not_listed} batches in the middle are not listed.`);
  }
  return `${sections.join('\n\n')}\n`;
}

function list(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join('\n');
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** On one line, and no Markdown of its own: somebody typed it. */
function plain(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/[\\`*_[\]<>|]/g, (mark) => `\\${mark}`);
}

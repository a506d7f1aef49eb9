import { formatDuration } from './details.ts';
import { groupDigits } from './problems.ts';
import { rejectDetail } from './record.ts';
import type { BatchSummary, Report } from './report.ts';

/** A report as one HTML page: no script, nothing fetched, light and dark. Every text of the report is escaped. */
export function reportHtml(report: Report): string {
  const { counts, plan, range, sink, timings } = report;
  const title = `Replay ${plan.durable_consumer}: ${report.state}`;
  const facts: [string, string][] = [
    ['stream', `${plan.stream}, subject families ${plan.subject_families.join(', ')}`],
    ['sink', `${sink.type}, idempotency key ${sink.key}`],
    ['stopped by', report.stop_reason ?? 'still going on'],
    ['range', `${range.first} to ${range.last ?? 'the end of the stream'}, cursor ${range.cursor}`],
    ['messages', `${range.count_exact ? '' : 'about '}${groupDigits(range.count)} when described`],
    ['time', `${formatDuration(Math.round(timings.total_seconds))}, ${groupDigits(timings.records_per_second)} records/s`],
    ['started, ended', `${timings.started_at}, ${timings.ended_at ?? 'not yet'}`],
    ...(report.approval == null
      ? []
      : [['approved', `by ${report.approval.by}: ${report.approval.reason} (${report.approval.at})`] as [string, string]]),
  ];
  const names = Object.entries(counts).map(([name, count]): [string, string] => [name, groupDigits(count)]);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${style}</style>
<h1>${escaped(title)}</h1>
${table([], facts)}
<h2>Counts</h2>
${table(['count', 'records'], names)}
${timeline(report.batches)}
${section('Warnings', report.warnings.length > 0, `<ul>${report.warnings.map((one) => `<li>${escaped(one)}</li>`).join('')}</ul>`)}
${section('Rejects', report.rejects.length > 0, rejectTable(report))}
${section('Batches', report.batches.length > 0, batchTable(report))}
</html>
`;
}

const style = `
body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid #8884}svg{width:100%;height:auto}text{font:11px system-ui,sans-serif;fill:currentColor}
.written{fill:#2a9d63}.duplicate{fill:#8a8f98}.rejected{fill:#d1495b}.rate{fill:none;stroke:#3f7cc4;stroke-width:1.5}`;

function section(title: string, shown: boolean, content: string): string {
  return shown ? `<h2>${title}</h2>\n${content}` : '';
}

function rejectTable({ rejects, rejects_not_listed: more }: Report): string {
  const rows = rejects.map((reject): string[] => [
    String(reject.sequence),
    reject.decision === 'skip' ? `${reject.code} (skipped)` : reject.code,
    rejectDetail(reject),
  ]);
  return `${table(['sequence', 'reason', 'field or size'], rows)}${notListed(more, 'more are not listed')}`;
}

function batchTable({ batches, batches_not_listed: more }: Report): string {
  const head = ['first', 'last', 'records', 'duplicate', 'rejected', 'pull ms', 'write ms'];
  const rows = batches.map(({ first, last, records, duplicate, rejected, pull_ms, write_ms }) =>
    [first, last, records, duplicate, rejected, pull_ms, write_ms].map(String),
  );
  return `${table(head, rows)}${notListed(more, 'batches in the middle are not listed')}`;
}

function notListed(count: number, what: string): string {
  return count === 0 ? '' : `<p>${groupDigits(count)} ${what}.</p>`;
}

const width = 800;
const height = 160;
const below = 24;

interface Slice {
  readonly batch: BatchSummary;
  /** Seconds since the start of the run. */
  readonly from: number;
  readonly to: number;
}

/** Bars of outcomes by batch over time, and the rate as a line. */
function timeline(batches: readonly BatchSummary[]): string {
  if (batches.length === 0) return '';
  const slices = slicesOf(batches);
  const end = slices.at(-1)!.to;
  const most = Math.max(1, ...batches.map(({ records }) => records));
  const rates = slices.map(({ batch, from, to }) => batch.records / Math.max(to - from, 0.05));
  const top = Math.max(1, ...rates);
  const x = (seconds: number): number => round((seconds / end) * width);
  const line = slices.map(({ from, to }, i) => `${x((from + to) / 2)},${round(height - (rates[i]! / top) * height)}`).join(' ');
  return `<h2>Timeline</h2>
<svg viewBox="0 0 ${width} ${height + below}" role="img" aria-label="records a batch, and rate, over time">
${slices.map((slice) => bars(slice, { x, most })).join('\n')}
<polyline class="rate" points="${line}"/>
<text x="0" y="${height + 16}">start</text>
<text x="${width}" y="${height + 16}" text-anchor="end">${escaped(formatDuration(Math.round(end)))}</text>
<text x="${width / 2}" y="${height + 16}" text-anchor="middle">bars: written, duplicate, rejected (most ${groupDigits(most)} a batch); line: up to ${groupDigits(Math.round(top))} records/s</text>
</svg>`;
}

/** Runs of older code did not note when a batch ended: then the work of the batches stands one after the other. */
function slicesOf(batches: readonly BatchSummary[]): Slice[] {
  let at = 0;
  return batches.map((batch) => {
    const took = (batch.pull_ms + batch.write_ms) / 1_000;
    const to = Math.max(batch.at_seconds ?? at + took, at + 0.001);
    // A pause before a batch is no part of its rate.
    const slice = { batch, from: Math.max(at, to - Math.max(took, 0.001) * 4), to };
    at = to;
    return slice;
  });
}

function bars(
  { batch, from, to }: Slice,
  { x, most }: { readonly x: (seconds: number) => number; readonly most: number },
): string {
  const { records, duplicate, rejected } = batch;
  const parts = { written: records - duplicate - rejected, duplicate, rejected };
  let y = height;
  return Object.entries(parts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => {
      const tall = round((count / most) * height);
      y = round(y - tall);
      return `<rect class="${name}" x="${x(from)}" y="${y}" width="${Math.max(1, round(x(to) - x(from) - 1))}" height="${tall}"><title>${batch.first} to ${batch.last}: ${count} ${name}</title></rect>`;
    })
    .join('');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const top = head.length === 0 ? '' : `<tr>${head.map((cell) => `<th>${escaped(cell)}</th>`).join('')}</tr>`;
  const body = rows.map((row) => `<tr>${row.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`);
  return `<table>${top}${body.join('')}</table>`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (mark) => entities[mark]!);
}

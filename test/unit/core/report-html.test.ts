import { expect, test } from 'vitest';
import { reportHtml } from '../../../core/report-html.ts';
import { report } from '../client/samples.ts';

const batches = [
  { first: 1, last: 100, records: 100, duplicate: 20, rejected: 3, pull_ms: 40, write_ms: 60, at_seconds: 0.4 },
  { first: 101, last: 150, records: 50, duplicate: 0, rejected: 0, pull_ms: 40, write_ms: 60, at_seconds: 7 },
];

test('one page: facts, counts, a timeline of outcomes and rate', () => {
  const html = reportHtml(report({ batches }));
  expect(html).toContain('<title>Replay orders-replay: completed</title>');
  expect(html).toContain('<title>1 to 100: 77 written</title>');
  expect(html).toContain('<title>1 to 100: 3 rejected</title>');
  expect(html).toContain('<polyline class="rate" points="');
  expect(html).not.toMatch(/NaN|Infinity|undefined/);
});

test('nothing is fetched, nothing runs, and texts stay texts', () => {
  const html = reportHtml(
    report({
      warnings: ['<script>alert("1")</script> & more'],
      approval: { by: '<b>', reason: 'r', at: 't', fingerprint: 'f' },
    }),
  );
  expect(html).not.toMatch(/<script|src=|href=|url\(|<b>/);
  expect(html).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; more');
});

test('a run of older code, which did not note when its batches ended, has a timeline too', () => {
  const old = batches.map((batch) => ({ ...batch, at_seconds: undefined }));
  const html = reportHtml(report({ batches: old }));
  expect(html).toContain('1 to 100: 77 written');
  expect(html).not.toMatch(/NaN|Infinity/);
});

test('no batches, no timeline', () => expect(reportHtml(report())).not.toContain('<svg'));

import { describe, expect, test } from 'vitest';
import { describingMarkdown } from '../../../core/details.ts';
import { faultCatalogue, type FaultCode } from '../../../core/errors.ts';

const codes = Object.keys(faultCatalogue) as FaultCode[];

function blockedBy(code: FaultCode, retryAt: string | null = null): string {
  const { next } = faultCatalogue[code];
  const problem = { code, detail: 'what happened', since: '2026-05-01T10:00:00.000Z', next, retry_at: retryAt };
  return describingMarkdown({ state: 'blocked', problem });
}

describe('the details of a blocked run', () => {
  test.each(codes)('%s: what is wrong, since when, what to do, and what to send', (code) => {
    const text = blockedBy(code);
    const { meaning, next } = faultCatalogue[code];
    expect(text).toContain(`**Problem**: ${meaning}`);
    expect(text).toContain(`\`${code}\`: what happened`);
    expect(text).toContain('since 2026-05-01T10:00:00.000Z; it waits for you');
    expect(text).toContain(`**Next**: ${next}`);
    expect(text).toContain('Send a Signal: `resume`, no input');
  });

  test('of refused records, with each decision ready to copy', () => {
    for (const decision of ['dead-letter', 'skip', 'retry'])
      expect(blockedBy('reject_budget')).toContain(`\`decide\`, input \`{"decision":"${decision}"}\``);
    expect(blockedBy('dead_letter_not_configured')).not.toContain('"dead-letter"}');
    expect(blockedBy('stream_missing')).not.toContain('decide`');
  });

  test('of what heals by itself', () => {
    expect(blockedBy('nats_unreachable', '2026-05-01T10:01:00.000Z')).toContain(
      'tried again by itself at 2026-05-01T10:01:00.000Z',
    );
  });
});

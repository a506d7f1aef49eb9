import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hoursAt, zoneProblem, type AllowedHours } from '../../../core/hours.ts';

const at = (time: string): number => Date.parse(time);
const shown = (hours: AllowedHours, time: string) => {
  const { open, untilMs } = hoursAt(hours, at(time));
  return `${open ? 'open' : 'closed'} until ${new Date(untilMs).toISOString()}`;
};

describe('allowed hours', () => {
  const night = { zone: 'Europe/Berlin', from: '22:00', to: '06:00' };

  test.each([
    ['2026-05-01T12:00:00Z', 'closed until 2026-05-01T20:00:00.000Z'],
    ['2026-05-01T20:00:00Z', 'open until 2026-05-02T04:00:00.000Z'],
    ['2026-05-02T03:59:59.999Z', 'open until 2026-05-02T04:00:00.000Z'],
    ['2026-05-02T04:00:00Z', 'closed until 2026-05-02T20:00:00.000Z'],
    // The nights in which the clock is changed have seven hours and nine.
    ['2026-03-28T21:00:00Z', 'open until 2026-03-29T04:00:00.000Z'],
    ['2026-10-24T20:00:00Z', 'open until 2026-10-25T05:00:00.000Z'],
  ])('over midnight in Berlin, %s', (time, expected) => {
    expect(shown(night, time)).toBe(expected);
  });

  test('an hour that comes twice is allowed twice; one that is left out waits for the next day', () => {
    const early = { zone: 'Europe/Berlin', from: '02:00', to: '03:00' };
    expect(shown(early, '2026-10-24T23:00:00Z')).toBe('closed until 2026-10-25T00:00:00.000Z');
    expect(shown(early, '2026-10-25T00:30:00Z')).toBe('open until 2026-10-25T02:00:00.000Z');
    expect(shown(early, '2026-03-29T00:00:00Z')).toBe('closed until 2026-03-30T00:00:00.000Z');
  });

  test('a zone whose clock is changed by half an hour', () => {
    const hours = { zone: 'Australia/Lord_Howe', from: '01:45', to: '02:15' };
    expect(shown(hours, '2026-04-04T14:45:00Z')).toBe('open until 2026-04-04T15:00:00.000Z');
    expect(shown(hours, '2026-04-04T15:00:00Z')).toBe('closed until 2026-04-04T15:15:00.000Z');
  });

  test('what is answered holds until then and not longer, and the wall clock there says so', () => {
    const minute = fc.integer({ min: 0, max: 1_439 });
    const clock = (minutes: number) => new Date(minutes * 60_000).toISOString().slice(11, 16);
    const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'Pacific/Apia'];
    const first = at('2026-01-01T00:00:00Z');
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        minute,
        minute,
        fc.integer({ min: first, max: first + 366 * 86_400_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (zone, from, to, nowMs, part) => {
          fc.pre(from !== to);
          const hours = { zone, from: clock(from), to: clock(to) };
          const { open, untilMs } = hoursAt(hours, nowMs);
          expect(untilMs).toBeGreaterThan(nowMs);
          expect(hoursAt(hours, untilMs).open).toBe(!open);
          const between = Math.floor(nowMs + (untilMs - 1 - nowMs) * part);
          for (const ms of [nowMs, between, untilMs - 1]) {
            expect(hoursAt(hours, ms)).toEqual({ open, untilMs });
            const wall = new Date(ms).toLocaleTimeString('sv-SE', { timeZone: zone, hour: '2-digit', minute: '2-digit' });
            const inside =
              hours.from < hours.to ? hours.from <= wall && wall < hours.to : wall >= hours.from || wall < hours.to;
            expect(inside).toBe(open);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test('zones', () => {
    expect(zoneProblem('Europe/Berlin')).toBeUndefined();
    expect(zoneProblem('UTC')).toBeUndefined();
    for (const wrong of ['Europe/Berln', '+02:00', '', 'somewhere']) expect(zoneProblem(wrong)).toContain('is no time zone');
  });
});

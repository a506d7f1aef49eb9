/** The hours of the day in which a plan may work, by the clock on a wall there. From later than to: over midnight. */
export interface AllowedHours {
  /** Of the IANA time zone database, such as `Europe/Berlin`. */
  readonly zone: string;
  /** `HH:MM`, inclusive. */
  readonly from: string;
  /** `HH:MM`, exclusive. */
  readonly to: string;
}

/** Whether a plan may work now, and until when that holds. */
export interface Hours {
  readonly open: boolean;
  /** Milliseconds since the epoch. */
  readonly untilMs: number;
}

const minuteMs = 60_000;
/** A day with its change of the clock, and another one where the hours fall into the hour that does not exist. */
const minutesAheadMax = 3 * 24 * 60;

export function zoneProblem(zone: string): string | undefined {
  const expected = 'expected a zone of the IANA database such as Europe/Berlin or UTC';
  // Node takes offsets too; they know no daylight saving time, and read as if they did.
  if (!/^[A-Za-z]/.test(zone)) return `is no time zone; ${expected}`;
  try {
    wallClock(zone);
    return undefined;
  } catch {
    return `is no time zone; ${expected}`;
  }
}

export function clockProblem(text: string): string | undefined {
  return minuteOf(text) === null ? 'is no time of day; expected HH:MM from 00:00 to 23:59' : undefined;
}

/**
 * The wall clock decides minute by minute, so that days on which it is changed need no rule of their own: an hour that comes twice
 * is allowed twice, one that is left out is not there.
 */
export function hoursAt(hours: AllowedHours, nowMs: number): Hours {
  const clock = wallClock(hours.zone);
  const isOpen = (ms: number): boolean => isWithin(hours, minuteOf(clock.format(ms))!);
  const open = isOpen(nowMs);
  const thisMinute = Math.floor(nowMs / minuteMs) * minuteMs;
  for (let minutes = 1; minutes <= minutesAheadMax; minutes++) {
    const ms = thisMinute + minutes * minuteMs;
    if (isOpen(ms) !== open) return { open, untilMs: ms };
  }
  return { open, untilMs: thisMinute + minutesAheadMax * minuteMs };
}

function isWithin({ from, to }: AllowedHours, minute: number): boolean {
  const [first, end] = [minuteOf(from)!, minuteOf(to)!];
  return first < end ? first <= minute && minute < end : first <= minute || minute < end;
}

function wallClock(zone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}

/** Minute of the day; null: it is no time of day. */
function minuteOf(text: string): number | null {
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  return hour === undefined ? null : Number(hour) * 60 + Number(minute);
}

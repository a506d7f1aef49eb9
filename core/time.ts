/** RFC 3339 times, exact to the nanosecond, as JetStream stores them: nanoseconds since 1970-01-01T00:00:00Z in 63 bits. */

export type TimeParsed = { readonly ok: true; readonly nanos: bigint } | { readonly ok: false; readonly message: string };

const timeNanosMax = 2n ** 63n - 1n;
const nanosPerMilli = 1_000_000n;
const nanosPerSecond = 1_000_000_000n;
const pattern = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:([Zz])|([+-])(\d{2}):(\d{2}))?/;
const expected =
  'expected an RFC 3339 time with an offset, such as 2026-05-01T10:00:00Z or 2026-05-01T12:00:00.123456789+02:00';

/** The message says what is wrong and what is expected, without the text itself: `"..." has no offset; expected ...`. */
export function parseTime(text: string): TimeParsed {
  const match = pattern.exec(text);
  if (match === null) return refused('is not a time');
  const [whole, year, month, day, hour, minute, second, fraction = '', zulu, sign, offsetHour, offsetMinute] = match;
  if (zulu === undefined && sign === undefined) {
    return refused(whole.length === text.length ? 'has no offset' : 'has no offset right after its seconds');
  }
  if (whole.length < text.length) return refused('goes on after the offset');
  if (fraction.length > 9) return refused('is finer than a nanosecond (more than nine decimals)');
  if (Number(second) === 60) return refused('is a leap second, which JetStream does not count; write the second after it');
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return refused('has no such time of day');
  if (Number(offsetHour ?? 0) > 23 || Number(offsetMinute ?? 0) > 59) return refused('has no such offset');
  if (Number(month) < 1 || Number(month) > 12 || Number(day) < 1 || Number(day) > daysIn(Number(year), Number(month))) {
    return refused('is a date that does not exist');
  }
  // Date.UTC takes the years 0 to 99 for 1900 to 1999; no offset brings a year before 1969 into range.
  if (Number(year) < 1969) return refused('is before 1970');
  const millis = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  const offsetSeconds = (Number(offsetHour ?? 0) * 60 + Number(offsetMinute ?? 0)) * 60 * (sign === '-' ? -1 : 1);
  const nanos = BigInt(millis) * nanosPerMilli + BigInt(fraction.padEnd(9, '0')) - BigInt(offsetSeconds) * nanosPerSecond;
  if (nanos < 0n) return refused('is before 1970');
  if (nanos > timeNanosMax) return refused('is after 2262-04-11T23:47:16.854775807Z, the last time JetStream can hold');
  return { ok: true, nanos };
}

/** Of a time that has been checked before. Throws RangeError otherwise. */
export function timeNanos(text: string): bigint {
  const parsed = parseTime(text);
  if (!parsed.ok) throw new RangeError('not a checked RFC 3339 time');
  return parsed.nanos;
}

/** Nine decimals and `Z`: 2026-05-01T10:00:00.000000001Z. Texts of this form sort as their times do. */
export function formatTime(nanos: bigint): string {
  const rest = ((nanos % nanosPerSecond) + nanosPerSecond) % nanosPerSecond;
  const seconds = new Date(Number((nanos - rest) / nanosPerMilli)).toISOString().slice(0, -'.000Z'.length);
  return `${seconds}.${String(rest).padStart(9, '0')}Z`;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function refused(what: string): TimeParsed {
  return { ok: false, message: `${what}; ${expected}` };
}

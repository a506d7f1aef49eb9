const secondsBy: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Seconds of a length of time such as `90m`, `24h` or `7d`; null: it is none. */
export function durationSeconds(text: string): number | null {
  const [, count, unit] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  return count === undefined ? null : Number(count) * secondsBy[unit!]!;
}

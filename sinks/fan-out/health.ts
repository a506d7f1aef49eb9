/** Failures in a row after which an optional child is left out. */
const FAILURES_MAX = 3;
/** Between two probes of a child that is left out, milliseconds. */
const PROBE_EVERY_MS = 10_000;
const REMEMBERED_MAX = 1_000;

/** How an optional child fares. Outlives a sink that is thrown away because a required child failed. */
export interface Health {
  failures: number;
  probeAtMs: number;
}

const remembered = new Map<string, Health>();

export function healthOf(run: string, child: string): Health {
  const name = JSON.stringify([run, child]);
  const health = remembered.get(name) ?? { failures: 0, probeAtMs: 0 };
  remembered.delete(name);
  remembered.set(name, health);
  if (remembered.size > REMEMBERED_MAX) remembered.delete(remembered.keys().next().value!);
  return health;
}

export function isLeftOut({ failures }: Health): boolean {
  return failures >= FAILURES_MAX;
}

/** The time of the next probe has come; the one after it is set. */
export function takeProbe(health: Health, nowMs: number): boolean {
  if (nowMs < health.probeAtMs) return false;
  health.probeAtMs = nowMs + PROBE_EVERY_MS;
  return true;
}

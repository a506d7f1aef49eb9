/** One thing that was looked at. */
export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'error' | 'skipped';
  readonly message: string;
  /** What to do or to type; null: nothing. */
  readonly next: string | null;
}

export function good(name: string, message: string): Check {
  return { name, status: 'ok', message, next: null };
}

export function bad(name: string, message: string, next: string): Check {
  return { name, status: 'error', message, next };
}

export function doubtful(name: string, message: string, next: string): Check {
  return { name, status: 'warning', message, next };
}

export function skipped(name: string, message: string): Check {
  return { name, status: 'skipped', message, next: null };
}

import { destination, pino, type Logger } from 'pino';

export type { Logger };

/** One JSON line per change of state, on standard error: standard output belongs to results. */
export function createLogger(level: string): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: (error: unknown) => describeError(error, level === 'debug') },
    },
    destination({ dest: 2, sync: true }),
  );
}

/** Name, code and place of an error. Its message may hold values of records or addresses: only `debug` shows it. */
function describeError(error: unknown, withMessage: boolean): object {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, message, cause } = error;
  const code: unknown = 'code' in error ? error.code : undefined;
  return {
    name,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(withMessage ? { message } : {}),
    ...(error.stack === undefined ? {} : { stack: stackFrames(error.stack) }),
    ...(cause === undefined ? {} : { cause: describeError(cause, withMessage) }),
  };
}

function stackFrames(stack: string): string[] {
  return stack
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .slice(0, 6)
    .map((line) => line.trim());
}

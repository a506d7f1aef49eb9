import { isAbsolute, resolve } from 'node:path';
import { z } from 'zod';

/**
 * Settings from the environment. Temporal's own are read by @temporalio/envconfig, NATS's by jetstream/connection.ts; these
 * are ours.
 */
const folder = (fallback: string) =>
  z
    .string()
    .min(1)
    .default(fallback)
    .transform((path) => (isAbsolute(path) ? path : resolve(path)));

const schema = z.object({
  REPLAY_DATA_ROOT: folder('./data').meta({
    description: 'Where file and spool targets live; their directories are relative to it.',
  }),
  REPLAY_REPORT_ROOT: folder('./reports').meta({ description: 'Where report files go.' }),
  REPLAY_TARGETS: folder('./targets').meta({ description: 'Target files that a request may name.' }),
  REPLAY_METRICS_ADDRESS: z
    .string()
    .regex(/^\S+:\d{1,5}$/, 'expected host:port, for example 127.0.0.1:9464')
    .optional()
    .meta({
      description:
        'Prometheus endpoint of the worker; unset: 127.0.0.1:9464 for the command `worker`; `off` is not needed elsewhere.',
    }),
  REPLAY_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error'])
    .default('info')
    .meta({ description: 'Least level that the worker logs.' }),
});

export interface Settings {
  readonly dataRoot: string;
  readonly reportRoot: string;
  readonly targetsFolder: string;
  readonly metricsAddress: string | undefined;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
}

/** Throws an Error naming every setting that is wrong, without their values. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const parsed = schema.safeParse(env);
  if (!parsed.success) {
    throw new Error(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'));
  }
  return {
    dataRoot: parsed.data.REPLAY_DATA_ROOT,
    reportRoot: parsed.data.REPLAY_REPORT_ROOT,
    targetsFolder: parsed.data.REPLAY_TARGETS,
    metricsAddress: parsed.data.REPLAY_METRICS_ADDRESS,
    logLevel: parsed.data.REPLAY_LOG_LEVEL,
  };
}

/** For the reference page. */
export const settingsSchema = schema;

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

const namesText = z
  .string()
  .optional()
  .transform((text) => text?.split(/[\s,]+/).filter((name) => name !== '') ?? null);

const schema = z.object({
  REPLAY_DATA_ROOT: folder('./data').meta({
    description: 'Where file and spool targets live; their directories are relative to it.',
  }),
  REPLAY_REPORT_ROOT: folder('./reports').meta({ description: 'Where report files go.' }),
  REPLAY_TARGETS: folder('./targets').meta({ description: 'Target files that a request may name.' }),
  REPLAY_COLD_ROOT: folder('./cold').meta({
    description: 'Where topics with a cold store of files keep their segments; the same for workers and for those who read.',
  }),
  REPLAY_COLD_S3: z
    .string()
    .regex(/^s3:\/\/[a-z0-9.-]{3,63}(\/[\w./-]*)?$/, 'expected s3://bucket or s3://bucket/prefix')
    .optional()
    .meta({
      description:
        'Bucket, and prefix of the names, of topics whose cold store is `s3`; the same for workers and for those who read. Login: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`.',
      examples: ['s3://history/topics'],
    }),
  REPLAY_COLD_S3_ENDPOINT: z
    .string()
    .regex(/^https?:\/\/[^/?#@\s]+\/?$/, 'expected http(s)://host:port')
    .optional()
    .meta({
      description: 'Address of an S3-compatible store (R2, MinIO, SeaweedFS). Unset: AWS, in `AWS_REGION`.',
      examples: ['https://s3.example.com:8333'],
    }),
  REPLAY_ALLOWED_HOSTS: namesText.meta({
    description:
      'Hosts that targets may name, with commas between; `*.example.com` stands for every host below it. Unset: any host. Set it where others than the operators of the worker may start replays: the secrets of a target go to the host that it names.',
    examples: ['db.example.com,*.internal.example.com'],
  }),
  REPLAY_SINKS: namesText.meta({
    description:
      'Packages that bring further sinks, with commas between (docs/certification.md); looked for in `node_modules` from the working directory on. The same where targets are checked, that is for `replay-stream` itself.',
    examples: ['durable-replay-sqlite'],
  }),
  REPLAY_METRICS_ADDRESS: z
    .string()
    .regex(/^(\S+:\d{1,5}|off)$/, 'expected host:port, for example 127.0.0.1:9464, or off')
    .default('127.0.0.1:9464')
    .meta({ description: 'Prometheus endpoint of the worker, or `off`.' }),
  REPLAY_BUILD_ID: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,128}$/, 'expected up to 128 letters, digits, dots, dashes and underscores, such as 1.4.0')
    .optional()
    .meta({
      description:
        'Version of this worker for the worker versioning of Temporal (docs/deploy.md). Unset: not versioned. The deployment is named `durable-replay`.',
      examples: ['1.4.0'],
    }),
  REPLAY_VERSIONING: z.enum(['auto_upgrade', 'pinned']).default('auto_upgrade').meta({
    description:
      'With `REPLAY_BUILD_ID`: whether a running plan goes on under the new version (`auto_upgrade`), or ends under the one it began with (`pinned`).',
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
  readonly coldRoot: string;
  /** null: any. */
  readonly allowedHosts: readonly string[] | null;
  /** host:port, or `off`. */
  readonly metricsAddress: string;
  /** Whether the address was given: a default one that is in use only warns. */
  readonly metricsRequired: boolean;
  /** null: the worker is not versioned. */
  readonly versioning: { readonly buildId: string; readonly behavior: 'auto_upgrade' | 'pinned' } | null;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
}

interface Problem {
  readonly path: string;
  readonly message: string;
}

export type SettingsParsed =
  { readonly ok: true; readonly value: Settings } | { readonly ok: false; readonly problems: readonly Problem[] };

/** All problems at once, each with its variable, without values. */
export function readSettings(env: NodeJS.ProcessEnv): SettingsParsed {
  const parsed = schema.safeParse(env);
  if (!parsed.success) {
    return { ok: false, problems: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })) };
  }
  const value = {
    dataRoot: parsed.data.REPLAY_DATA_ROOT,
    reportRoot: parsed.data.REPLAY_REPORT_ROOT,
    targetsFolder: parsed.data.REPLAY_TARGETS,
    coldRoot: parsed.data.REPLAY_COLD_ROOT,
    allowedHosts: parsed.data.REPLAY_ALLOWED_HOSTS,
    metricsAddress: parsed.data.REPLAY_METRICS_ADDRESS,
    metricsRequired: env['REPLAY_METRICS_ADDRESS'] !== undefined,
    versioning: versioningOf(parsed.data),
    logLevel: parsed.data.REPLAY_LOG_LEVEL,
  };
  return { ok: true, value };
}

function versioningOf({
  REPLAY_BUILD_ID: buildId,
  REPLAY_VERSIONING: behavior,
}: z.output<typeof schema>): Settings['versioning'] {
  return buildId === undefined ? null : { buildId, behavior };
}

/** Names in REPLAY_SINKS: what the command line needs of the settings, whatever stands in the others. */
export function sinkPackagesOf(env: NodeJS.ProcessEnv): readonly string[] {
  return schema.shape.REPLAY_SINKS.parse(env['REPLAY_SINKS']) ?? [];
}

/** For the reference page. */
export const settingsSchema = schema;

import { resolve } from 'node:path';
import { ReplayFault } from '../core/errors.ts';
import type { ColdKind } from '../core/topic.ts';
import { createFileStore } from './file.ts';
import { createS3Store, type S3Settings } from './s3.ts';
import type { ColdStore } from './store.ts';

/** The cold store that topics of this kind use. Throws `cold_unconfigured`. */
export type ColdStores = (kind: ColdKind) => ColdStore;

type Environment = Readonly<Record<string, string | undefined>>;

/** From `REPLAY_COLD_*` and `AWS_*`: what is missing is told when a topic needs it. */
export function createColdStores(env: Environment): ColdStores {
  const opened = new Map<ColdKind, ColdStore>();
  return (kind) => {
    const known = opened.get(kind);
    if (known !== undefined) return known;
    const store = provenOnce(kind === 'file' ? createFileStore(coldRoot(env)) : createS3Store(readS3Settings(env)));
    opened.set(kind, store);
    return store;
  };
}

function coldRoot(env: Environment): string {
  return resolve(env['REPLAY_COLD_ROOT'] || './cold');
}

const s3Location = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w.-]+(?:\/[\w.-]+)*))?\/?$/;
const s3Endpoint = /^https?:\/\/[^/?#@\s]+\/?$/;

/** Throws `cold_unconfigured` with the names of what is missing or wrong, never with their values. */
function readS3Settings(env: Environment): S3Settings {
  const [, bucket, folder] = s3Location.exec(env['REPLAY_COLD_S3'] ?? '') ?? [];
  const endpoint = env['REPLAY_COLD_S3_ENDPOINT'] || null;
  const accessKeyId = env['AWS_ACCESS_KEY_ID'];
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY'];
  const region = env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || (endpoint === null ? undefined : 'us-east-1');
  const missing = Object.entries({
    REPLAY_COLD_S3: bucket,
    REPLAY_COLD_S3_ENDPOINT: endpoint === null || s3Endpoint.test(endpoint),
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_REGION: region,
  }).filter(([, value]) => !value);
  if (missing.length > 0) throw new ReplayFault('cold_unconfigured', missing.map(([name]) => name).join(', '));
  return {
    bucket: bucket!,
    prefix: folder === undefined ? '' : `${folder}/`,
    endpoint: endpoint?.replace(/\/$/, '') ?? null,
    region: region!,
    accessKeyId: accessKeyId!,
    secretAccessKey: secretAccessKey!,
    sessionToken: env['AWS_SESSION_TOKEN'] || null,
  };
}

/** The proof holds for the life of this process; one that failed is asked for again. */
function provenOnce(store: ColdStore): ColdStore {
  let proof: Promise<void> | undefined;
  return {
    ...store,
    prove: async (signal) => {
      proof ??= store.prove(signal);
      await proof.catch((error: unknown) => {
        proof = undefined;
        throw error;
      });
    },
  };
}

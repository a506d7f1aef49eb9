import { randomBytes } from 'node:crypto';
import type { S3Settings } from '../../cold/s3.ts';
import { startSeaweed, type S3Server } from '../../scripts/servers/seaweed.ts';
import { atFileEnd } from './file-end.ts';

let server: Promise<S3Server> | undefined;

/** A store of our own that all of this test file shares; each call has a prefix of its own. */
export async function seaweedSettings(): Promise<S3Settings & { readonly endpoint: string }> {
  server ??= startSeaweed({ say: (line) => process.stderr.write(`${line}\n`) }).then((started) => {
    atFileEnd(() => started.stop());
    return started;
  });
  const { endpoint, bucket, accessKeyId, secretAccessKey } = await server;
  const prefix = `${randomBytes(5).toString('hex')}/`;
  return { endpoint, bucket, accessKeyId, secretAccessKey, prefix, region: 'us-east-1', sessionToken: null };
}

/** The same as variables of a process. */
export function seaweedEnv(settings: S3Settings & { readonly endpoint: string }): Record<string, string> {
  return {
    REPLAY_COLD_S3: `s3://${settings.bucket}/${settings.prefix.replace(/\/$/, '')}`,
    REPLAY_COLD_S3_ENDPOINT: settings.endpoint,
    AWS_ACCESS_KEY_ID: settings.accessKeyId,
    AWS_SECRET_ACCESS_KEY: settings.secretAccessKey,
  };
}

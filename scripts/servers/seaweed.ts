import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AwsClient } from 'aws4fetch';
import { locateSeaweed } from './locate.ts';
import { findFreePorts, loopback } from './ports.ts';
import { launch, startAndWait } from './ready.ts';
import type { Say } from './setup-error.ts';

const readyMs = 180_000;
const answerMs = 5_000;

/** An S3-compatible store of our own on the loopback address, with one bucket. */
export interface S3Server {
  readonly endpoint: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  stop(): Promise<void>;
}

/** SeaweedFS: one process for all of its parts. Throws ServerSetupError. */
export async function startSeaweed(options: { env?: NodeJS.ProcessEnv; say?: Say } = {}): Promise<S3Server> {
  const program = await locateSeaweed(options.env ?? process.env, options.say ?? (() => {}));
  const login = { accessKeyId: randomBytes(8).toString('hex'), secretAccessKey: randomBytes(20).toString('hex') };
  const { server, facts } = await launch('seaweedfs', true, async (folder, open) => {
    const [s3 = 0, ...ports] = await findFreePorts(8);
    const identities = join(folder, 'identities.json');
    const data = join(folder, 'data');
    await mkdir(data);
    await writeFile(identities, identityFile(login), { mode: 0o600 });
    const opened = open(join(folder, 'seaweedfs.log'));
    const endpoint = `http://${loopback}:${s3}`;
    const start = {
      name: 'SeaweedFS',
      limitMs: readyMs,
      answers: () => createBucket(endpoint, login),
    };
    await startAndWait(opened, { command: program, args: weedArguments(data, identities, s3, ports) }, start);
    return { server: opened, facts: { endpoint } };
  });
  return { endpoint: facts.endpoint, bucket, ...login, stop: () => server.end() };
}

const bucket = 'cold';

function identityFile(login: { accessKeyId: string; secretAccessKey: string }): string {
  const credentials = [{ accessKey: login.accessKeyId, secretKey: login.secretAccessKey }];
  const actions = ['Admin', 'Read', 'Write', 'List', 'Tagging'];
  return JSON.stringify({ identities: [{ name: 'durable-replay', credentials, actions }] });
}

/** Each part has a port for HTTP and one for gRPC, which would else be 10,000 above. */
function weedArguments(data: string, identities: string, s3: number, ports: readonly number[]): string[] {
  const names = [
    's3.port.grpc',
    'master.port',
    'master.port.grpc',
    'volume.port',
    'volume.port.grpc',
    'filer.port',
    'filer.port.grpc',
  ];
  return [
    'server',
    `-dir=${data}`,
    `-ip=${loopback}`,
    `-ip.bind=${loopback}`,
    '-master.volumeSizeLimitMB=64',
    '-master.electionTimeout=1s',
    '-volume.max=50',
    '-s3',
    `-s3.port=${s3}`,
    `-s3.config=${identities}`,
    ...names.map((name, i) => `-${name}=${ports[i]}`),
  ];
}

/** Ready is when an object can be stored: the parts find each other one by one. */
async function createBucket(endpoint: string, login: { accessKeyId: string; secretAccessKey: string }): Promise<boolean> {
  const signer = new AwsClient({ ...login, service: 's3', region: 'us-east-1', retries: 0 });
  const ask = async (path: string, body?: string): Promise<number> => {
    const init = { method: 'PUT', signal: AbortSignal.timeout(answerMs), ...(body === undefined ? {} : { body }) };
    const response = await fetch(await signer.sign(`${endpoint}/${path}`, init));
    await response.arrayBuffer();
    return response.status;
  };
  try {
    const made = await ask(bucket);
    return [200, 409].includes(made) && (await ask(`${bucket}/ready`, 'yes')) === 200;
  } catch {
    return false;
  }
}

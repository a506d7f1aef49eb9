import { connect as connectSocket } from 'node:net';
import type { JetStreamManager, NatsConnection, StreamConfig } from 'nats';
import { receiptOf } from '../../../core/batch.ts';
import type { Receipt } from '../../../core/receipt.ts';
import type { ConsumerOwner, ConsumerSpec, PulledRecord, PullRequest, Source, StreamFacts } from '../../../jetstream/source.ts';
import { atFileEnd } from '../../support/file-end.ts';
import { uniqueName } from '../../support/servers.ts';

export const owner: ConsumerOwner = {
  cluster: 'cluster-1',
  namespace: 'default',
  workflowId: 'replay:S:d',
  firstRunId: 'run-1',
  fingerprint: 'fingerprint-1',
};

export const never = new AbortController().signal;

export interface TestStream {
  readonly name: string;
  readonly jsm: JetStreamManager;
  /** Subjects are below this. */
  readonly root: string;
}

/** A stream of its own that takes `<name>.>`, removed when the test file ends. */
export async function makeStream(nc: NatsConnection, config: Partial<StreamConfig> = {}): Promise<TestStream> {
  const name = uniqueName('JS');
  const jsm = await nc.jetstreamManager({ checkAPI: false });
  await jsm.streams.add({ name, subjects: [`${name}.>`], allow_direct: true, ...config });
  atFileEnd(async () => {
    if (!nc.isClosed()) await jsm.streams.delete(name).catch(() => undefined);
  });
  return { name, jsm, root: name };
}

/** Sends numbered messages; returns when they are stored. */
export async function fill(
  nc: NatsConnection,
  stream: TestStream,
  count: number,
  subject: (i: number) => string,
): Promise<void> {
  const before = (await stream.jsm.streams.info(stream.name)).state.last_seq;
  for (let i = 0; i < count; i++) nc.publish(`${stream.root}.${subject(i)}`, `body-${i}`);
  await nc.flush();
  while ((await stream.jsm.streams.info(stream.name)).state.last_seq < before + count) await pause(10);
}

export function specOf(facts: StreamFacts, durable: string, filters: readonly string[], maxAckPending = 20_000): ConsumerSpec {
  return { stream: facts.stream, incarnation: facts.incarnation, durable, filters, maxAckPending, owner };
}

export function pullRequest(spec: ConsumerSpec, changes: Partial<PullRequest> = {}): PullRequest {
  const { stream, incarnation, durable } = spec;
  return { stream, incarnation, durable, maxRecords: 100, maxBytes: 8 * 1024 * 1024, waitMs: 0, ...changes };
}

export function receiptFor(spec: ConsumerSpec, records: readonly PulledRecord[]): Receipt {
  return receiptOf(spec, records)!;
}

/** A durable over the whole stream at the cursor, ready to pull. */
export async function ready(source: Source, stream: string, filters: readonly string[], cursor = 1): Promise<ConsumerSpec> {
  const spec = specOf(await source.describe(stream), uniqueName('d'), filters);
  await source.putBack(spec, cursor);
  return spec;
}

/** Sends protocol bytes that no client would send, and waits until the server has taken them. */
export function publishRaw(url: string, protocol: Buffer): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connectSocket(Number(port), hostname);
    socket.on('error', reject);
    socket.on('data', (bytes) => {
      if (!bytes.includes('PONG')) return;
      socket.destroy();
      resolve();
    });
    const hello = 'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n';
    socket.write(Buffer.concat([Buffer.from(hello), protocol, Buffer.from('PING\r\n')]));
  });
}

export function headerPublish(subject: string, headerBlock: Buffer, body: Buffer): Buffer {
  const line = `HPUB ${subject} ${headerBlock.length} ${headerBlock.length + body.length}\r\n`;
  return Buffer.concat([Buffer.from(line), headerBlock, body, Buffer.from('\r\n')]);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The code of the fault that the promise rejects with. */
export async function faultCode(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no fault',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );
}

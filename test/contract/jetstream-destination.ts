import type { NatsConnection } from 'nats';
import { connectNats } from '../../jetstream/connection.ts';
import { createSource, type PulledRecord, type Source } from '../../jetstream/source.ts';
import { createStreamWriter } from '../../jetstream/stream-writer.ts';
import { startNats } from '../../scripts/servers/nats.ts';
import { jetstreamSpec } from '../../sinks/jetstream/config.ts';
import { timeNanos } from '../../core/time.ts';
import { atFileEnd } from '../support/file-end.ts';
import { startProxy } from '../support/proxy.ts';
import type { Destination, Place, StoredRecord } from './sink-contract.ts';

const PREFIX = 'copy';
/** Bodies of the largest payload of the suite go in. */
const CONFIG = 'max_payload: 16MB\nmax_pending: 64MB\n';

export const jetstreamDestinations: readonly Destination[] = [{ spec: jetstreamSpec, mode: 'default', create: createPlace }];

interface Server {
  readonly url: string;
  readonly direct: NatsConnection;
}

let shared: Promise<Server> | undefined;

/** A server of our own, for messages larger than usual; ended with the test file. */
async function startShared(): Promise<Server> {
  const server = await startNats({ config: CONFIG });
  atFileEnd(() => server.stop());
  const direct = await connectTo(server.url);
  atFileEnd(() => direct.close());
  return { url: server.url, direct };
}

function connectTo(url: string): Promise<NatsConnection> {
  return connectNats({ servers: [url], login: { kind: 'none' }, tls: null });
}

let places = 0;

/** The sink reaches the server through a line of ours, which can be cut. */
async function createPlace(): Promise<Place> {
  const { url, direct } = await (shared ??= startShared());
  const line = await startProxy(url);
  const connection = await connectTo(line.url);
  const stream = `PLACE-${++places}`;
  const prefix = `${PREFIX}-${places}`;
  const manager = await direct.jetstreamManager({ checkAPI: false });
  await manager.streams.add({ name: stream, subjects: [`${prefix}.>`], allow_direct: true });
  const target = { type: 'jetstream', stream, subject_prefix: prefix };
  return {
    target,
    badTarget: { ...target, stream: `${stream}-missing` },
    surroundings: {
      dataRoot: '/nowhere',
      secret: () => Promise.reject(new Error('the jetstream sink has no secrets')) as never,
      streams: createStreamWriter(connection),
    },
    confidential: [new URL(line.url).host, new URL(url).host],
    poison: {
      fields: {},
      code: 'value_too_long',
      spoil: (record) => ({ ...record, subject: `orders.${'x'.repeat(5_000)}` }),
    },
    connection: {
      break: async () => line.cut(),
      async mend() {
        line.mend();
        await answers(connection);
      },
    },
    readBack: () => readStream(createSource(direct), stream),
    traces: async () => {
      const { state } = await manager.streams.info(stream);
      return [state.last_seq, state.messages, await manager.streams.names().next()];
    },
    async remove() {
      await connection.close();
      await manager.streams.delete(stream);
    },
  };
}

/** The worker's connection comes back by itself; what waits for it is tried again. */
async function answers(connection: NatsConnection): Promise<void> {
  for (;;) {
    const back = await connection.flush().then(
      () => true,
      () => false,
    );
    if (back) return;
  }
}

/** Every message of the stream, pulled as any client would. */
async function readStream(source: Source, stream: string): Promise<StoredRecord[]> {
  const { incarnation, lastSequence } = await source.describe(stream);
  const owner = { cluster: 'c', namespace: 'n', workflowId: 'w', firstRunId: 'r', fingerprint: 'f' };
  const durable = 'read-back';
  await source.putBack({ stream, incarnation, durable, filters: ['>'], maxAckPending: 100_000, owner }, 1);
  const stored: StoredRecord[] = [];
  try {
    for (let last = 0; last < lastSequence;) {
      const request = { stream, incarnation, durable, maxRecords: 10_000, maxBytes: 67_108_864, waitMs: 0 };
      const { records } = await source.pull(request, new AbortController().signal);
      stored.push(...records.map(readCopy));
      last = records.at(-1)?.position ?? lastSequence;
    }
  } finally {
    await source.deleteConsumer(stream, durable);
  }
  return stored.sort(bySource);
}

function bySource(a: StoredRecord, b: StoredRecord): number {
  const [left, right] = [`${a.stream} ${a.incarnation}`, `${b.stream} ${b.incarnation}`];
  if (left !== right) return left < right ? -1 : 1;
  return Number(a.sequence - b.sequence);
}

function readCopy({ headers, subject, payload }: PulledRecord): StoredRecord {
  const own = (name: string) => headers.get(name)?.[0] ?? '';
  const sourceSubject = own('Replay-Source-Subject');
  if (!subject.endsWith(`.${sourceSubject}`)) throw new Error('a copy does not have the subject of its record');
  const original = originalHeaders(headers);
  return {
    stream: own('Replay-Source-Stream'),
    incarnation: own('Replay-Source-Incarnation'),
    sequence: BigInt(own('Replay-Source-Sequence')),
    subject: sourceSubject,
    timeNanos: timeNanos(own('Replay-Source-Time')),
    headers: original,
    payload,
    plan: own('Replay-Plan'),
    run: own('Replay-Run'),
  };
}

/** Those of the record: they come after ours, in their order, some of them set aside. */
function originalHeaders(headers: ReadonlyMap<string, readonly string[]>): [string, readonly string[]][] {
  const all = [...headers];
  const ours = all.findIndex(([name]) => name === 'Replay-Run');
  return all.slice(ours + 1).map(([name, values]) => [name.replace(/^Replay-Original-/, ''), values]);
}

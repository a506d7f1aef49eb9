import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { classifyPayload } from '../../core/payload.ts';
import { timeNanos } from '../../core/time.ts';
import { fileSpec } from '../../sinks/file/config.ts';
import { bytesOf } from './records.ts';
import type { Destination, Place, StoredRecord } from './sink-contract.ts';

const DIRECTORY = 'replays/orders';

export const fileDestinations: readonly Destination[] = (['none', 'gzip'] as const).map((compression) => ({
  spec: fileSpec,
  mode: compression === 'none' ? 'plain' : 'gzip',
  create: () => createPlace({ compression }),
}));

async function createPlace(fields: Readonly<Record<string, unknown>>): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'durable-replay-file-'));
  const dataRoot = join(folder, 'data');
  await mkdir(dataRoot);
  await writeFile(join(dataRoot, 'taken'), 'a file where a directory should be');
  return {
    target: { type: 'file', directory: DIRECTORY, ...fields },
    badTarget: { type: 'file', directory: 'taken/orders', ...fields },
    surroundings: { dataRoot, secret: () => Promise.reject(new Error('the file sink has no secrets')) as never },
    confidential: [folder],
    poison: {
      fields: { require_json: true },
      code: 'not_json',
      spoil: (record) => ({ ...record, payload: bytesOf('{"id":NaN}') }),
    },
    connection: {
      break: () => rename(dataRoot, join(folder, 'elsewhere')),
      mend: () => rename(join(folder, 'elsewhere'), dataRoot),
    },
    readBack: () => readSegments(join(dataRoot, DIRECTORY)),
    storedPayload: spaceBetweenTokens,
    traces: async () => (await readdir(folder, { recursive: true })).sort(),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Line breaks between the tokens of JSON are stored as spaces. */
export function spaceBetweenTokens(payload: Uint8Array): Uint8Array {
  return classifyPayload(payload) === 'json' ? payload.map((byte) => (byte === 0x0a || byte === 0x0d ? 0x20 : byte)) : payload;
}

/** Every line of every segment, in the order of their names. */
export async function readSegments(directory: string): Promise<StoredRecord[]> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.includes('.jsonl')).sort();
  const segments = await Promise.all(names.map(async (name) => readSegment(name, await readFile(join(directory, name)))));
  return segments.flat();
}

export function readSegment(name: string, bytes: Buffer): StoredRecord[] {
  const text = (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
  if (text !== '' && !text.endsWith('\n')) throw new Error('a segment ends within a line');
  return text.split('\n').slice(0, -1).map(readLine);
}

interface Line {
  readonly stream: string;
  readonly incarnation: string;
  readonly sequence: number;
  readonly subject: string;
  readonly time: string;
  readonly message_id: string | null;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly payload_format: 'json' | 'text' | 'base64';
  readonly payload: unknown;
  readonly plan: string;
  readonly run: string;
}

const FIELDS = 'stream incarnation sequence subject time message_id headers payload_format payload plan run';

function readLine(text: string): StoredRecord {
  const line = JSON.parse(text) as Line;
  if (Object.keys(line).join(' ') !== FIELDS) throw new Error('a line does not have the fields it should, in their order');
  return {
    stream: line.stream,
    incarnation: line.incarnation,
    sequence: BigInt(line.sequence),
    subject: line.subject,
    timeNanos: timeNanos(line.time),
    messageId: line.message_id,
    headers: readHeaders(text),
    payload: readPayload(text, line),
    plan: line.plan,
    run: line.run,
  };
}

/** JSON.parse puts names like "1" first; their order on the line is that of the record. */
function readHeaders(text: string): [string, string[]][] {
  const json = between(text, ',"headers":{', '},"payload_format":"');
  return [...json.matchAll(/("(?:[^"\\]|\\.)*"):(\[(?:"(?:[^"\\]|\\.)*",?)*\])/g)].map(([, name, values]) => [
    JSON.parse(name!) as string,
    JSON.parse(values!) as string[],
  ]);
}

/** The bytes between the fields around, because parsing would change numbers. A quote within a string has a backslash before it. */
function readPayload(text: string, { payload_format: format, payload, plan, run }: Line): Uint8Array {
  if (format === 'base64') return Buffer.from(payload as string, 'base64');
  if (format === 'text') return bytesOf(payload as string);
  const tail = `,"plan":${JSON.stringify(plan)},"run":${JSON.stringify(run)}}`;
  if (!text.endsWith(tail)) throw new Error('a line does not end with its plan and run');
  return bytesOf(between(text.slice(0, -tail.length), ',"payload_format":"json","payload":', ''));
}

function between(text: string, before: string, after: string): string {
  const start = text.indexOf(before);
  const end = after === '' ? text.length : text.indexOf(after, start);
  if (start < 0 || end < 0) throw new Error(`a line has no ${before}`);
  return text.slice(start + before.length, end);
}

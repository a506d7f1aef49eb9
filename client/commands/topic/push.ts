import { open } from 'node:fs/promises';
import { findToken, stringOf } from '../../../core/json-token.ts';
import { problemsMax } from '../../../core/limits.ts';
import { partitionOf } from '../../../core/partition.ts';
import { isStrictJson } from '../../../core/payload.ts';
import { groupDigits } from '../../../core/problems.ts';
import { pushRecordsMax } from '../../../core/topic.ts';
import { exitStatus, type ExitStatus } from '../../exit.ts';
import { CommandFailure } from '../../failure.ts';
import type { PushGroup, PushRecord } from '../../topics.ts';
import type { TopicCommand } from '../topic.ts';
import { errorJson, errorText } from './errors.ts';

const inputBytesMax = 256 * 1_048_576;
const fields = ['partitionKey', 'payload', 'deduplicationKey'];

export async function pushLines(
  { topics, name, json, terminal }: TopicCommand,
  { file, split }: { file: string; split: boolean },
): Promise<ExitStatus> {
  const records = readLines(await readInput(file));
  const topic = await topics.open(name);
  const pushes = split && records.length > 0 ? slices(records, topic.topic.partitions) : [records];
  const statuses = new Set<PushGroup['status']>();
  for (const [i, push] of pushes.entries()) {
    for (const group of await topic.push(push)) {
      statuses.add(group.status);
      terminal.out(json ? groupJson(group) : groupText(group));
    }
    const left = pushes.slice(i + 1).reduce((sum, one) => sum + one.length, 0);
    // Going on would store later records before those that are missing now.
    if (left > 0 && [...statuses].some((status) => status !== 'accepted')) {
      terminal.err(`Stopped: ${groupDigits(left)} further records were not pushed.`);
      break;
    }
  }
  if (statuses.has('uncertain')) return exitStatus('failed');
  return exitStatus(statuses.has('rejected') ? 'rejects' : 'done');
}

/** Pushes of at most `pushRecordsMax` records a partition, each partition's records in their order. */
function slices(records: readonly PushRecord[], partitions: number): PushRecord[][] {
  const counts = new Map<number, number>();
  const pushes: PushRecord[][] = [];
  for (const record of records) {
    const partition = partitionOf(record.partitionKey, partitions);
    const count = counts.get(partition) ?? 0;
    counts.set(partition, count + 1);
    (pushes[Math.floor(count / pushRecordsMax)] ??= []).push(record);
  }
  return pushes;
}

function groupJson(group: PushGroup): string {
  const { partition, status } = group;
  if (status === 'accepted') return JSON.stringify({ partition, status, offsets: group.offsets });
  return JSON.stringify({ partition, status, error: errorJson(group.error) });
}

function groupText(group: PushGroup): string {
  const { partition, status } = group;
  if (status === 'accepted') return `partition ${partition}: accepted, offsets ${group.offsets.join(' ')}`;
  const again = status === 'uncertain' ? ' The same push again, with its deduplication keys, makes it certain.' : '';
  return `partition ${partition}: ${status}. ${errorText(group.error)}${again}`;
}

async function readInput(file: string): Promise<Buffer> {
  try {
    if (file === '-') return await readAll(process.stdin);
    const handle = await open(file);
    try {
      return await readAll(handle.createReadStream());
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
    throw new CommandFailure(`${file}: ${code}. Name a file of JSON lines, or - for standard input.`, 'refused', {
      cause: error,
    });
  }
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > inputBytesMax) {
      throw new CommandFailure(`The input is larger than ${groupDigits(inputBytesMax)} bytes: push it in parts.`, 'refused');
    }
  }
  return Buffer.concat(chunks);
}

/** All problems at once, one a line. An empty deduplication key and the like are left to the push: they concern one group. */
function readLines(input: Buffer): PushRecord[] {
  const records: PushRecord[] = [];
  const problems: string[] = [];
  let line = 0;
  for (let start = 0; start < input.length;) {
    const found = input.indexOf(0x0a, start);
    const end = found < 0 ? input.length : found;
    const bytes = input.subarray(start, end);
    start = end + 1;
    line++;
    if (bytes.toString('latin1').trim() === '') continue;
    const record = readLine(bytes);
    if (typeof record === 'string') problems.push(`line ${line}: ${record}`);
    else records.push(record);
    if (problems.length === problemsMax) break;
  }
  if (problems.length > 0) throw new CommandFailure(problems.join('\n'), 'refused');
  return records;
}

/** What is wrong with it, without its values. */
function readLine(bytes: Buffer): PushRecord | string {
  if (!isStrictJson(bytes)) return 'not JSON, or a key twice; expected one JSON object a line';
  const text = bytes.toString('utf8');
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return 'expected a JSON object';
  const unknown = Object.keys(parsed).filter((key) => !fields.includes(key));
  if (unknown.length > 0) return `unknown field; expected ${fields.join(', ')}`;
  const partitionKey = findToken(text, ['partitionKey']);
  const deduplicationKey = findToken(text, ['deduplicationKey']);
  const payload = findToken(text, ['payload']);
  if (partitionKey?.kind !== 'string') return 'partitionKey: expected a string';
  if (payload === undefined) return 'payload: missing';
  if (deduplicationKey !== undefined && deduplicationKey.kind !== 'string') return 'deduplicationKey: expected a string';
  return {
    partitionKey: stringOf(partitionKey),
    payloadJson: payload.text,
    ...(deduplicationKey === undefined ? {} : { deduplicationKey: stringOf(deduplicationKey) }),
  };
}

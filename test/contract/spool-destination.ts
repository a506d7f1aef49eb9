import { createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spoolSpec } from '../../sinks/spool/config.ts';
import { bytesOf } from './records.ts';
import type { Destination, Place, StoredRecord } from './sink-contract.ts';

const DIRECTORY = 'spools/orders';
const SECRET = 'REPLAY_SECRET_SPOOL_CONTRACT';

export const spoolDestinations: readonly Destination[] = [
  { spec: spoolSpec, mode: 'encrypted', create: () => createPlace(randomBytes(32)) },
  { spec: spoolSpec, mode: 'unencrypted', create: () => createPlace(null) },
];

async function createPlace(key: Buffer | null): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'durable-replay-spool-'));
  const dataRoot = join(folder, 'data');
  await mkdir(dataRoot);
  await writeFile(join(dataRoot, 'taken'), 'a file where a directory should be');
  const secrecy = key === null ? { allow_unencrypted: true } : { encryption: { key_id: 'k1', key: { env: SECRET } } };
  const target = { type: 'spool', directory: DIRECTORY, ...secrecy };
  const text = key?.toString('base64') ?? '';
  return {
    target,
    badTarget: { ...target, directory: 'taken/orders' },
    surroundings: { dataRoot, secret: () => text },
    confidential: [folder, ...(key === null ? [] : [text])],
    poison: {
      fields: { max_bytes: 65_536 },
      code: 'too_large',
      spoil: (record) => ({ ...record, payload: bytesOf('x'.repeat(70_000)) }),
    },
    connection: {
      break: () => rename(dataRoot, join(folder, 'elsewhere')),
      mend: () => rename(join(folder, 'elsewhere'), dataRoot),
    },
    readBack: () => readPacks(join(dataRoot, DIRECTORY, 'packs'), key),
    traces: async () => (await readdir(folder, { recursive: true })).sort(),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Every entry of every pack, in the order of their numbers: by the description of the format, not by the code of the sink. */
export async function readPacks(folder: string, key: Buffer | null): Promise<StoredRecord[]> {
  const names = (await readdir(folder).catch((): string[] => [])).toSorted();
  const packs = await Promise.all(names.map(async (name) => readPack(await readFile(join(folder, name)), key)));
  return packs.flat().sort(bySource);
}

function bySource(a: StoredRecord, b: StoredRecord): number {
  const [left, right] = [`${a.stream} ${a.incarnation}`, `${b.stream} ${b.incarnation}`];
  if (left !== right) return left < right ? -1 : 1;
  return Number(a.sequence - b.sequence);
}

interface Head {
  readonly priority: number;
  readonly key: { readonly id: string; readonly salt: string } | null;
  readonly sequences: readonly (readonly [string, string, readonly number[]])[];
  readonly lengths: readonly number[];
}

function readPack(bytes: Buffer, secret: Buffer | null): StoredRecord[] {
  if (bytes.toString('latin1', 0, 8) !== 'DRSPOOL1') throw new Error('a pack does not begin as one');
  const headEnd = 16 + bytes.readUInt32BE(8);
  const head = JSON.parse(bytes.toString('utf8', 16, headEnd)) as Head;
  if ((head.key === null) !== (secret === null)) throw new Error('a pack is not encrypted as the target says');
  const identities = head.sequences.flatMap(([stream, incarnation, runs]) => {
    const sequences: number[] = [];
    for (let i = 0, next = 0; i < runs.length; i += 2) {
      next += runs[i]!;
      for (let left = runs[i + 1]!; left > 0; left--) sequences.push(next++);
    }
    return sequences.map((sequence) => ({ stream, incarnation, sequence }));
  });
  let start = headEnd;
  return identities.map(({ stream, incarnation, sequence }, index) => {
    const entry = bytes.subarray(start, (start += head.lengths[index]!));
    const identity = JSON.stringify([1, stream, incarnation, String(sequence), head.priority]);
    const plain = secret === null ? entry.subarray(4) : decrypt(entry, { secret, salt: head.key!.salt, index, identity });
    const metaEnd = 4 + plain.readUInt32BE(0);
    const [subject, time, messageId, headers] = JSON.parse(plain.toString('utf8', 4, metaEnd)) as [
      string,
      string,
      string | null,
      [string, string[]][],
    ];
    const timeNanos = BigInt(time);
    return {
      stream,
      incarnation,
      sequence: BigInt(sequence),
      subject,
      timeNanos,
      messageId,
      headers,
      payload: plain.subarray(metaEnd),
    };
  });
}

function decrypt(
  entry: Buffer,
  {
    secret,
    salt,
    index,
    identity,
  }: { readonly secret: Buffer; readonly salt: string; readonly index: number; readonly identity: string },
): Buffer {
  const key = Buffer.from(hkdfSync('sha256', secret, Buffer.from(salt, 'base64'), 'durable-replay spool pack', 32));
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(index, 8);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce);
  decipher.setAAD(Buffer.from(identity));
  decipher.setAuthTag(entry.subarray(-16));
  return Buffer.concat([decipher.update(entry.subarray(0, -16)), decipher.final()]);
}

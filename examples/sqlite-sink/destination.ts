import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Destination, Place, StoredRecord } from 'durable-replay/contract';
import Database from 'libsql';
import { sqliteSpec } from './config.ts';

/** What the contract suite runs against: a real file, read without the sink. */
export const sqliteDestinations: readonly Destination[] = [{ spec: sqliteSpec, mode: 'default', create: createPlace }];

const RECORD_BYTES = 1_000;

async function createPlace(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'durable-replay-sqlite-'));
  const dataRoot = join(folder, 'data');
  await mkdir(join(dataRoot, 'taken.db'), { recursive: true });
  return {
    target: { type: 'sqlite', file: 'orders.db' },
    badTarget: { type: 'sqlite', file: 'taken.db' },
    surroundings: { dataRoot, secret: () => Promise.reject(new Error('the SQLite sink has no secrets')) as never },
    confidential: [folder],
    poison: {
      fields: { max_record_bytes: RECORD_BYTES },
      code: 'too_large',
      spoil: (record) => ({ ...record, payload: new Uint8Array(RECORD_BYTES + 1) }),
    },
    connection: {
      break: () => rename(dataRoot, join(folder, 'elsewhere')),
      mend: () => rename(join(folder, 'elsewhere'), dataRoot),
    },
    readBack: async () => readRows(join(dataRoot, 'orders.db')),
    traces: async () => (await readdir(folder, { recursive: true })).sort(),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

interface Row {
  readonly stream: string;
  readonly incarnation: string;
  readonly sequence: bigint;
  readonly subject: string;
  readonly time_ns: bigint;
  readonly message_id: string | null;
  readonly headers: string;
  readonly payload: ArrayBuffer;
  readonly plan: string;
  readonly run: string;
}

function readRows(path: string): StoredRecord[] {
  const database = new Database(path, { readonly: true });
  try {
    const select = database.prepare('SELECT * FROM records ORDER BY stream, incarnation, sequence').safeIntegers(true);
    return (select.all() as Row[]).map(({ time_ns: timeNanos, message_id: messageId, headers, payload, ...row }) => ({
      ...row,
      timeNanos,
      messageId,
      headers: JSON.parse(headers) as [string, string[]][],
      payload: new Uint8Array(payload),
    }));
  } finally {
    database.close();
  }
}

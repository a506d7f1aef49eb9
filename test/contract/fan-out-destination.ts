import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fanOutSpec } from '../../sinks/fan-out/config.ts';
import { readSegments, spaceBetweenTokens } from './file-destination.ts';
import { bytesOf } from './records.ts';
import type { Destination, Place } from './sink-contract.ts';
import { readPacks } from './spool-destination.ts';

export const fanOutDestinations: readonly Destination[] = [{ spec: fanOutSpec, mode: 'default', create: createPlace }];

const file = (fields: Readonly<Record<string, unknown>> = {}) => ({ sink: { type: 'file', directory: 'archive', ...fields } });
const spool = { sink: { type: 'spool', directory: 'spool', allow_unencrypted: true } };
/** Never there: it must not hold up the others. */
const broken = { sink: { type: 'file', directory: 'taken/never' }, required: false, timeout_ms: 5_000 };

/** Two required children and one that always fails. */
async function createPlace(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'durable-replay-fan-out-'));
  const dataRoot = join(folder, 'data');
  await mkdir(dataRoot);
  await writeFile(join(dataRoot, 'taken'), 'a file where a directory should be');
  const target = { type: 'fanout', sinks: { archive: file(), spool, broken } };
  return {
    target: { ...target, sinks: { archive: file(), spool } },
    badTarget: { ...target, sinks: { archive: file({ directory: 'taken/orders' }), spool } },
    surroundings: { dataRoot, secret: () => Promise.reject(new Error('these sinks have no secrets')) as never },
    confidential: [folder],
    poison: {
      fields: {
        sinks: { spool: { sink: { ...spool.sink, max_bytes: 65_536 } }, archive: file({ max_record_bytes: 60_000 }), broken },
      },
      code: 'too_large',
      spoil: (record) => ({ ...record, payload: bytesOf('x'.repeat(70_000)) }),
    },
    connection: {
      break: () => rename(dataRoot, join(folder, 'elsewhere')),
      mend: () => rename(join(folder, 'elsewhere'), dataRoot),
    },
    async readBack() {
      const [archived, spooled] = [
        await readSegments(join(dataRoot, 'archive')),
        await readPacks(join(dataRoot, 'spool', 'packs'), null),
      ];
      if (archived.length !== spooled.length) throw new Error('the two required children do not hold the same');
      return archived;
    },
    storedPayload: spaceBetweenTokens,
    traces: async () => (await readdir(folder, { recursive: true })).toSorted(),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

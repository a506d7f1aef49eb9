import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SpoolConfig } from '../../../sinks/spool/config.ts';
import { spoolConfigSchema } from '../../../sinks/spool/config.ts';
import { createSpoolDrain } from '../../../sinks/spool/drain.ts';
import { createSpoolSink } from '../../../sinks/spool/sink.ts';
import type { Sink, SinkContext } from '../../../sinks/sink.ts';
import type { SpoolDrain } from '../../../sinks/spool-drain.ts';
import { atFileEnd } from '../../support/file-end.ts';

/** In memory where there is such a folder: these tests look at what is written, not at how fast. */
const FAST_FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** 32 bytes each. */
export const keys: Readonly<Record<string, string>> = {
  REPLAY_SECRET_ONE: Buffer.alloc(32, 1).toString('base64'),
  REPLAY_SECRET_TWO: Buffer.alloc(32, 2).toString('hex'),
  REPLAY_SECRET_SHORT: Buffer.alloc(31, 3).toString('base64'),
};
export const encryption = { key_id: 'one', key: { env: 'REPLAY_SECRET_ONE' } };

type Fields = Readonly<Record<string, unknown>>;

export interface Bed {
  readonly root: string;
  readonly directory: string;
  readonly packs: string;
  readonly aside: string;
  readonly logged: { readonly fields: object; readonly message: string }[];
  sink(fields?: Fields, begun?: boolean): Sink;
  drain(fields?: Fields): SpoolDrain;
}

/** A data root of its own, removed when the test file ends. */
export async function makeBed(): Promise<Bed> {
  const root = await mkdtemp(join(FAST_FOLDER, 'durable-replay-bed-'));
  atFileEnd(() => rm(root, { recursive: true, force: true }));
  return bedAt(root);
}

export function bedAt(root: string): Bed {
  const logged: Bed['logged'] = [];
  const note = (fields: object, message: string) => void logged.push({ fields, message });
  const context: SinkContext = {
    dataRoot: root,
    plan: 'plan',
    run: 'run',
    begun: false,
    secret: (name) => keys[name]!,
    log: { info: note, warn: note },
  };
  const directory = join(root, 'spool');
  return {
    root,
    directory,
    packs: join(directory, 'packs'),
    aside: join(directory, 'aside'),
    logged,
    sink: (fields = {}, begun = false) => createSpoolSink(configOf(fields), { ...context, begun }),
    drain: (fields = {}) => createSpoolDrain(configOf(fields), context),
  };
}

function configOf(fields: Fields): SpoolConfig {
  return spoolConfigSchema.parse({ type: 'spool', directory: 'spool', encryption, ...fields });
}

import { mkdir, mkdtemp, readdir } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rm } from 'node:fs/promises';
import { ReplayFault } from '../../../core/errors.ts';
import type { FaultCode } from '../../../core/errors.ts';
import type { Outcome } from '../../../core/record.ts';
import type { FileConfig } from '../../../sinks/file/config.ts';
import type { Files } from '../../../sinks/disk/folders.ts';
import { createFileSink } from '../../../sinks/file/sink.ts';
import type { Sink, SinkContext } from '../../../sinks/sink.ts';
import { readSegments } from '../../contract/file-destination.ts';
import { atFileEnd } from '../../support/file-end.ts';

/** In memory where there is such a folder: these tests look at what is written, not at how fast. */
const FAST_FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export interface Bed {
  readonly root: string;
  /** Of the sink. */
  readonly directory: string;
  readonly index: string;
  readonly logged: { readonly fields: object; readonly message: string }[];
  sink(given?: { config?: Partial<FileConfig>; plan?: string; begun?: boolean; files?: Files }): Sink;
  sequences(): Promise<number[]>;
  segments(): Promise<string[]>;
}

/** A data root of its own, removed when the test file ends. */
export async function makeBed(folder = FAST_FOLDER): Promise<Bed> {
  const root = await mkdtemp(join(folder, 'durable-replay-bed-'));
  atFileEnd(() => rm(root, { recursive: true, force: true }));
  await mkdir(root, { recursive: true });
  return bedAt(root);
}

export function bedAt(root: string): Bed {
  const directory = join(root, 'orders');
  const logged: Bed['logged'] = [];
  const note = (fields: object, message: string) => void logged.push({ fields, message });
  return {
    root,
    directory,
    index: join(directory, '.index'),
    logged,
    sink({ config = {}, plan = 'plan', begun = false, files } = {}) {
      const context: SinkContext = {
        dataRoot: root,
        plan,
        run: 'run',
        begun,
        secret: () => '',
        log: { info: note, warn: note },
      };
      return createFileSink({ ...DEFAULTS, ...config }, context, files);
    },
    sequences: async () => (await readSegments(directory)).map(({ sequence }) => Number(sequence)),
    segments: async () => (await readdir(directory)).filter((name) => name.includes('.jsonl')).sort(),
  };
}

const DEFAULTS: FileConfig = {
  type: 'file',
  directory: 'orders',
  max_segment_bytes: 134_217_728,
  compression: 'none',
  require_json: false,
  max_record_bytes: null,
};

export function kinds(outcomes: readonly Outcome[]): string {
  return outcomes.map(({ kind }) => kind[0]).join('');
}

/** The code of the fault that it throws; anything else thrown is thrown on. */
export async function faultOf(work: Promise<unknown>): Promise<ReplayFault & { code: FaultCode }> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ReplayFault) return error;
    throw error;
  }
  throw new Error('expected it to throw a fault');
}

import { join } from 'node:path';
import { ReplayFault } from '../../core/errors.ts';
import { enterFolder } from '../disk/folders.ts';
import type { Files } from '../disk/folders.ts';
import type { SinkLog } from '../sink.ts';
import { INDEX_FOLDER, parseName } from './names.ts';

/** A directory of the file sink, all links resolved. */
export interface Directory {
  readonly files: Files;
  readonly log: SinkLog;
  readonly path: string;
  readonly indexPath: string;
  /** Tells whether `indexPath` is still the folder that was opened. */
  readonly identity: Identity;
}

export interface Identity {
  readonly dev: number;
  readonly ino: number;
}

/**
 * Makes what is missing below the root; never the root itself, and nothing where the run has written before (`sink_missing`).
 * Throws ReplayFault('sink_denied') when a link leads out of the root.
 */
export async function openDirectory(
  place: { readonly root: string; readonly directory: string; readonly begun: boolean },
  { files, log }: Pick<Directory, 'files' | 'log'>,
): Promise<Directory> {
  const root = await files.realpath(place.root);
  let path = root;
  const { begun } = place;
  for (const name of place.directory.split('/')) path = await enterFolder(files, { root, parent: path, name, begun });
  const indexPath = await enterFolder(files, { root, parent: path, name: INDEX_FOLDER, begun });
  if (indexPath !== join(path, INDEX_FOLDER)) throw new ReplayFault('sink_denied', 'the index folder is a link');
  const { dev, ino } = await files.stat(indexPath);
  return { files, log, path, indexPath, identity: { dev, ino } };
}

export interface Listing {
  /** Epochs, rising. */
  readonly claims: readonly number[];
  readonly journals: readonly number[];
  readonly temporaries: readonly { readonly name: string; readonly epoch: number }[];
}

/** What lies in the index folder. */
export async function listIndex({ files, indexPath }: Pick<Directory, 'files' | 'indexPath'>): Promise<Listing> {
  const ours = (await files.readdir(indexPath)).map((name) => ({ name, ...parseName(name) }));
  const epochs = (kind: string) => ours.flatMap((entry) => (entry.kind === kind ? [entry.epoch!] : [])).sort((a, b) => a - b);
  return {
    claims: epochs('claim'),
    journals: epochs('journal'),
    temporaries: ours.flatMap(({ name, kind, epoch }) => (kind === 'temporary' ? [{ name, epoch: epoch! }] : [])),
  };
}

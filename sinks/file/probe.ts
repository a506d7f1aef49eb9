import * as files from 'node:fs/promises';
import { join } from 'node:path';
import type { Finding } from '../sink.ts';
import { unlessMissing } from '../disk/folders.ts';
import { listIndex } from './directory.ts';
import type { Entry } from './journal.ts';
import { INDEX_FOLDER, parseName } from './names.ts';
import { Corrupt, readJournal } from './takeover.ts';

/** A writer at work may sweep a journal between our look at the folder and our reading. */
const JOURNAL_READS_MAX = 5;

/** What the directory holds. */
export async function probeContent(path: string): Promise<Finding> {
  try {
    const content = await readContent(path);
    if (content === null) return { severity: 'info', message: 'The directory is there and holds no records.' };
    const message = `The directory holds ${content.records} records in ${content.segments} segments.`;
    return { severity: 'info', message };
  } catch (error) {
    if (!(error instanceof Corrupt)) throw error;
    const next = 'Restore the directory from a backup, or move it away.';
    return { severity: 'error', message: `The directory does not agree with its index: ${error.message}.`, next };
  }
}

async function readContent(path: string): Promise<{ records: number; segments: number } | null> {
  const indexPath = join(path, INDEX_FOLDER);
  for (let read = 1; ; read++) {
    const { journals } = (await unlessMissing(listIndex({ files, indexPath }))) ?? { journals: [] };
    const newest = journals.at(-1);
    if (newest === undefined) {
      const segment = (await files.readdir(path)).find((name) => parseName(name)?.kind === 'segment');
      if (segment !== undefined) throw new Corrupt(segment, 'there are segments, and no journal that knows them');
      return null;
    }
    try {
      const { index, segments, unproven } = await readJournal({ files, indexPath }, newest);
      const isNew = unproven !== null && !segments.has(unproven.segment);
      return { records: index.size + recordsOf(unproven), segments: segments.size + (isNew ? 1 : 0) };
    } catch (error) {
      if (!(error instanceof Corrupt) || read === JOURNAL_READS_MAX) throw error;
    }
  }
}

function recordsOf(entry: Entry | null): number {
  let records = 0;
  for (const [, , runs] of entry?.sequences ?? []) for (let i = 1; i < runs.length; i += 2) records += runs[i]!;
  return records;
}

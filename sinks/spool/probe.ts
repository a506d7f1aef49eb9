import type { Finding } from '../sink.ts';
import type { SpoolConfig } from './config.ts';
import * as files from 'node:fs/promises';
import { findFolders, numberOf } from './folders.ts';
import { unlessMissing } from '../disk/folders.ts';

/** What the spool holds. Makes nothing, and moves nothing. */
export async function probeContent(
  place: { readonly root: string; readonly directory: string },
  { max_records: recordsMax }: SpoolConfig,
): Promise<Finding[]> {
  const folders = await findFolders(place);
  if (folders === null) return [{ severity: 'info', message: 'The directory is there and holds no spool yet.' }];
  const names = await files.readdir(folders.packs);
  const foreign = names.filter((name) => numberOf(name, 'pack') === null);
  const aside = (await unlessMissing(files.readdir(folders.aside))) ?? [];
  const findings: Finding[] = [
    {
      severity: 'info',
      message: `The spool holds ${names.length - foreign.length} packs; its bound is ${recordsMax} records.`,
    },
  ];
  if (foreign.length > 0) {
    const next = 'They are set aside when the spool is next opened; move them elsewhere.';
    findings.push({ severity: 'warning', message: `${foreign.length} files there are not of the spool.`, next });
  }
  if (aside.length > 0) {
    const next = 'Look at the folder "aside" of the spool, then remove what is not needed.';
    findings.push({ severity: 'warning', message: `${aside.length} damaged or foreign files were set aside.`, next });
  }
  return findings;
}

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A line of the file sink, with the payload's own text beside it: parsing would round its numbers. */
export interface StoredRecord {
  readonly sequence: number;
  readonly subject: string;
  readonly payload_format: 'json' | 'text' | 'base64';
  readonly payload: unknown;
  readonly line: string;
}

/** All records below a directory of the file sink, in write order. */
export async function readRecords(directory: string): Promise<StoredRecord[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.jsonl')).toSorted();
  const records: StoredRecord[] = [];
  for (const name of names) {
    const text = await readFile(join(directory, name), 'utf8');
    if (text !== '' && !text.endsWith('\n')) throw new Error(`${name} ends in a torn line`);
    for (const line of text.split('\n').slice(0, -1)) records.push({ ...(JSON.parse(line) as StoredRecord), line });
  }
  return records;
}

/** Whole lines so far, of a directory that may be in use or in the state that a crash left. */
export async function countLines(directory: string): Promise<number> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.jsonl'));
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name), 'latin1').catch(() => '')));
  return texts.reduce((lines, text) => lines + text.split('\n').length - 1, 0);
}

/** The bytes that the message must have had; json only up to its line breaks, which the sink turns into spaces. */
export function originalBody({ payload_format, payload, line }: StoredRecord): Buffer {
  switch (payload_format) {
    case 'base64':
      return Buffer.from(payload as string, 'base64');
    case 'text':
      return Buffer.from(payload as string, 'utf8');
    case 'json': {
      const start = line.indexOf('"payload_format":"json","payload":') + '"payload_format":"json","payload":'.length;
      return Buffer.from(line.slice(start, line.lastIndexOf(',"plan":')), 'utf8');
    }
  }
}

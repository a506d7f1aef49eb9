import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { ReplayFault } from '../../core/errors.ts';
import type { ReplayRecord } from '../../core/record.ts';
import { asFault } from '../disk/faults.ts';
import { syncFolder, unlessMissing } from '../disk/folders.ts';
import type { SinkContext } from '../sink.ts';
import type { DrainOwner, SpoolContent, SpoolDrain, Taken } from '../spool-drain.ts';
import type { SpoolConfig } from './config.ts';
import { findFolders, linkOnce, makeFile, numberedName, numberOf, readWhole } from './folders.ts';
import type { Folders } from './folders.ts';
import { cipherOf, readKeys } from './keys.ts';
import type { PackCipher } from './keys.ts';
import { decodeEntry, decodeHead, encodePackOf, headBytes, identitiesOf, PREAMBLE_BYTES } from './pack.ts';
import type { PackHead } from './pack.ts';
import { SpoolStore } from './store.ts';

/** Whoever claims while others claim, too, tries this often. */
const CLAIM_ATTEMPTS_MAX = 20;

type DrainContext = Pick<SinkContext, 'dataRoot' | 'secret' | 'log'>;

export function createSpoolDrain(config: SpoolConfig, context: DrainContext): SpoolDrain {
  const place = { root: context.dataRoot, directory: config.directory };
  const withFolders = async <T>(work: (folders: Folders) => Promise<T>): Promise<T> => {
    try {
      const folders = await findFolders(place);
      if (folders === null) throw new ReplayFault('sink_missing', 'there is no spool in the directory');
      return await work(folders);
    } catch (error) {
      throw asFault(error);
    }
  };
  return {
    describe: () =>
      withFolders(async (folders) => {
        readKeys(config, context.secret);
        return contentOf(await SpoolStore.open(folders, context.log, { mayMove: false }));
      }),
    claim: (owner, isOpen) => withFolders((folders) => claim(folders, owner, isOpen)),
    take: (recordsMax, signal) =>
      withFolders(async (folders) => {
        const store = await SpoolStore.open(folders, context.log);
        const numbers = nextPacks(store, config, recordsMax);
        const taken = await readPacks({ folders, config, context }, numbers, signal);
        const content = contentOf(store);
        return { ...taken, left: content.records, setAside: taken.setAside + content.setAside };
      }),
    read: (numbers, signal) => withFolders((folders) => readPacks({ folders, config, context }, numbers, signal)),
    remove: (numbers) =>
      withFolders(async (folders) => {
        const store = await SpoolStore.open(folders, context.log);
        await store.remove(numbers);
        await store.close();
      }),
  };
}

function contentOf({ records, bytes, setAside }: SpoolStore): SpoolContent {
  return { records, bytes, setAside: setAside.length };
}

/** Of one priority, at least one pack, and no more records than asked. */
function nextPacks(store: SpoolStore, { order }: SpoolConfig, recordsMax: number): number[] {
  const packs = store.inOrder(order);
  const first = packs[0];
  const numbers: number[] = [];
  let records = 0;
  for (const pack of packs) {
    if (order === 'priority' && pack.priority !== first!.priority) break;
    if (numbers.length > 0 && records + pack.count > recordsMax) break;
    numbers.push(pack.number);
    records += pack.count;
  }
  return numbers;
}

interface Reading {
  readonly folders: Folders;
  readonly config: SpoolConfig;
  readonly context: DrainContext;
}

async function readPacks(reading: Reading, numbers: readonly number[], signal: AbortSignal): Promise<Taken> {
  const keys = readKeys(reading.config, reading.context.secret);
  const records: ReplayRecord[] = [];
  let setAside = 0;
  for (const number of numbers) {
    signal.throwIfAborted();
    const bytes = await readWhole(join(reading.folders.packs, numberedName(number, 'pack')));
    const pack = bytes === null ? null : splitPack(bytes);
    if (pack === null) continue;
    const cipher = pack.head.key === null ? null : cipherOf(pack.head.key, keys);
    const found = readEntries(pack, cipher);
    records.push(...found.records);
    for (const damaged of found.damaged) await putAside(reading, number, damaged);
    setAside += found.damaged.length;
  }
  return { packs: numbers, records: inOrder(records), setAside };
}

interface Pack {
  readonly head: PackHead;
  readonly entries: Buffer;
}

/** null for what became damaged since its head was read: the next look sets it aside. */
function splitPack(bytes: Buffer): Pack | null {
  const preamble = bytes.subarray(0, PREAMBLE_BYTES);
  const length = headBytes(preamble);
  if (length === null) return null;
  const head = decodeHead(preamble, bytes.subarray(PREAMBLE_BYTES, PREAMBLE_BYTES + length));
  return head === null ? null : { head, entries: bytes.subarray(PREAMBLE_BYTES + length) };
}

interface Damaged {
  readonly index: number;
  readonly pack: Buffer;
}

function readEntries({ head, entries }: Pack, cipher: PackCipher | null): { records: ReplayRecord[]; damaged: Damaged[] } {
  const records: ReplayRecord[] = [];
  const damaged: Damaged[] = [];
  let index = 0;
  let start = 0;
  for (const identity of identitiesOf(head)) {
    const stored = entries.subarray(start, (start += head.lengths[index]!));
    const record = decodeEntry(stored, { identity, index, head }, cipher);
    if (record === null) damaged.push({ index, pack: encodePackOf(head, identity, stored) });
    else records.push(record);
    index++;
  }
  return { records, damaged };
}

/** Under a name that says where it was: done again, it is the same file. */
async function putAside({ folders, context }: Reading, number: number, { index, pack }: Damaged): Promise<void> {
  const name = `${numberedName(number, 'pack')}.entry-${index}`;
  await files.rename(await makeFile(folders, pack), join(folders.aside, name));
  await syncFolder(files, folders.aside);
  context.log.warn({ file: name }, 'a damaged entry of the spool was set aside');
}

/** Stream by stream, each in the order of its sequences, each record once. */
function inOrder(records: readonly ReplayRecord[]): ReplayRecord[] {
  const groups = new Map<string, ReplayRecord[]>();
  for (const record of records) {
    const name = JSON.stringify([record.stream, record.incarnation]);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [record]);
    else group.push(record);
  }
  return [...groups.values()].flatMap((group) =>
    group.sort((a, b) => Number(a.sequence - b.sequence)).filter((record, i) => record.sequence !== group[i - 1]?.sequence),
  );
}

/** The highest claim counts. A higher one is made only when the run behind it is over, and only one can make the next number. */
async function claim(folders: Folders, owner: DrainOwner, isOpen: (owner: DrainOwner) => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < CLAIM_ATTEMPTS_MAX; attempt++) {
    const numbers = (await files.readdir(folders.claims)).flatMap((name) => numberOf(name, 'claim') ?? []);
    const high = numbers.reduce((max, number) => Math.max(max, number), 0);
    const text = high === 0 ? null : await readWhole(join(folders.claims, numberedName(high, 'claim')));
    const holder = text === null ? null : (JSON.parse(text.toString()) as DrainOwner);
    if (holder !== null && sameOwner(holder, owner)) return;
    if (holder !== null && (!sameHome(holder, owner) || (await isOpen(holder)))) {
      throw new ReplayFault('spool_taken', holder.workflowId);
    }
    const made = await makeFile(folders, Buffer.from(JSON.stringify(owner)));
    const isOurs = await linkOnce(made, join(folders.claims, numberedName(high + 1, 'claim')));
    await files.unlink(made);
    if (!isOurs) continue;
    await syncFolder(files, folders.claims);
    for (const number of numbers) await unlessMissing(files.unlink(join(folders.claims, numberedName(number, 'claim'))));
    return;
  }
  throw new ReplayFault('sink_busy', 'others keep claiming the spool');
}

function sameOwner(a: DrainOwner, b: DrainOwner): boolean {
  return sameHome(a, b) && a.workflowId === b.workflowId && a.firstRunId === b.firstRunId;
}

function sameHome(a: DrainOwner, b: DrainOwner): boolean {
  return a.cluster === b.cluster && a.namespace === b.namespace;
}

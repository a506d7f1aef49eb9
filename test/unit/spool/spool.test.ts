import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parseTarget } from '../../../core/target.ts';
import { sinkSpecs } from '../../../sinks/registry.ts';
import { readPriority } from '../../../sinks/spool/priority.ts';
import { makeBatch, makeRecord } from '../../contract/records.ts';
import { never } from '../../contract/sink-contract.ts';
import { faultOf, kinds } from '../file/bench.ts';
import { bedAt, encryption, keys, makeBed, type Bed } from './bench.ts';

const owner = { cluster: 'c', namespace: 'n', workflowId: 'w', firstRunId: 'r' };
const isClosed = () => Promise.resolve(false);
const isOpen = () => Promise.resolve(true);

/** Everything that lies in the data root, each file once. */
async function filesOf(bed: Bed): Promise<Buffer[]> {
  const found = await readdir(bed.root, { recursive: true, withFileTypes: true });
  return await Promise.all(found.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name))));
}

async function drained(bed: Bed, fields: object = {}): Promise<number[]> {
  const drain = bed.drain(fields as Record<string, unknown>);
  const sequences: number[] = [];
  for (;;) {
    const taken = await drain.take(50, never());
    if (taken.packs.length === 0) return sequences;
    sequences.push(...taken.records.map(({ sequence }) => Number(sequence)));
    await drain.remove(taken.packs);
  }
}

async function write(bed: Bed, batch: Parameters<ReturnType<Bed['sink']>['write']>[0], fields: Record<string, unknown> = {}) {
  const sink = bed.sink(fields);
  try {
    return await sink.write(batch, never());
  } finally {
    await sink.close();
  }
}

describe('secrecy', () => {
  test('neither a record nor its hash is on the disk, in whatever form', async () => {
    const bed = await makeBed();
    const secret = 'the customer lives at 42 Secret Street';
    await write(bed, [
      makeRecord(1, { payload: Buffer.from(secret), subject: 'very.private.subject', messageId: 'private-id' }),
    ]);
    const all = Buffer.concat(await filesOf(bed)).toString('latin1');
    const digests = ['sha256', 'sha1', 'md5'].flatMap((name) =>
      (['hex', 'base64', 'latin1'] as const).map((form) => createHash(name).update(secret).digest().toString(form)),
    );
    const base64 = Buffer.from(secret).toString('base64').slice(0, 24);
    for (const text of [secret, 'Secret Street', 'private', base64, ...digests, ...Object.values(keys)])
      expect(all).not.toContain(text);
    expect(all).toContain('ORDERS');
  });

  test('keys are rotated: what the old one encrypted is still drained, and what nobody can read stays', async () => {
    const bed = await makeBed();
    await write(bed, makeBatch(1, 10));
    const rotated = { encryption: { key_id: 'two', key: { env: 'REPLAY_SECRET_TWO' } } };
    await write(bed, makeBatch(11, 10), rotated);
    expect((await faultOf(bed.drain(rotated).take(50, never()))).code).toBe('spool_key');
    const swapped = { encryption: { key_id: 'one', key: { env: 'REPLAY_SECRET_TWO' } } };
    expect((await faultOf(bed.drain(swapped).take(50, never()))).code).toBe('spool_key');
    expect(await readdir(bed.aside)).toEqual([]);
    const both = { encryption: { ...rotated.encryption, old_keys: { one: { env: 'REPLAY_SECRET_ONE' } } } };
    expect(await drained(bed, both)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });

  test('a key of 31 bytes is refused, and not told', async () => {
    const bed = await makeBed();
    const short = { encryption: { key_id: 'one', key: { env: 'REPLAY_SECRET_SHORT' } } };
    const fault = await faultOf(bed.sink(short).open(never()));
    expect(fault.code).toBe('secret_invalid');
    expect(fault.message).not.toContain(keys['REPLAY_SECRET_SHORT']);
  });

  test.each([
    ['neither encryption nor the word that it is left out', {}],
    ['both', { encryption, allow_unencrypted: true }],
    ['the present key among the old ones', { encryption: { ...encryption, old_keys: { one: encryption.key } } }],
  ])('a target with %s is refused', (_, fields) => {
    const parsed = parseTarget({ sink: { type: 'spool', directory: 'x', ...fields } }, sinkSpecs);
    expect(parsed.ok).toBe(false);
    expect(JSON.stringify(parsed)).toContain('sink.encryption');
  });
});

describe('bounds', () => {
  test('full of records: what fits is in, the rest blocks, no partial file; drained, it goes on', async () => {
    const bed = await makeBed();
    const bounds = { max_records: 25 };
    await write(bed, makeBatch(1, 20), bounds);
    for (let again = 0; again < 2; again++) {
      const fault = await faultOf(write(bed, makeBatch(21, 20), bounds));
      expect([fault.code, fault.detail]).toEqual(['sink_full', expect.stringContaining('25 of 25 records')]);
      expect(await readdir(join(bed.directory, 'making'))).toEqual([]);
    }
    expect((await bed.drain().describe()).records).toBe(25);
    expect(await drained(bed)).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
    expect(kinds(await write(bed, makeBatch(26, 15), bounds))).toBe('w'.repeat(15));
  });

  test('full of bytes', async () => {
    const bed = await makeBed();
    const payload = Buffer.alloc(20_000);
    const fault = await faultOf(write(bed, makeBatch(1, 10, { payload }), { max_bytes: 65_536 }));
    expect(fault.code).toBe('sink_full');
    expect(await drained(bed)).toEqual([1, 2, 3]);
  });
});

describe('order', () => {
  const withPriority = (sequence: number, value: string) => makeRecord(sequence, { headers: new Map([['priority', [value]]]) });
  const batch = [
    withPriority(1, 'routine'),
    withPriority(2, 'urgent'),
    makeRecord(3),
    withPriority(4, '0'),
    withPriority(5, '9'),
  ];

  test('the most urgent first, of those the oldest', async () => {
    const bed = await makeBed();
    const fields = { order: 'priority' };
    await write(bed, batch, fields);
    await write(bed, [withPriority(6, 'URGENT'), withPriority(7, 'Routine')], fields);
    expect(await drained(bed, fields)).toEqual([2, 4, 6, 3, 1, 7, 5]);
  });

  test('first in, first out', async () => {
    const bed = await makeBed();
    await write(bed, batch);
    await write(bed, [withPriority(6, 'urgent')]);
    expect(await drained(bed)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test.each([
    ['0', 0],
    [' 7 ', 7],
    ['High', 2],
    ['10', 4],
    ['constructor', 4],
    [undefined, 4],
  ])('the priority %j is %i', (value, priority) => expect(readPriority(value)).toBe(priority));
});

describe('damage', () => {
  test('one damaged entry is set aside, the others of its pack are drained', async () => {
    const bed = await makeBed();
    await write(bed, makeBatch(1, 10));
    const [name] = await readdir(bed.packs);
    const bytes = await readFile(join(bed.packs, name!));
    bytes[bytes.length - 20]! ^= 1;
    await writeFile(join(bed.packs, name!), bytes);
    const taken = await bed.drain().take(50, never());
    expect([taken.records.length, taken.setAside]).toEqual([9, 1]);
    // A lost attempt does it again: still one file.
    await bed.drain().take(50, never());
    expect(await readdir(bed.aside)).toEqual(['000000000001.pack.entry-9']);
    await bed.drain().remove(taken.packs);
    expect(await drained(bed)).toEqual([]);
  });

  test('an entry moved into the place of another one is damage, too', async () => {
    const bed = await makeBed();
    const payload = Buffer.from('same length');
    await write(bed, makeBatch(1, 2, { payload, subject: 'a', messageId: 'b', headers: new Map() }));
    const [name] = await readdir(bed.packs);
    const bytes = await readFile(join(bed.packs, name!));
    const headEnd = 16 + bytes.readUInt32BE(8);
    const half = (bytes.length - headEnd) / 2;
    const swapped = Buffer.concat([
      bytes.subarray(0, headEnd),
      bytes.subarray(headEnd + half),
      bytes.subarray(headEnd, headEnd + half),
    ]);
    expect(swapped.length).toBe(bytes.length);
    await writeFile(join(bed.packs, name!), swapped);
    expect(await bed.drain().take(50, never())).toMatchObject({ records: [], setAside: 2 });
  });

  test('a damaged pack and foreign files are set aside and told, by the writer as by the drain; a dry look moves nothing', async () => {
    const bed = await makeBed();
    await write(bed, makeBatch(1, 10));
    await writeFile(join(bed.packs, '000000000009.pack'), 'not a pack');
    await writeFile(join(bed.packs, 'README'), 'hello');
    expect(await bed.drain().describe()).toMatchObject({ records: 10, setAside: 2 });
    expect(await readdir(bed.packs)).toHaveLength(3);
    const [finding] = (await bed.sink().probe(never())).filter(({ severity }) => severity === 'warning');
    expect(finding?.message).toContain('1 files there are not of the spool');
    await write(bed, makeBatch(11, 10));
    expect((await readdir(bed.aside)).map((name) => name.split('.')[0])).toEqual(['000000000009', 'README']);
    expect(bed.logged.filter(({ message }) => message.includes('set aside'))).toHaveLength(2);
    expect(await drained(bed)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });

  test('a directory that is gone since the run began is not made anew', async () => {
    const bed = await makeBed();
    expect((await faultOf(bed.sink({}, true).open(never()))).code).toBe('sink_missing');
    expect((await faultOf(bed.drain().describe())).code).toBe('sink_missing');
    expect(await readdir(bed.root)).toEqual([]);
  });

  test.each(['', '00000000{', 'x'.repeat(100)])('a checkpoint that is damaged (%j) is not believed', async (text) => {
    const bed = await makeBed();
    await write(bed, makeBatch(1, 10));
    await writeFile(join(bed.directory, 'checkpoint'), text);
    expect(kinds(await write(bed, makeBatch(1, 12)))).toBe('d'.repeat(10) + 'ww');
  });
});

describe('drains', () => {
  test('only one has the spool, until its run is over; the same one again is no other', async () => {
    const bed = await makeBed();
    await write(bed, makeBatch(1, 10));
    const drain = bed.drain();
    await drain.claim(owner, isOpen);
    await drain.claim(owner, isOpen);
    const other = { ...owner, workflowId: 'other' };
    expect(await faultOf(drain.claim(other, isOpen))).toMatchObject({ code: 'spool_taken', detail: 'w' });
    expect((await faultOf(drain.claim({ ...other, namespace: 'elsewhere' }, isClosed))).code).toBe('spool_taken');
    await drain.claim(other, isClosed);
    expect((await faultOf(drain.claim(owner, isOpen))).code).toBe('spool_taken');
    const rivals = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) =>
        drain.claim({ ...owner, workflowId: `rival ${i}` }, ({ workflowId }) => Promise.resolve(workflowId !== 'other')),
      ),
    );
    expect(rivals.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('numbers are never given twice: a writer that stood still while others wrote and drained stores nothing twice', async () => {
    const bed = await makeBed();
    const [slow, other] = [bed.sink(), bed.sink()];
    await slow.write(makeBatch(1, 10), never());
    await other.write(makeBatch(11, 10), never());
    await other.write(makeBatch(21, 10), never());
    expect(await drained(bed)).toHaveLength(30);
    await other.write(makeBatch(31, 10), never());
    expect(kinds(await slow.write(makeBatch(31, 10), never()))).toBe('d'.repeat(10));
    expect(await drained(bed)).toEqual(makeBatch(31, 10).map(({ sequence }) => Number(sequence)));
    expect(await readdir(bed.packs)).toHaveLength(1);
    await slow.close();
    await other.close();
  });

  test('many small packs: opened again by the checkpoint', async () => {
    const bed = await makeBed();
    const sink = bed.sink();
    for (let i = 0; i < 100; i++) await sink.write(makeBatch(2 * i + 1, 1), never());
    await sink.close();
    expect(await readdir(bed.directory)).toContain('checkpoint');
    expect(await bed.drain().describe()).toMatchObject({ records: 100, setAside: 0 });
    expect(kinds(await write(bed, makeBatch(1, 4)))).toBe('dwdw');
    expect(await drained(bed)).toHaveLength(102);
  });
});

test('a writer killed again and again loses and doubles nothing', { timeout: 180_000 }, async () => {
  const script = fileURLToPath(new URL('./writer-process.ts', import.meta.url));
  const bed = await makeBed();
  let answered = 0;
  for (let kill = 0; kill < 6; kill++) {
    const child = spawn(process.execPath, ['--import', 'tsx', script, bed.root, String(answered + 1)]);
    let output = '';
    const ended = once(child, 'close');
    // After a number of answers that differs from time to time, in the middle of whatever comes next.
    await new Promise<void>((resolve) => {
      child.stdout.on('data', (data: Buffer) => {
        output += data.toString();
        if (output.split('\n').length > 3 + 2 * kill) resolve();
      });
      void ended.then(() => resolve());
    });
    expect(child.exitCode, 'it is killed at work').toBeNull();
    child.kill('SIGKILL');
    await ended;
    answered = Math.max(answered, ...output.split('\n').slice(0, -1).map(Number));
  }
  const stored = (await drained(bedAt(bed.root))).toSorted((a, b) => a - b);
  expect(stored.length).toBeGreaterThanOrEqual(answered);
  expect(stored).toEqual(Array.from({ length: stored.length }, (_, i) => i + 1));
});

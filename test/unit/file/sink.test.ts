import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bodies, bytesOf, makeBatch, makeRecord, makeRecordsOf } from '../../contract/records.ts';
import { readSegments, spaceBetweenTokens } from '../../contract/file-destination.ts';
import { never } from '../../contract/sink-contract.ts';
import { tempDir } from '../../support/file-end.ts';
import { faultOf, kinds, makeBed } from './bench.ts';

const MIXED = Object.values(bodies)
  .flat()
  .filter((body) => body.length < 10_000);

test.each(['none', 'gzip'] as const)(
  '20,000 mixed bodies land exactly, in order, once (%s)',
  { timeout: 60_000 },
  async (compression) => {
    const bed = await makeBed(await tempDir());
    const records = makeRecordsOf(Array.from({ length: 20_000 }, (_, i) => MIXED[i % MIXED.length]!));
    const config = { compression, max_segment_bytes: 1_048_576 };
    const sink = bed.sink({ config });
    for (let i = 0; i < records.length; i += 1_000) {
      expect(kinds(await sink.write(records.slice(i, i + 1_000), never()))).toBe('w'.repeat(1_000));
    }
    await sink.close();
    const stored = await readSegments(bed.directory);
    expect(stored.map(({ sequence }) => sequence)).toEqual(records.map(({ sequence }) => sequence));
    for (const [i, { payload }] of stored.entries()) {
      if (!Buffer.from(payload).equals(spaceBetweenTokens(records[i]!.payload))) throw new Error(`body ${i} differs`);
    }
    const again = bed.sink({ config, plan: 'another' });
    for (let i = 0; i < records.length; i += 5_000) {
      expect(kinds(await again.write(records.slice(i, i + 5_000), never()))).toBe('d'.repeat(5_000));
    }
    await again.close();
    expect(await bed.sequences()).toHaveLength(20_000);
  },
);

describe('segments', () => {
  test('are rotated by size, sort in write order, and nothing else has .jsonl in its name', async () => {
    const bed = await makeBed();
    const config = { max_segment_bytes: 65_536 };
    for (const first of [1, 1_001]) {
      const sink = bed.sink({ config });
      for (let i = 0; i < 10; i++) await sink.write(makeBatch(first + i * 100, 100), never());
      await sink.close();
    }
    expect(await bed.sequences()).toEqual(Array.from({ length: 2_000 }, (_, i) => i + 1));
    const names = await bed.segments();
    expect(names.length).toBeGreaterThan(6);
    for (const name of names) {
      expect(name).toMatch(/^\d{8}-\d{6}\.jsonl$/);
      expect((await stat(join(bed.directory, name))).size).toBeLessThanOrEqual(65_536);
    }
    const all = await readdir(bed.directory, { recursive: true });
    expect(all.filter((name) => name.includes('.jsonl')).sort()).toEqual(names);
  });

  test('a batch larger than a segment makes one larger segment', async () => {
    const bed = await makeBed();
    const sink = bed.sink({ config: { max_segment_bytes: 65_536 } });
    await sink.write(makeBatch(1, 10), never());
    await sink.write(makeBatch(11, 1_000), never());
    await sink.write(makeBatch(1_011, 10), never());
    await sink.close();
    expect(await bed.segments()).toHaveLength(3);
    expect(await bed.sequences()).toHaveLength(1_020);
  });

  test('compressed ones are read by zcat, a change of compression begins a new one', async () => {
    const bed = await makeBed();
    for (const [i, compression] of (['gzip', 'none', 'gzip'] as const).entries()) {
      const sink = bed.sink({ config: { compression } });
      await sink.write(makeBatch(i * 20 + 1, 10), never());
      await sink.write(makeBatch(i * 20 + 11, 10), never());
      await sink.close();
    }
    expect(await bed.segments()).toEqual(['00000001-000001.jsonl.gz', '00000002-000001.jsonl', '00000003-000001.jsonl.gz']);
    const { stdout, status } = spawnSync('sh', ['-c', 'zcat "$0"', join(bed.directory, '00000001-000001.jsonl.gz')], {
      encoding: 'utf8',
    });
    expect(status).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(20);
    expect(await bed.sequences()).toHaveLength(60);
  });

  test('folders and files are not for others', async () => {
    const bed = await makeBed();
    const sink = bed.sink();
    await sink.write(makeBatch(1, 1), never());
    await sink.close();
    const others = async (path: string) => (await stat(path)).mode & 0o027;
    expect(await others(bed.directory)).toBe(0);
    expect(await others(bed.index)).toBe(0);
    for (const name of await readdir(bed.directory, { recursive: true }))
      expect((await others(join(bed.directory, name))) & 0o007).toBe(0);
  });
});

describe('records that are refused', () => {
  test('not_json and too_large, by the bytes of the body', async () => {
    const bed = await makeBed();
    const sink = bed.sink({ config: { require_json: true, max_record_bytes: 10 } });
    const batch = makeRecordsOf(['12345678', 'text', '"12345678"', '"123456789"', '"é2345é"', ''].map(bytesOf));
    expect(await sink.write(batch, never())).toEqual([
      { kind: 'written' },
      { kind: 'rejected', code: 'not_json' },
      { kind: 'written' },
      { kind: 'rejected', code: 'too_large' },
      { kind: 'written' },
      { kind: 'rejected', code: 'not_json' },
    ]);
    expect(await bed.sequences()).toEqual([1, 3, 5]);
    await sink.close();
  });

  test('what is in already is a duplicate, whatever the rules are today', async () => {
    const bed = await makeBed();
    const loose = bed.sink();
    await loose.write([makeRecord(1, { payload: bytesOf('text') })], never());
    await loose.close();
    const strict = bed.sink({ config: { require_json: true } });
    const outcomes = await strict.write(
      [1, 2].map((sequence) => makeRecord(sequence, { payload: bytesOf('text') })),
      never(),
    );
    expect(kinds(outcomes)).toBe('dr');
    await strict.close();
  });

  test('a batch with a repeated record holds it once', async () => {
    const bed = await makeBed();
    const sink = bed.sink();
    expect(kinds(await sink.write([makeRecord(2), makeRecord(1), makeRecord(2)], never()))).toBe('wwd');
    expect(await bed.sequences()).toEqual([2, 1]);
    await sink.close();
  });
});

describe('the place', () => {
  test('a missing data root is not made', async () => {
    const bed = await makeBed();
    await rm(bed.root, { recursive: true });
    expect((await faultOf(bed.sink().open(never()))).code).toBe('sink_missing');
    expect((await bed.sink().probe(never()))[0]).toMatchObject({ severity: 'error' });
    await expect(stat(bed.root)).rejects.toThrow('ENOENT');
  });

  test('a file in its way', async () => {
    const bed = await makeBed();
    await writeFile(bed.directory, 'x');
    expect(await faultOf(bed.sink().open(never()))).toMatchObject({ code: 'sink_missing', detail: 'ENOTDIR' });
    expect((await bed.sink().probe(never())).map(({ severity }) => severity)).toContain('error');
  });

  test.each(['orders', 'orders/2026', 'a/b'])('a link out of the data root is refused (%s)', async (directory) => {
    const bed = await makeBed();
    const outside = await tempDir();
    await symlink(outside, join(bed.root, directory.split('/')[0]!));
    expect((await faultOf(bed.sink({ config: { directory } }).open(never()))).code).toBe('sink_denied');
    const findings = await bed.sink({ config: { directory } }).probe(never());
    expect(findings[0]).toMatchObject({ severity: 'error' });
    expect(await readdir(outside)).toEqual([]);
  });

  test('a link to elsewhere in the data root is the same directory', async () => {
    const bed = await makeBed();
    const sink = bed.sink();
    await sink.write(makeBatch(1, 3), never());
    await sink.close();
    await symlink('orders', join(bed.root, 'alias'));
    const alias = bed.sink({ config: { directory: 'alias' } });
    expect(kinds(await alias.write(makeBatch(1, 4), never()))).toBe('dddw');
    await alias.close();
    expect(await bed.sequences()).toEqual([1, 2, 3, 4]);
  });

  test('an index that is a link, and a planted segment, are refused', async () => {
    const bed = await makeBed();
    const outside = await tempDir();
    await mkdir(bed.directory);
    await symlink(outside, bed.index);
    expect((await faultOf(bed.sink().open(never()))).code).toBe('sink_denied');
    await rm(bed.index);
    const sink = bed.sink();
    await sink.open(never());
    await writeFile(join(outside, 'victim'), 'untouched');
    await symlink(join(outside, 'victim'), join(bed.directory, '00000001-000001.jsonl'));
    expect((await faultOf(sink.write(makeBatch(1, 1), never()))).code).toBe('sink_corrupt');
    expect(await readFile(join(outside, 'victim'), 'utf8')).toBe('untouched');
    await sink.close();
  });

  test.each([
    ['removed', (directory: string) => rm(directory, { recursive: true })],
    ['moved', (directory: string) => rename(directory, `${directory}-moved`)],
    [
      'replaced',
      async (directory: string) => {
        await rename(directory, `${directory}-moved`);
        await mkdir(join(directory, '.index'), { recursive: true });
      },
    ],
  ])('a directory %s under an open sink', async (_, harm) => {
    for (const next of [makeBatch(4, 3), makeBatch(1, 3)]) {
      const bed = await makeBed();
      const sink = bed.sink();
      await sink.write(makeBatch(1, 3), never());
      await harm(bed.directory);
      expect((await faultOf(sink.write(next, never()))).code).toBe('sink_missing');
      await sink.close();
    }
  });

  test('a segment removed under an open sink', async () => {
    const bed = await makeBed();
    const sink = bed.sink();
    await sink.write(makeBatch(1, 3), never());
    await rm(join(bed.directory, '00000001-000001.jsonl'));
    expect((await faultOf(sink.write(makeBatch(4, 3), never()))).code).toBe('sink_corrupt');
    await sink.close();
  });

  test('faults and findings hold no path', async () => {
    const bed = await makeBed();
    await writeFile(bed.directory, 'x');
    const fault = await faultOf(bed.sink().open(never()));
    const findings = await bed.sink().probe(never());
    expect(JSON.stringify([fault.message, fault.detail, findings, bed.logged])).not.toContain(bed.root);
  });

  test('probe tells what is there', async () => {
    const bed = await makeBed();
    const messages = async () => (await bed.sink().probe(never())).map(({ message }) => message);
    expect(await messages()).toContain('The directory is missing and will be made.');
    expect(await readdir(bed.root)).toEqual([]);
    await mkdir(bed.directory);
    expect(await messages()).toContain('The directory is there and holds no records.');
    const sink = bed.sink();
    await sink.write(makeBatch(1, 30), never());
    expect(await messages()).toContain('The directory holds 30 records in 1 segments.');
    await sink.close();
    expect(await messages()).toContain('The directory holds 30 records in 1 segments.');
  });
});

describe('several writers', () => {
  test('a writer that was fenced writes again, and a stalled third changes nothing', async () => {
    const bed = await makeBed();
    const [a, b, c] = ['a', 'b', 'c'].map((plan) => bed.sink({ plan }));
    await c!.open(never());
    await c!.write(makeBatch(1, 10), never());
    await a!.open(never());
    await b!.open(never());
    for (let i = 0; i < 6; i++) {
      expect(kinds(await (i % 2 === 0 ? a : b)!.write(makeBatch(11 + i * 10, 10), never()))).toMatch(/^[dw]{10}$/);
    }
    expect(await bed.sequences()).toEqual(Array.from({ length: 70 }, (_, i) => i + 1));
    expect(kinds(await c!.write(makeBatch(1, 75), never()))).toBe('d'.repeat(70) + 'w'.repeat(5));
    expect(kinds(await a!.write(makeBatch(71, 5), never()))).toBe('ddddd');
    await Promise.all([a, b, c].map((sink) => sink!.close()));
    expect(await bed.sequences()).toEqual(Array.from({ length: 75 }, (_, i) => i + 1));
  });

  test('two live plans at once both get through', { timeout: 60_000 }, async () => {
    const bed = await makeBed(await tempDir());
    const written = await Promise.all(
      ['a', 'b'].map(async (plan, offset) => {
        const sink = bed.sink({ plan });
        let count = 0;
        for (let i = 0; i < 25; i++) {
          const outcomes = await sink.write(makeBatch(1 + offset * 500 + i * 50, 50), never());
          count += outcomes.filter(({ kind }) => kind === 'written').length;
        }
        await sink.close();
        return count;
      }),
    );
    expect(written[0]! + written[1]!).toBeLessThanOrEqual(1_750);
    expect((await bed.sequences()).sort((x, y) => x - y)).toEqual(Array.from({ length: 1_750 }, (_, i) => i + 1));
  });

  test('a sink takes one call at a time', async () => {
    const bed = await makeBed();
    const sink = bed.sink();
    const first = sink.write(makeBatch(1, 3), never());
    await expect(sink.write(makeBatch(4, 3), never())).rejects.toThrow('one call at a time');
    await first;
    await sink.close();
  });
});

test('a directory that a replay has written into is not made anew when it is gone', async () => {
  const bed = await makeBed();
  const sink = bed.sink({ begun: true });
  await expect(sink.open(new AbortController().signal)).rejects.toMatchObject({ code: 'sink_missing' });
  await expect(readdir(bed.root)).resolves.toEqual([]);
  await sink.close();
});

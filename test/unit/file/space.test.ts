import { spawnSync } from 'node:child_process';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeBatch } from '../../contract/records.ts';
import { never } from '../../contract/sink-contract.ts';
import { atFileEnd, tempDir } from '../../support/file-end.ts';
import { bedAt, faultOf, kinds } from './bench.ts';
import type { Bed } from './bench.ts';

/** A file system of its own, which needs the right to mount one. */
async function mountSmall(megabytes: number): Promise<string | null> {
  const folder = join(await tempDir(), 'small');
  await mkdir(folder);
  if (process.getuid?.() !== 0) return null;
  if (shell('mount -t tmpfs -o size="$1" tmpfs "$0"', folder, `${megabytes}m`) !== 0) return null;
  atFileEnd(() => Promise.resolve(shell('umount -l "$0"', folder)));
  return folder;
}

function shell(command: string, ...args: readonly string[]): number | null {
  return spawnSync('sh', ['-c', command, ...args]).status;
}

const small = await mountSmall(1);
const other = await mountSmall(1);

describe.skipIf(small === null || other === null)('a file system (skipped where the tests may not mount one)', () => {
  test('without room stops with sink_full, and goes on when there is room', async () => {
    const bed = bedAt(small!);
    await writeFile(join(bed.root, 'filler'), Buffer.alloc(600_000));
    const first = bed.sink();
    await first.open(never());
    const written = await writeUntilFull(bed);
    expect(written).toBeGreaterThan(100);
    for (let i = 0; i < 3; i++) {
      const again = bed.sink();
      const fault = await faultOf(again.open(never()).then(() => again.write(makeBatch(written + 1, 100), never())));
      expect(fault).toMatchObject({ code: 'sink_full', kind: 'stop', detail: 'ENOSPC' });
      await again.close();
    }
    expect((await bed.sink().probe(never())).map(({ severity }) => severity)).toContain('warning');
    await rm(join(bed.root, 'filler'));
    const next = bed.sink();
    expect(kinds(await next.write(makeBatch(1, written + 100), never()))).toBe('d'.repeat(written) + 'w'.repeat(100));
    await next.close();
    expect(await bed.sequences()).toEqual(Array.from({ length: written + 100 }, (_, i) => i + 1));
    await first.close();
  });

  /** Answers how many records are in. */
  async function writeUntilFull(bed: Bed): Promise<number> {
    const sink = bed.sink();
    for (let written = 0; ; written += 100) {
      const batch = makeBatch(written + 1, 100);
      try {
        await sink.write(batch, never());
      } catch (error) {
        expect(error).toMatchObject({ code: 'sink_full', detail: 'ENOSPC' });
        await expect(sink.write(batch, never()), 'the same sink, too').rejects.toMatchObject({ code: 'sink_full' });
        await sink.close();
        return written;
      }
    }
  }

  test('mounted read-only stops with sink_denied', async () => {
    const bed = bedAt(other!);
    const sink = bed.sink();
    await sink.write(makeBatch(1, 10), never());
    await sink.close();
    shell('mount -o remount,ro "$0"', other!);
    expect(await faultOf(bed.sink().open(never()))).toMatchObject({ code: 'sink_denied', detail: 'EROFS' });
    const findings = await bed.sink().probe(never());
    expect(findings.find(({ severity }) => severity === 'error')?.message).toBe('The directory is not writable (EROFS).');
    shell('mount -o remount,rw "$0"', other!);
    const next = bed.sink();
    expect(kinds(await next.write(makeBatch(1, 11), never()))).toBe('d'.repeat(10) + 'w');
    await next.close();
  });
});

test('a directory without permission stops with sink_denied', async () => {
  const bed = bedAt(await tempDir());
  await mkdir(bed.directory);
  await chmod(bed.root, 0o755);
  await chmod(bed.directory, 0o555);
  await asNobody(async () => {
    expect(await faultOf(bed.sink().open(never()))).toMatchObject({ code: 'sink_denied', detail: 'EACCES' });
  });
  await chmod(bed.directory, 0o755);
});

/** Permissions do not bind root. */
async function asNobody(work: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return await work();
  process.seteuid?.(65_534);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

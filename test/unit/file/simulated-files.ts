import * as real from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Files } from '../../../sinks/disk/folders.ts';

/** Numbers from 0 to below 1, the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Decides, before each call to the file system, when and whether it happens. */
export interface Gate {
  /** Resolves when the call may go on; never resolves for a process that has died. */
  enter(call: string): Promise<void>;
  leave(): void;
  /** Asked for a write of `bytes`: how many of them still go in before the process dies; null: it lives. */
  diesWithin?(bytes: number): number | null;
}

/** `blind`: a writer does not see the claims of others. `no_sync`: what is synced is not kept either. */
export type Flaw = 'blind' | 'no_sync';

/** The file system behind a gate. Handles left open by those who died are closed by `closeAll`. */
export class SimulatedFiles {
  readonly #disk: Disk;
  readonly #handles = new Set<FileHandle>();

  readonly #flaw: Flaw | undefined;

  constructor(disk: Disk, flaw?: Flaw) {
    this.#disk = disk;
    this.#flaw = flaw;
  }

  of(gate: Gate): Files {
    const step = async <T>(call: string, work: () => Promise<T>): Promise<T> => {
      await gate.enter(call);
      try {
        return await work();
      } finally {
        gate.leave();
      }
    };
    const gated = <A extends unknown[], R>(call: string, work: (...args: A) => Promise<R>) => {
      return (...args: A) => step(call, () => work(...args));
    };
    return {
      ...(real as unknown as Files),
      mkdir: gated('mkdir', real.mkdir as (...args: unknown[]) => Promise<undefined>),
      readdir: gated('readdir', real.readdir as (...args: unknown[]) => Promise<string[]>),
      stat: gated('stat', real.stat as (...args: unknown[]) => Promise<unknown>),
      lstat: gated('lstat', async (path: string) => {
        const isHidden = this.#flaw === 'blind' && path.endsWith('.claim');
        return await real.lstat(isHidden ? `${path}.hidden` : path);
      }),
      realpath: gated('realpath', real.realpath as (...args: unknown[]) => Promise<string>),
      rename: gated('rename', (from: string, to: string) => this.#disk.rename(from, to)),
      unlink: gated('unlink', (path: string) => this.#disk.unlink(path)),
      open: gated('open', async (path: string, flags: number, mode?: number) => {
        const isNew = (flags & real.constants.O_CREAT) !== 0;
        const handle = await real.open(path, flags, mode);
        this.#handles.add(handle);
        if (isNew) await this.#disk.created(path, handle);
        return this.#gatedHandle(path, handle, step, gate);
      }),
    } as Files;
  }

  async closeAll(): Promise<void> {
    for (const handle of this.#handles) await handle.close().catch(() => undefined);
  }

  #gatedHandle(
    path: string,
    handle: FileHandle,
    step: <T>(call: string, work: () => Promise<T>) => Promise<T>,
    gate: Gate,
  ): FileHandle {
    const disk = this.#disk;
    const calls = {
      write: async (bytes: Uint8Array, offset: number, length: number) => {
        await gate.enter('write');
        const torn = gate.diesWithin?.(length) ?? null;
        if (torn === null) {
          try {
            return await handle.write(bytes, offset, length);
          } finally {
            gate.leave();
          }
        }
        await handle.write(bytes, offset, torn);
        gate.leave();
        return await new Promise<never>(() => undefined);
      },
      read: (...args: [Buffer, number, number, number]) => step('read', () => handle.read(...args)),
      readFile: () => step('readFile', () => handle.readFile()),
      stat: () => step('fstat', () => handle.stat()),
      truncate: (length: number) => step('truncate', () => handle.truncate(length)),
      sync: () => step('sync', () => handle.sync().then(() => disk.synced(path))),
      datasync: () => step('datasync', () => handle.datasync().then(() => disk.synced(path, handle))),
      close: () => step('close', () => handle.close()),
    };
    return calls as unknown as FileHandle;
  }
}

/** What the disk would still have after a loss of power. */
export interface Disk {
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  created(path: string, handle: FileHandle): Promise<void>;
  /** A file, or without a handle a folder. */
  synced(path: string, handle?: FileHandle): Promise<void>;
}

/** Keeps everything. */
export const safeDisk: Disk = {
  rename: (from, to) => real.rename(from, to),
  unlink: (path) => real.unlink(path),
  created: () => Promise.resolve(),
  synced: () => Promise.resolve(),
};

/** Forgets, when power is lost, any part of what was not synced: bytes of files, and names made, renamed and removed. */
export class ForgetfulDisk implements Disk {
  readonly #spare: string;
  readonly #synced = new Map<number, number>();
  #undo: { readonly folder: string; readonly undo: () => Promise<void> }[] = [];
  #spares = 0;

  readonly #flaw: Flaw | undefined;

  /** `spare`: a folder on the same file system. */
  constructor(spare: string, flaw?: Flaw) {
    this.#spare = spare;
    this.#flaw = flaw;
  }

  async rename(from: string, to: string): Promise<void> {
    const spare = await this.#keep(to);
    await real.rename(from, to);
    this.#remember(to, async () => {
      await real.rename(to, from);
      if (spare !== null) await real.link(spare, to);
    });
  }

  async unlink(path: string): Promise<void> {
    const spare = await this.#keep(path);
    await real.unlink(path);
    this.#remember(path, async () => {
      if (spare !== null) await real.link(spare, path);
    });
  }

  async created(path: string, handle: FileHandle): Promise<void> {
    this.#synced.set((await handle.stat()).ino, 0);
    this.#remember(path, () => real.unlink(path));
  }

  async synced(path: string, handle?: FileHandle): Promise<void> {
    if (this.#flaw === 'no_sync') return;
    if (handle === undefined) {
      this.#undo = this.#undo.filter(({ folder }) => folder !== path);
      return;
    }
    const { ino, size } = await handle.stat();
    this.#synced.set(ino, size);
  }

  async losePower(folders: readonly string[], random: () => number): Promise<void> {
    for (const { undo } of this.#undo.reverse()) if (random() < 0.5) await undo().catch(() => undefined);
    this.#undo = [];
    for (const folder of folders) {
      for (const name of await real.readdir(folder)) await this.#loseBytes(`${folder}/${name}`, random);
    }
  }

  async #loseBytes(path: string, random: () => number): Promise<void> {
    const { ino, size } = await real.stat(path);
    const synced = this.#synced.get(ino);
    if (synced === undefined || size <= synced || random() < 0.3) return;
    const kept = synced + Math.floor(random() * (size - synced + 1));
    await real.truncate(path, kept);
    // Blocks that were given to the file but not written to read as zeros.
    if (random() < 0.5) await real.truncate(path, size);
  }

  async #keep(path: string): Promise<string | null> {
    const spare = `${this.#spare}/${++this.#spares}`;
    return await real.link(path, spare).then(
      () => spare,
      () => null,
    );
  }

  #remember(path: string, undo: () => Promise<void>): void {
    this.#undo.push({ folder: dirname(path), undo });
  }
}

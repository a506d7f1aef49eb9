import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import { asFault } from '../disk/faults.ts';
import { probeDirectory } from '../disk/probe.ts';
import { unlessAborted } from '../disk/unless-aborted.ts';
import type { Finding, Sink, SinkCapabilities, SinkContext } from '../sink.ts';
import type { SpoolConfig } from './config.ts';
import { makeFolders, sweepLeftovers } from './folders.ts';
import { newPackCipher, readKeys } from './keys.ts';
import type { Keys } from './keys.ts';
import { encodePack, entryOf, TURN_RECORDS } from './pack.ts';
import type { Entry } from './pack.ts';
import { priorityOf } from './priority.ts';
import { probeContent } from './probe.ts';
import { SpoolStore } from './store.ts';

const BATCH_RECORDS_MAX = 10_000;
/** How often a writer that another one overtook looks again before it gives the batch back. */
const BEHIND_ATTEMPTS_MAX = 100;
/** How long a close waits for a file system that hangs. */
const CLOSE_WAIT_MS = 10_000;

const WRITTEN: Outcome = { kind: 'written' };
const DUPLICATE: Outcome = { kind: 'duplicate' };
const TOO_LARGE: Outcome = { kind: 'rejected', code: 'too_large' };

export function createSpoolSink(config: SpoolConfig, context: SinkContext): Sink {
  return new SpoolSink(config, context);
}

class SpoolSink implements Sink {
  readonly capabilities: SinkCapabilities = {
    keys: ['stream_sequence'],
    transactional: false,
    maxBatchRecords: BATCH_RECORDS_MAX,
  };
  readonly #config: SpoolConfig;
  readonly #context: SinkContext;
  #keys: Keys | null | undefined;
  #store: SpoolStore | null = null;
  /** What an abort left on its way. */
  #busy: Promise<unknown> = Promise.resolve();

  constructor(config: SpoolConfig, context: SinkContext) {
    this.#config = config;
    this.#context = context;
  }

  async open(signal: AbortSignal): Promise<void> {
    await this.#alone(signal, async () => void (await this.#opened()));
  }

  async write(batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]> {
    signal.throwIfAborted();
    if (batch.length === 0) return [];
    return await this.#alone(signal, async () => this.#writeInto(await this.#opened(), batch, signal));
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    signal.throwIfAborted();
    readKeys(this.#config, this.#context.secret);
    try {
      const place = { root: this.#context.dataRoot, directory: this.#config.directory };
      return await probeDirectory(place, () => probeContent(place, this.#config));
    } catch (error) {
      throw asFault(error);
    }
  }

  async close(): Promise<void> {
    const closing = this.#busy.catch(() => undefined).then(() => this.#store?.close());
    await Promise.race([closing, sleep(CLOSE_WAIT_MS, undefined, { ref: false })]);
    this.#store = null;
  }

  async #alone<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const working = this.#busy.catch(() => undefined).then(work);
    this.#busy = working;
    try {
      return await unlessAborted(working, signal);
    } catch (error) {
      throw asFault(error);
    }
  }

  async #opened(): Promise<SpoolStore> {
    if (this.#store !== null) return this.#store;
    this.#keys = readKeys(this.#config, this.#context.secret);
    const { dataRoot: root, begun, log } = this.#context;
    const folders = await makeFolders({ root, directory: this.#config.directory, begun });
    await sweepLeftovers(folders);
    this.#store = await SpoolStore.open(folders, log);
    return this.#store;
  }

  async #writeInto(store: SpoolStore, batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]> {
    const written = new Set<ReplayRecord>();
    let isFresh = false;
    for (let attempt = 0; attempt < BEHIND_ATTEMPTS_MAX; attempt++) {
      signal.throwIfAborted();
      const sorted = await this.#sortOut(store, batch, written);
      // What seems to be there, or to leave no room, may have been drained meanwhile.
      if (!isFresh && (sorted.seemsKnown || sorted.left > 0)) {
        await store.refresh();
        isFresh = true;
        continue;
      }
      if (await this.#commit(store, sorted.fitting, written)) {
        await store.sync();
        if (sorted.left > 0) throw this.#fullFault(store);
        return batch.map((record) => (written.has(record) ? WRITTEN : sorted.outcomes.get(record)!));
      }
      await store.refresh();
      isFresh = true;
    }
    throw new ReplayFault('sink_busy', 'other writers keep the spool busy');
  }

  async #sortOut(store: SpoolStore, batch: readonly ReplayRecord[], written: ReadonlySet<ReplayRecord>): Promise<Sorted> {
    const { max_records: recordsMax, max_bytes: bytesMax } = this.#config;
    const outcomes = new Map<ReplayRecord, Outcome>();
    const fitting: Entry[] = [];
    let [records, bytes, left, seemsKnown] = [store.records, store.bytes, 0, false];
    for (const [i, record] of batch.entries()) {
      if ((i + 1) % TURN_RECORDS === 0) await setImmediate();
      if (written.has(record)) continue;
      const { stream, incarnation, sequence } = record;
      if (store.has({ stream, incarnation, sequence: Number(sequence) })) {
        outcomes.set(record, DUPLICATE);
        seemsKnown = true;
        continue;
      }
      const entry = entryOf(record, this.#keys !== null);
      if (entry.bytes > bytesMax) outcomes.set(record, TOO_LARGE);
      else if (left > 0 || records === recordsMax || bytes + entry.bytes > bytesMax) left++;
      else {
        fitting.push(entry);
        records++;
        bytes += entry.bytes;
      }
    }
    return { outcomes, fitting, left, seemsKnown };
  }

  /** One pack a priority. False when others committed in between: what is left is to be sorted out anew. */
  async #commit(store: SpoolStore, entries: readonly Entry[], written: Set<ReplayRecord>): Promise<boolean> {
    for (const [priority, some] of byPriority(entries, this.#config)) {
      const cipher = this.#keys == null ? null : newPackCipher(this.#keys);
      if ((await store.commit(await encodePack(some, priority, cipher))) === 'behind') return false;
      for (const { record } of some) written.add(record);
    }
    return true;
  }

  #fullFault({ records, bytes }: SpoolStore): ReplayFault {
    const { max_records: recordsMax, max_bytes: bytesMax } = this.#config;
    return new ReplayFault(
      'sink_full',
      `the spool holds ${records} of ${recordsMax} records, ${bytes} of ${bytesMax} bytes; drain it`,
    );
  }
}

interface Sorted {
  readonly outcomes: Map<ReplayRecord, Outcome>;
  readonly fitting: readonly Entry[];
  /** Records for which there is no room. */
  readonly left: number;
  readonly seemsKnown: boolean;
}

/** The most urgent first. */
function byPriority(entries: readonly Entry[], config: SpoolConfig): [priority: number, entries: Entry[]][] {
  const groups = new Map<number, Entry[]>();
  for (const entry of entries) {
    const priority = priorityOf(entry.record, config);
    const group = groups.get(priority);
    if (group === undefined) groups.set(priority, [entry]);
    else group.push(entry);
  }
  return [...groups].sort(([a], [b]) => a - b);
}

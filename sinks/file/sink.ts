import * as realFiles from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import { asFault } from '../disk/faults.ts';
import type { Files } from '../disk/folders.ts';
import { probeDirectory } from '../disk/probe.ts';
import { unlessAborted } from '../disk/unless-aborted.ts';
import type { Finding, Sink, SinkCapabilities, SinkContext } from '../sink.ts';
import { Fenced } from './claim.ts';
import type { FileConfig } from './config.ts';
import { openDirectory } from './directory.ts';
import type { Directory } from './directory.ts';
import { openEpoch } from './epoch.ts';
import type { Epoch } from './epoch.ts';
import { formatLines } from './format.ts';
import { probeContent } from './probe.ts';
import { sortOut } from './sort-out.ts';

const BATCH_RECORDS_MAX = 10_000;
/** How often a writer that another one fenced claims again before it gives the batch back. */
const FENCED_ATTEMPTS_MAX = 12;
const FENCED_PAUSE_MS_FIRST = 20;
const FENCED_PAUSE_MS_MAX = 1_000;

/** How long a close waits for a file system that hangs. */
const CLOSE_WAIT_MS = 10_000;

const compress = promisify(gzip);

export function createFileSink(config: FileConfig, context: SinkContext, files: Files = realFiles): Sink {
  return new FileSink(config, context, files);
}

class FileSink implements Sink {
  readonly capabilities: SinkCapabilities;
  readonly #config: FileConfig;
  readonly #context: SinkContext;
  readonly #files: Files;
  #epoch: Epoch | null = null;
  #isBusy = false;

  constructor(config: FileConfig, context: SinkContext, files: Files) {
    this.#config = config;
    this.#context = context;
    this.#files = files;
    this.capabilities = {
      keys: ['stream_sequence'],
      transactional: true,
      maxBatchRecords: BATCH_RECORDS_MAX,
      ...(config.max_record_bytes === null ? {} : { maxRecordBytes: config.max_record_bytes }),
    };
  }

  async open(signal: AbortSignal): Promise<void> {
    await this.#alone(signal, async () => void (await this.#currentEpoch(signal)));
  }

  async write(batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]> {
    if (batch.length === 0) return [];
    return await this.#alone(signal, async () => this.#writeInto(await this.#currentEpoch(signal), batch, signal));
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    signal.throwIfAborted();
    try {
      const place = { root: this.#context.dataRoot, directory: this.#config.directory };
      return await probeDirectory(place, async (path) => [await probeContent(path)]);
    } catch (error) {
      throw asFault(error);
    }
  }

  async close(): Promise<void> {
    const epoch = this.#epoch;
    this.#epoch = null;
    if (epoch !== null) await Promise.race([epoch.close(), sleep(CLOSE_WAIT_MS, undefined, { ref: false })]);
  }

  /** Runs one attempt after the other until none is fenced. */
  async #alone<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    if (this.#isBusy) throw new Error('a sink takes one call at a time');
    this.#isBusy = true;
    try {
      for (let attempts = 1; ; attempts++) {
        signal.throwIfAborted();
        try {
          return await attempt();
        } catch (error) {
          if (!(error instanceof Fenced)) throw asFault(error);
          if (attempts === FENCED_ATTEMPTS_MAX) throw new ReplayFault('sink_busy', 'another writer keeps the directory');
        }
        await sleep(pauseMs(attempts), undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    } finally {
      this.#isBusy = false;
    }
  }

  async #currentEpoch(signal: AbortSignal): Promise<Epoch> {
    if (this.#epoch?.isClean === false) {
      await unlessAborted(this.#epoch.release(), signal);
      this.#epoch = null;
    }
    if (this.#epoch === null) {
      const directory = await this.#openDirectory();
      const rules = { maxSegmentBytes: this.#config.max_segment_bytes, compression: this.#config.compression };
      const opening = openEpoch(directory, rules, signal);
      this.#epoch = await unlessAborted(opening, signal).catch((error: unknown) => {
        opening.then(
          (late) => late.close(),
          () => undefined,
        );
        throw error;
      });
    }
    return this.#epoch;
  }

  #openDirectory(): Promise<Directory> {
    const { dataRoot, begun } = this.#context;
    const place = { root: dataRoot, directory: this.#config.directory, begun };
    return openDirectory(place, { files: this.#files, log: this.#context.log });
  }

  async #writeInto(epoch: Epoch, batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]> {
    const { require_json: requireJson, max_record_bytes: maxRecordBytes } = this.#config;
    const { outcomes, fresh, sequences } = sortOut(batch, epoch.index, { requireJson, maxRecordBytes });
    if (fresh.length === 0) {
      await epoch.assertSameDirectory();
      return outcomes;
    }
    const lines = formatLines(fresh, this.#context);
    const bytes = this.#config.compression === 'gzip' ? await compress(lines) : lines;
    signal.throwIfAborted();
    await unlessAborted(epoch.commit(bytes, sequences), signal);
    if (epoch.isLong) await this.close();
    return outcomes;
  }
}

function pauseMs(attempts: number): number {
  return Math.random() * Math.min(FENCED_PAUSE_MS_MAX, FENCED_PAUSE_MS_FIRST * 2 ** attempts);
}

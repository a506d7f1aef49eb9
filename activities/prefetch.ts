import type { Pulled, PullRequest, Source } from '../jetstream/source.ts';

/** A pull that nobody asks for within this time is forgotten; the durable is put back when its batch is asked for after all. */
const keptMsMax = 10_000;
/** All pulls together may bring this many bytes. */
const bytesMax = 64 * 1_048_576;
/** Runs whose place is remembered; beyond it the oldest is forgotten, and its next batch is not pulled ahead. */
const runsMax = 1_000;

/** Where a run stands: the consumer sequence that the next record of its durable has. */
export interface Place {
  readonly run: string;
  readonly durable: string;
  readonly consumerSequence: number;
}

/**
 * Pulls of next batches, begun while the last one is written and Temporal schedules the next step. They settle nothing: a pull
 * that is lost with its worker, or that another worker does not know of, shows in the durable's own count, and the durable is
 * put back.
 */
export interface Prefetch {
  /** Begins the next pull of a run whose last batch this worker delivered too; otherwise only remembers where the run stands. */
  begin(place: Place, delivered: number, next: PullRequest | null): void;
  /** The pull that was begun for just this place; null when there is none, or when it asked for more than is wanted now. */
  take(place: Place, wanted: PullRequest, signal: AbortSignal): Promise<Pulled | null>;
  drop(run: string, durable: string): void;
}

interface Begun {
  readonly consumerSequence: number;
  readonly request: PullRequest;
  readonly pulled: Promise<Pulled | null>;
  readonly controller: AbortController;
  readonly timer: NodeJS.Timeout;
}

export function createPrefetch(source: Pick<Source, 'pull'>): Prefetch {
  const begun = new Map<string, Begun>();
  const nextOf = new Map<string, number>();
  let bytes = 0;

  function remove(key: string): Begun | undefined {
    const found = begun.get(key);
    if (found === undefined) return undefined;
    clearTimeout(found.timer);
    begun.delete(key);
    bytes -= found.request.maxBytes;
    return found;
  }

  function drop(key: string): void {
    remove(key)?.controller.abort();
  }

  function remember(key: string, next: number): void {
    nextOf.delete(key);
    nextOf.set(key, next);
    if (nextOf.size > runsMax) nextOf.delete(nextOf.keys().next().value!);
  }

  return {
    begin(place, delivered, next) {
      const key = keyOf(place.run, place.durable);
      const here = nextOf.get(key) === place.consumerSequence;
      const consumerSequence = place.consumerSequence + delivered;
      remember(key, consumerSequence);
      if (!here || next === null || begun.has(key) || bytes + next.maxBytes > bytesMax) return;
      const controller = new AbortController();
      // What goes wrong here is found by the step that asks for the batch, and told there.
      const pulled = source.pull(next, controller.signal).catch(() => null);
      const timer = setTimeout(() => drop(key), keptMsMax);
      timer.unref();
      bytes += next.maxBytes;
      begun.set(key, { consumerSequence, request: next, pulled, controller, timer });
    },
    async take(place, wanted, signal) {
      const found = remove(keyOf(place.run, place.durable));
      if (found === undefined) return null;
      const abort = (): void => found.controller.abort();
      if (found.consumerSequence !== place.consumerSequence || !covers(wanted, found.request)) {
        abort();
        return null;
      }
      signal.addEventListener('abort', abort, { once: true });
      const pulled = await found.pulled;
      signal.removeEventListener('abort', abort);
      signal.throwIfAborted();
      return pulled;
    },
    drop: (run, durable) => drop(keyOf(run, durable)),
  };
}

function keyOf(run: string, durable: string): string {
  return JSON.stringify([run, durable]);
}

function covers(wanted: PullRequest, asked: PullRequest): boolean {
  return (
    wanted.stream === asked.stream &&
    wanted.incarnation === asked.incarnation &&
    wanted.waitMs === asked.waitMs &&
    wanted.maxRecords >= asked.maxRecords &&
    wanted.maxBytes >= asked.maxBytes
  );
}

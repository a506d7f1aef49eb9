import { setMaxListeners } from 'node:events';
import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import type { Finding, Sink, SinkContext } from '../sink.ts';
import type { FanOutConfig } from './config.ts';
import { healthOf, isLeftOut, takeProbe } from './health.ts';
import type { Health } from './health.ts';

/** null: an optional child that failed, was too slow, or is left out. */
export type ChildOutcomes = readonly Outcome[] | null;

/** One child: its sink, which is made anew after each failure, and its time limit. */
export class Child {
  readonly name: string;
  readonly required: boolean;
  readonly #config: FanOutConfig['sinks'][string];
  readonly #context: SinkContext;
  readonly #health: Health;
  #sink: Sink | null = null;
  #probing: AbortController | null = null;

  constructor(
    name: string,
    config: FanOutConfig['sinks'][string],
    { required, context }: { required: boolean; context: SinkContext },
  ) {
    this.name = name;
    this.required = required;
    this.#config = config;
    this.#context = context;
    this.#health = healthOf(`${context.plan} ${context.run}`, name);
  }

  async open(signal: AbortSignal): Promise<void> {
    if (!this.required) return;
    try {
      await this.#within(signal, async (own) => void (await this.#opened(own)));
    } catch (error) {
      throw signal.aborted ? error : this.#named(error);
    }
  }

  /** Throws for a required child only, with the name of the child in the fault. */
  async write(batch: readonly ReplayRecord[], signal: AbortSignal): Promise<ChildOutcomes> {
    if (batch.length === 0) return [];
    if (!this.required && isLeftOut(this.#health)) {
      this.#probeInBackground();
      return null;
    }
    try {
      const outcomes = await this.#within(signal, async (own) => (await this.#opened(own)).write(batch, own));
      if (outcomes.length !== batch.length) throw new ReplayFault('unexpected', 'it did not answer for each record');
      this.#health.failures = 0;
      return outcomes;
    } catch (error) {
      this.#discard();
      if (signal.aborted) throw error;
      const fault = this.#named(error);
      if (this.required) throw fault;
      this.#health.failures++;
      const { failures } = this.#health;
      // One line a change of state: when it begins to fail, and when it is left out.
      if (failures === 1 || isLeftOut(this.#health)) {
        this.#context.log.warn(
          { child: this.name, code: fault.code, failures },
          'an optional child of a fan-out did not take a batch',
        );
      }
      return null;
    }
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    const sink = await this.#build();
    try {
      const findings = await sink.probe(signal);
      return findings.map((finding) => ({ ...finding, message: `${this.name}: ${finding.message}` }));
    } catch (error) {
      throw this.#named(error);
    } finally {
      await sink.close();
    }
  }

  async close(): Promise<void> {
    this.#probing?.abort();
    const sink = this.#sink;
    this.#sink = null;
    await sink?.close();
  }

  async #opened(signal: AbortSignal): Promise<Sink> {
    if (this.#sink !== null) return this.#sink;
    const sink = await this.#build();
    try {
      await sink.open(signal);
    } catch (error) {
      await sink.close().catch(() => undefined);
      throw error;
    }
    this.#sink = sink;
    return sink;
  }

  /** What an optional child never had may have to be made by a later batch. */
  #build(): Promise<Sink> {
    const { child, begun } = this.#context;
    if (child === undefined) throw new ReplayFault('unexpected', 'this worker hands a fan-out no children');
    return child(this.#config.sink, { begun: begun && this.required });
  }

  /** A child that hangs is not waited for: what is on its way may still come in, and is a duplicate then. */
  async #within<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { timeout_ms: timeoutMs } = this.#config;
    const own = new AbortController();
    setMaxListeners(0, own.signal);
    const late = new ReplayFault('sink_unreachable', `it did not answer within ${timeoutMs} ms`);
    let stop!: (reason: Error) => void;
    const stopped = new Promise<never>((_, reject) => {
      stop = (reason) => {
        own.abort(reason);
        reject(reason);
      };
    });
    const abort = () => stop(signal.reason as Error);
    const timer = setTimeout(() => stop(late), timeoutMs);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      const working = work(own.signal);
      working.catch(() => undefined);
      return await Promise.race([working, stopped]);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  #discard(): void {
    const sink = this.#sink;
    this.#sink = null;
    sink?.close().catch(() => undefined);
  }

  #named(error: unknown): ReplayFault {
    const fault = error instanceof ReplayFault ? error : new ReplayFault('unexpected', undefined, { cause: error });
    return new ReplayFault(fault.code, `child "${this.name}"${fault.detail === undefined ? '' : `: ${fault.detail}`}`, {
      cause: fault.cause,
    });
  }

  /** Found well, it takes part in the next batch again. */
  #probeInBackground(): void {
    if (this.#probing !== null || !takeProbe(this.#health, Date.now())) return;
    const probing = new AbortController();
    this.#probing = probing;
    this.#within(probing.signal, (own) => this.probe(own))
      .then((findings) => {
        if (findings.some(({ severity }) => severity === 'error')) return;
        this.#health.failures = 0;
        this.#context.log.info({ child: this.name }, 'an optional child of a fan-out takes part again');
      })
      .catch(() => undefined)
      .finally(() => {
        this.#probing = null;
      });
  }
}

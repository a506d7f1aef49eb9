import type { BorrowedSink, SinkProvider, SinkUse } from '../activities/deps.ts';
import { ReplayFault } from '../core/errors.ts';
import type { ReplayTarget } from '../core/target.ts';
import { findSinkSpec } from '../sinks/registry.ts';
import { hostProblems } from './allowed-hosts.ts';
import type { Sink, SinkContext } from '../sinks/sink.ts';

/** An idle sink is closed after this long, so that a paused or finished run holds nothing open. Milliseconds. */
const idleMsMax = 30_000;

interface Pooled {
  readonly sink: Sink;
  timer: NodeJS.Timeout | undefined;
}

export interface SinkPool extends SinkProvider {
  /** A sink that was built but not opened. */
  build(use: SinkUse): Promise<Sink>;
  close(): Promise<void>;
}

/** Keeps the sink of each run open between its batches; hands one instance to one caller at a time. */
export function createSinkPool(
  context: Omit<SinkContext, 'plan' | 'run' | 'begun' | 'idempotency' | 'child'>,
  allowedHosts: readonly string[] | null = null,
): SinkPool {
  const idle = new Map<string, Pooled>();

  async function build({ target, plan, run, begun }: SinkUse): Promise<Sink> {
    const spec = findSinkSpec(target.sink.type);
    if (spec === undefined) throw new ReplayFault('unexpected', `this worker has no sink "${target.sink.type}"`);
    // Looked at again: what one worker described another one may have to write.
    const [problem] = hostProblems(target.sink, allowedHosts);
    if (problem !== undefined) throw new ReplayFault('sink_denied', 'the host of the target is not in REPLAY_ALLOWED_HOSTS');
    const create = await spec.load();
    return create(target.sink as never, {
      ...context,
      plan,
      run,
      begun,
      idempotency: target.idempotency,
      child: (sink, own) => build({ target: { ...target, sink: sink as ReplayTarget['sink'] }, plan, run, begun: own.begun }),
    });
  }

  function take(key: string): Sink | undefined {
    const pooled = idle.get(key);
    clearTimeout(pooled?.timer);
    idle.delete(key);
    return pooled?.sink;
  }

  async function put(key: string, sink: Sink): Promise<void> {
    if (idle.has(key)) return await sink.close();
    const timer = setTimeout(() => void take(key)?.close(), idleMsMax);
    timer.unref();
    idle.set(key, { sink, timer });
  }

  async function open(use: SinkUse, signal: AbortSignal): Promise<Sink> {
    const sink = await build(use);
    try {
      await sink.open(signal);
      return sink;
    } catch (error) {
      await closeQuietly(sink);
      throw error;
    }
  }

  return {
    build,
    async borrow(use, signal): Promise<BorrowedSink> {
      const key = JSON.stringify([use.run, use.plan, use.target]);
      const sink = take(key) ?? (await open(use, signal));
      return { sink, giveBack: (state) => (state === 'good' ? put(key, sink) : closeQuietly(sink)) };
    },
    async close() {
      await Promise.all([...idle.keys()].map((key) => take(key)!.close()));
    },
  };
}

/** The first error wins: closing a sink that just failed must not hide why. */
async function closeQuietly(sink: Sink): Promise<void> {
  await sink.close().catch(() => undefined);
}

import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { Deps, Spools } from '../../activities/deps.ts';
import type { Source } from '../../jetstream/source.ts';

/** The named points at which a worker may be lost; docs/delivery.md is proven at each. */
export const crashPoints = [
  'before_pull',
  'after_pull',
  'in_write',
  'after_write',
  'during_dead_letter',
  'after_dead_letter',
  'before_ack',
  'after_ack_sent',
  'after_ack',
  'ack_in_flight_during_delivery',
  'between_delete_and_create',
  'after_put_back',
  'first_step_after_continue_as_new',
  'before_close',
  'after_close',
  'before_report',
  'in_report',
  'after_report',
] as const;
/** Those that only the drain of a spool has. */
type DrainPoint = 'before_take' | 'after_take' | 'before_remove' | 'in_remove' | 'after_remove';
export type CrashPoint = (typeof crashPoints)[number] | DrainPoint;

/** The named points of a drain, in the order of a batch. */
export const drainCrashPoints = [
  'before_take',
  'after_take',
  'in_write',
  'after_write',
  'during_dead_letter',
  'after_dead_letter',
  'before_remove',
  'in_remove',
  'after_remove',
  'before_report',
  'after_report',
] as const satisfies readonly CrashPoint[];

export interface Crash {
  readonly point: CrashPoint;
  /** At the n-th time that the point is reached, from 1. */
  readonly at: number;
  /** How far into a step that has begun, milliseconds. */
  readonly delayMs: number;
  /** The n-th ACK is kept back as if the server had forgotten it, so that the next delivery puts the durable back. */
  readonly deferAck?: number;
}

/** Never returns: the process is gone, or the caller's own fault has been done to the world. */
export type Die = () => Promise<never>;

/** Wraps what the durable steps act on, so that `die` is called at the named point. */
export function crashingDeps(deps: Deps, crash: Crash, die: Die): Deps {
  let reached = 0;
  const here = async (point: CrashPoint): Promise<void> => {
    if (point === crash.point && ++reached === crash.at) await die();
  };
  /** Dies while the step goes on. */
  const within = async <T>(point: CrashPoint, effect: Promise<T>): Promise<T> => {
    if (point !== crash.point || ++reached !== crash.at) return await effect;
    effect.catch(() => undefined);
    await sleep(crash.delayMs);
    return await die();
  };
  return {
    ...deps,
    source: crashingSource(deps.source, crash, { here, within, die }),
    spools: crashingSpools(deps.spools, here),
    topics: {
      ...deps.topics,
      async read(partition, request, signal) {
        await here('before_pull');
        const part = await deps.topics.read(partition, request, signal);
        await here('after_pull');
        return part;
      },
    },
    sinks: {
      async borrow(use, signal) {
        const borrowed = await deps.sinks.borrow(use, signal);
        return {
          ...borrowed,
          sink: {
            capabilities: borrowed.sink.capabilities,
            open: (open) => borrowed.sink.open(open),
            probe: (probe) => borrowed.sink.probe(probe),
            close: () => borrowed.sink.close(),
            async write(batch, abort) {
              const outcomes = await within('in_write', borrowed.sink.write(batch, abort));
              await here('after_write');
              return outcomes;
            },
          },
        };
      },
    },
    reports: {
      async write(file, content) {
        await here('before_report');
        await within('in_report', deps.reports.write(file, content));
        await here('after_report');
      },
    },
  };
}

function crashingSpools(spools: Spools, here: Hooks['here']): Spools {
  return {
    ...spools,
    async open(sink) {
      const drain = await spools.open(sink);
      return {
        ...drain,
        async take(recordsMax, signal) {
          await here('before_take');
          const taken = await drain.take(recordsMax, signal);
          await here('after_take');
          return taken;
        },
        async remove(packs) {
          await here('before_remove');
          await drain.remove(packs.slice(0, 1));
          await here('in_remove');
          await drain.remove(packs);
          await here('after_remove');
        },
      };
    },
  };
}

interface Hooks {
  readonly here: (point: CrashPoint) => Promise<void>;
  readonly within: <T>(point: CrashPoint, effect: Promise<T>) => Promise<T>;
  readonly die: Die;
}

function crashingSource(source: Source, crash: Crash, { here, within, die }: Hooks): Source {
  let acks = 0;
  /** Resolved when the next delivery pulls. */
  let onPull: () => void = () => undefined;
  let firstRun: string | undefined;
  /** Whether this step belongs to a later link of the run than the first step did. */
  const continued = (): boolean => {
    const run = Context.current().info.workflowExecution?.runId;
    firstRun ??= run;
    return run !== firstRun;
  };
  return {
    ...source,
    async readConsumer(stream, durable) {
      if (continued()) await here('first_step_after_continue_as_new');
      return await source.readConsumer(stream, durable);
    },
    async pull(request, signal) {
      await here('before_pull');
      const pulled = await source.pull(request, signal);
      onPull();
      await here('after_pull');
      return pulled;
    },
    async acknowledge(receipt, signal) {
      if (++acks === crash.deferAck) return 'deferred';
      await here('before_ack');
      if (crash.point === 'ack_in_flight_during_delivery' && acks === crash.at) {
        const pulls = new Promise<void>((resolve) => (onPull = resolve));
        await source.acknowledge(receipt, signal);
        await pulls;
        return await die();
      }
      const answer = await within('after_ack_sent', source.acknowledge(receipt, signal));
      await here('after_ack');
      return answer;
    },
    async publishDeadLetter(letter, signal) {
      await here('during_dead_letter');
      const answer = await source.publishDeadLetter(letter, signal);
      await here('after_dead_letter');
      return answer;
    },
    async putBack(spec, cursor) {
      if (crash.point === 'between_delete_and_create') {
        await source.deleteConsumer(spec.stream, spec.durable);
        await here('between_delete_and_create');
      }
      await source.putBack(spec, cursor);
      await here('after_put_back');
    },
    async deleteConsumer(stream, durable) {
      await here('before_close');
      await source.deleteConsumer(stream, durable);
      await here('after_close');
    },
  };
}

import type { Spools } from '../activities/deps.ts';
import { ReplayFault } from '../core/errors.ts';
import { findSinkSpec } from '../sinks/registry.ts';
import type { SinkContext } from '../sinks/sink.ts';

export function createSpools(context: Pick<SinkContext, 'dataRoot' | 'secret' | 'log'>): Spools {
  return {
    isSpool: (type) => findSinkSpec(type)?.loadDrain !== undefined,
    async open(sink) {
      const load = findSinkSpec(sink.type)?.loadDrain;
      if (load === undefined) throw new ReplayFault('unexpected', `this worker cannot drain "${sink.type}"`);
      return (await load())(sink as never, context);
    },
  };
}

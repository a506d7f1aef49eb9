import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Targets } from '../activities/deps.ts';
import type { Parsed } from '../core/problems.ts';
import { parseTarget, parseTargetBytes, type ReplayTarget } from '../core/target.ts';
import { DEFAULT_MODE, isCertified, modeOf } from '../sinks/certification.ts';
import { findSinkSpec, leavesOf, sinkSpecs, streamsWritten } from '../sinks/registry.ts';
import { hostProblems } from './allowed-hosts.ts';
import type { SinkPool } from './sink-pool.ts';

/** A name, not a path: it cannot lead out of the targets folder. */
const targetName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** Targets come with the request, or by name from the worker's targets folder. */
export function createTargets(folder: string, pool: SinkPool, allowedHosts: readonly string[] | null): Targets {
  return {
    async resolve(target) {
      const parsed = typeof target === 'string' ? await readNamed(folder, target) : parseTarget(target, sinkSpecs);
      const problems = parsed.ok ? hostProblems(parsed.value.sink, allowedHosts) : [];
      return problems.length > 0 ? { ok: false, problems } : parsed;
    },
    uncertified: (sink) => [sink, ...leavesOf(sink)].flatMap(uncertifiedOf)[0] ?? null,
    isLocal: (sink) => leavesOf(sink).some(({ type }) => findSinkSpec(type)?.local ?? false),
    streamsWritten,
    unopened: (use) => pool.build(use),
  };
}

function uncertifiedOf(sink: ReplayTarget['sink']): { type: string; mode: string }[] {
  const spec = findSinkSpec(sink.type);
  if (spec !== undefined && isCertified(spec, sink)) return [];
  return [{ type: sink.type, mode: spec === undefined ? DEFAULT_MODE : modeOf(spec, sink) }];
}

async function readNamed(folder: string, name: string): Promise<Parsed<ReplayTarget>> {
  if (!targetName.test(name))
    return refused(
      'expected a target document, or the name (letters, digits, _ and -) of a file in the targets folder of the worker',
    );
  try {
    return parseTargetBytes(await readFile(join(folder, `${name}.json`)), sinkSpecs);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      return refused(`no file "${name}.json" in the targets folder of the worker (REPLAY_TARGETS)`);
    }
    throw error;
  }
}

function refused(message: string): Parsed<ReplayTarget> {
  return { ok: false, problems: [{ path: 'target', message }] };
}

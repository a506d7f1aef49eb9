import type { DrainDescription, DrainRequest } from '../core/drain.ts';
import { parseDrainOptions } from '../core/drain-schema.ts';
import { ReplayFault } from '../core/errors.ts';
import type { Problem } from '../core/problems.ts';
import type { ReplayTarget } from '../core/target.ts';
import type { SpoolContent } from '../sinks/spool-drain.ts';
import type { Deps } from './deps.ts';
import { checkCertified, checkDeadLetter } from './describe-checks.ts';
import { step, type StepDeps } from './step.ts';

export type DescribedSpool =
  | { readonly kind: 'refused'; readonly problems: readonly Problem[]; readonly searchAttributes: boolean }
  | { readonly kind: 'described'; readonly description: DrainDescription };

/** What a drain would do, read-only: nothing is made, moved or claimed. What is wrong comes back as one list of problems. */
export function makeDescribeSpool(deps: StepDeps): (request: DrainRequest) => Promise<DescribedSpool> {
  return (request) => step(deps.faults, () => describeSpool(deps, request));
}

async function describeSpool(deps: Deps, request: DrainRequest): Promise<DescribedSpool> {
  const searchAttributes = await deps.runs.hasSearchAttributes();
  const [spool, target] = [await deps.targets.resolve(request.spool), await deps.targets.resolve(request.target)];
  const options = parseDrainOptions(request.drain);
  if (!spool.ok || !target.ok || !options.ok) {
    const problems = [
      ...(spool.ok ? [] : spool.problems.map((problem) => ({ ...problem, path: `spool: ${problem.path}` }))),
      ...(target.ok ? [] : target.problems),
      ...(options.ok ? [] : options.problems),
    ];
    return { kind: 'refused', problems, searchAttributes };
  }
  const problems = [
    ...checkSpool(deps, spool.value, target.value),
    ...checkCertified(deps, target.value),
    ...(await checkDeadLetter(deps, target.value)),
  ];
  if (problems.length > 0) return { kind: 'refused', problems, searchAttributes };
  const { sink } = spool.value;
  const content = await lookInto(deps, sink);
  if (content === null) {
    const message = "there is no spool in this directory, below the worker's data root";
    return { kind: 'refused', problems: [{ path: 'spool: sink.directory', message }], searchAttributes };
  }
  return {
    kind: 'described',
    description: {
      spool: sink,
      name: `spool:${String(sink['directory'])}`,
      target: target.value,
      options: options.value,
      records: content.records,
      bytes: content.bytes,
      cluster: await deps.runs.clusterId(),
      warnings: warningsOf(target.value, content),
      searchAttributes,
    },
  };
}

/** null when there is no spool. */
async function lookInto({ spools }: Deps, sink: ReplayTarget['sink']): Promise<SpoolContent | null> {
  try {
    return await (await spools.open(sink)).describe();
  } catch (error) {
    if (error instanceof ReplayFault && error.code === 'sink_missing') return null;
    throw error;
  }
}

function checkSpool({ spools }: Deps, { sink }: ReplayTarget, target: ReplayTarget): Problem[] {
  if (!spools.isSpool(sink.type)) {
    return [{ path: 'spool: sink.type', message: `a sink "${sink.type}" cannot be drained; expected "spool"` }];
  }
  const isSame = target.sink.type === sink.type && target.sink['directory'] === sink['directory'];
  return isSame ? [{ path: 'sink.directory', message: 'is the spool that is drained; expected another destination' }] : [];
}

function warningsOf(target: ReplayTarget, content: { readonly records: number; readonly setAside: number }): string[] {
  const warnings: string[] = [];
  if (content.records === 0) warnings.push('The spool is empty.');
  if (content.setAside > 0) warnings.push(`${content.setAside} damaged or foreign files will be set aside.`);
  if (target.dead_letter === null) {
    warnings.push('No dead letter is configured: the first record the sink refuses blocks the drain.');
  }
  return warnings;
}

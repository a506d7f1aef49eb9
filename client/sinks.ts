import { formatProblems } from '../core/problems.ts';
import { sinkPackagesOf } from '../platform/settings.ts';
import { loadSinkPackages } from '../sinks/packages.ts';
import { CommandFailure } from './failure.ts';

/** The sinks of the packages that REPLAY_SINKS names, for this process: before a target is read or a worker polls. */
export async function loadSinks(env: NodeJS.ProcessEnv): Promise<void> {
  const problems = await loadSinkPackages(sinkPackagesOf(env), process.cwd());
  if (problems.length > 0) throw new CommandFailure(`Settings:\n${formatProblems(problems)}`, 'refused');
}

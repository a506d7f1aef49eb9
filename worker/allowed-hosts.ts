import type { Problem } from '../core/problems.ts';
import type { ReplayTarget } from '../core/target.ts';
import { findSinkSpec, leavesOf } from '../sinks/registry.ts';
import type { SinkSpec } from '../sinks/registry.ts';

type HostsOf = Pick<SinkSpec, 'hosts'>;

/**
 * Hosts of a target that this worker may not reach. `allowed` is the setting REPLAY_ALLOWED_HOSTS; null: any. A target comes
 * from whoever may start workflows, and its secrets would go to the host that it names.
 */
export function hostProblems(
  sink: ReplayTarget['sink'],
  allowed: readonly string[] | null,
  specOf: (type: string) => HostsOf | undefined = findSinkSpec,
): Problem[] {
  if (allowed === null) return [];
  return leavesOf(sink)
    .flatMap((leaf) => specOf(leaf.type)?.hosts?.(leaf) ?? [])
    .filter((host) => !allowed.some((entry) => isAllowed(entry, host)))
    .map((host) => ({
      path: 'sink',
      message: `${JSON.stringify(host)} is not among the hosts that this worker may reach; add it to REPLAY_ALLOWED_HOSTS where the worker runs`,
    }));
}

/** `*.example.com` stands for every host below it, not for example.com itself. */
function isAllowed(entry: string, host: string): boolean {
  const [pattern, name] = [entry.toLowerCase(), host.toLowerCase()];
  return pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) && name.length > pattern.length - 1 : pattern === name;
}

import type { TestProject } from 'vitest/node';
import { startServers } from '../../scripts/servers/servers.ts';

/** One NATS and one Temporal server for all tests that need them: those of the environment, or our own for this run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers = await startServers();
  project.provide('natsUrl', servers.natsUrl);
  project.provide('temporalAddress', servers.temporalAddress);
  return () => servers.stop();
}

import type { TestProject } from 'vitest/node';
import { topicsNatsMinimum } from '../../scripts/servers/locate.ts';
import { startServers } from '../../scripts/servers/servers.ts';

/** Far below the server's own 4,096, so that runs of ordinary tests continue as new, too. */
const historyEventsMax = 500;

/** One NATS and one Temporal server for all tests that need them: those of the environment, or our own for this run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers = await startServers({
    nats: { minimum: topicsNatsMinimum },
    temporal: { dynamicConfig: [`limit.historyCount.suggestContinueAsNew=${historyEventsMax}`] },
  });
  project.provide('natsUrl', servers.natsUrl);
  project.provide('temporalAddress', servers.temporalAddress);
  return () => servers.stop();
}

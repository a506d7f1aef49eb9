import type { Client } from '@temporalio/client';
import { connectTemporal, readTemporalSettings, temporalFault, temporalFaultText } from '../../platform/temporal.ts';
import {
  missingSearchAttributes,
  registerSearchAttributes,
  searchAttributes,
} from '../../scripts/servers/search-attributes.ts';
import { taskQueue } from '../../workflows/messages.ts';
import { lastPoll } from '../connect.ts';
import { bad, doubtful, good, type Check } from './check.ts';

const pollAgeMs = 90_000;

/** The server behind TEMPORAL_ADDRESS: reach, version, namespace, search attributes, workers. */
export async function checkTemporal({ register }: { readonly register: boolean }): Promise<Check[]> {
  const settings = readTemporalSettings();
  let client: Client;
  try {
    client = await connectTemporal(settings);
  } catch {
    return [
      bad(
        'temporal',
        `Nobody answers at ${settings.address}.`,
        'Start it, or mend TEMPORAL_ADDRESS; on this machine: replay-stream dev',
      ),
    ];
  }
  try {
    const { serverVersion } = await client.workflowService.getSystemInfo({});
    await client.workflowService.describeNamespace({ namespace: settings.namespace });
    return [
      good('temporal', `server ${serverVersion} at ${settings.address}, namespace ${settings.namespace}`),
      await checkAttributes(client, register),
      await checkWorkers(client),
    ];
  } catch (error) {
    const fault = temporalFault(error) ?? 'other';
    const next = `Create the namespace (temporal operator namespace create -n ${settings.namespace}), or mend TEMPORAL_NAMESPACE and the login.`;
    return [bad('temporal', temporalFaultText(fault, settings, error instanceof Error ? error.message : ''), next)];
  } finally {
    await client.connection.close();
  }
}

async function checkAttributes({ connection, options: { namespace } }: Client, register: boolean): Promise<Check> {
  const name = 'search attributes';
  try {
    if (register) await registerSearchAttributes(connection as never, namespace);
    const missing = await missingSearchAttributes(connection as never, namespace);
    if (missing.length === 0) return good(name, `${Object.keys(searchAttributes).join(', ')} are registered`);
    const flags = Object.entries(searchAttributes).filter(([one]) => missing.includes(one));
    const typed = flags.map(([one, type]) => `--name ${one} --type ${type}`).join(' ');
    return doubtful(
      name,
      `${missing.join(', ')} are not registered: plans run, but lists cannot be filtered by them.`,
      `replay-stream doctor --register, or: temporal operator search-attribute create --namespace ${namespace} ${typed}`,
    );
  } catch {
    return doubtful(name, 'This login may not ask for them, or register them.', 'Ask who may: replay-stream doctor --register');
  }
}

async function checkWorkers(client: Client): Promise<Check> {
  const polled = await lastPoll(client);
  if (polled === null || Date.now() - polled.getTime() > pollAgeMs)
    return bad('worker', `No worker polls the task queue ${taskQueue}.`, 'Start one: replay-stream worker');
  return good('worker', `the task queue ${taskQueue} was polled at ${polled.toISOString()}`);
}

import type { Client } from '@temporalio/client';
import { lastPollOf, connectTemporal, readTemporalSettings, temporalFault, temporalFaultText } from '../platform/temporal.ts';
import { taskQueue } from '../workflows/messages.ts';
import { CommandFailure } from './failure.ts';

const pollCallMs = 3_000;

/** Connects, works, disconnects. Faults of Temporal become a sentence that says what to check. */
export async function withTemporal<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const settings = readTemporalSettings();
  const client = await connectTemporal(settings);
  try {
    return await work(client);
  } catch (error) {
    const fault = temporalFault(error);
    if (fault === null) throw error;
    const detail = error instanceof Error ? (error.cause instanceof Error ? error.cause.message : error.message) : '';
    throw new CommandFailure(temporalFaultText(fault, settings, detail), 'failed', { cause: error });
  } finally {
    await client.connection.close();
  }
}

/** When a worker last asked for replays to run; null: none did lately. */
export function lastPoll(client: Client): Promise<Date | null> {
  return client.withDeadline(Date.now() + pollCallMs, () => lastPollOf(client, taskQueue));
}

/** Before a call that only a worker can answer. Throws CommandFailure when none would. */
export async function assertWorker(client: Client): Promise<void> {
  if ((await lastPoll(client)) !== null) return;
  throw new CommandFailure(
    `No worker is polling the task queue ${taskQueue}. Start one (replay-stream worker), then try again.`,
  );
}

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DeterminismViolationError } from '@temporalio/workflow';
import { bundleWorkflowCode, Worker, type WorkflowBundle } from '@temporalio/worker';
import { beforeAll, describe, expect, test } from 'vitest';

/** Histories of every kind of run, recorded from real ones: today's workflow code must take the same decisions again. */

interface RecordedHistory {
  readonly events: { activityTaskScheduledEventAttributes?: { activityType: { name: string } } }[];
}

const folder = new URL('./histories/', import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
let workflowBundle: WorkflowBundle;

beforeAll(async () => {
  workflowBundle = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../../workflows/index.ts', import.meta.url)),
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  });
});

function read(name: string): RecordedHistory {
  return JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as RecordedHistory;
}

describe('a recorded history replays', () => {
  test('there are some', () => expect(names.length).toBeGreaterThanOrEqual(10));

  test.each(names)('%s', async (name) => {
    await expect(Worker.runReplayHistory({ workflowBundle }, read(name))).resolves.toBeUndefined();
  });
});

test('a history that took another decision fails', async () => {
  const history = read('completed.json');
  const scheduled = history.events.filter((event) => event.activityTaskScheduledEventAttributes !== undefined);
  const step = scheduled.find((event) => event.activityTaskScheduledEventAttributes!.activityType.name === 'acknowledge');
  step!.activityTaskScheduledEventAttributes!.activityType.name = 'deadLetter';
  await expect(Worker.runReplayHistory({ workflowBundle }, history)).rejects.toThrow(DeterminismViolationError);
});

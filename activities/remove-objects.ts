import { forgetLeft } from '../core/manifest.ts';
import type { SweepPlace } from '../core/sweep.ts';
import type { SweepDeps } from './deps.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** Removes objects that no reader finds any more, then forgets their names. Resolves to their number. */
export function makeRemoveObjects(deps: StepDeps): (place: SweepPlace, names: readonly string[]) => Promise<number> {
  return (place, names) => topicStep(deps, (signal) => removeLeft(deps.sweeps, place, names, signal));
}

export async function removeLeft(
  { topics, cold }: SweepDeps,
  { topic, partition }: SweepPlace,
  names: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const opened = await topics.open(topic);
  const store = cold(opened.topic.cold!);
  for (const name of names) await store.remove(name, signal);
  await topics.change(opened.partitions[partition]!, (manifest) => ({ manifest: forgetLeft(manifest, names), answer: null }));
  return names.length;
}

import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

/** Names, in order; those after this one. */
export function makeListTopics(deps: StepDeps): (after: string) => Promise<readonly string[]> {
  return (after) => topicStep(deps, async () => (await deps.sweeps.topics.list()).filter((name) => name > after));
}

import { randomBytes } from 'node:crypto';
import type { SweepPlace, SweepStep } from '../core/sweep.ts';
import type { StepDeps } from './step.ts';
import { topicStep } from './topic-step.ts';

const uploadBytes = 6;

/** What a partition needs now. A flush is claimed thereby; one that is under way already is gone on with. */
export function makeNextSweepStep(deps: StepDeps): (place: SweepPlace) => Promise<SweepStep> {
  return ({ topic, partition }) =>
    topicStep(deps, async () => {
      const opened = await deps.sweeps.topics.open(topic);
      const upload = randomBytes(uploadBytes).toString('hex');
      const place = { topic: opened.topic.id, partition };
      return await deps.sweeps.topics.next(opened.partitions[partition]!, Date.now(), (span, epoch) =>
        deps.sweeps.segments.name({ ...place, ...span }, epoch, upload),
      );
    });
}

import { ApplicationFailure } from '@temporalio/activity';
import { TopicError } from '../core/topic-errors.ts';
import { step, type StepDeps } from './step.ts';

const passing = ['group_contended', 'group_uncertain'];

/** The frame of a step on a topic: what the topic answers instead is a failure of the code's own type. */
export function topicStep<T>(deps: StepDeps, effect: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return step(deps.faults, async (signal) => {
    try {
      return await effect(signal);
    } catch (error) {
      if (!(error instanceof TopicError)) throw error;
      const message = `${error.message} ${error.next}`;
      throw ApplicationFailure.create({ message, type: error.code, nonRetryable: !passing.includes(error.code), cause: error });
    }
  });
}

import type { ReplayRequest } from '../../core/steps.ts';
import { uniqueName } from './servers.ts';
import type { TestStream } from './streams.ts';

type Fields = Readonly<Record<string, unknown>>;

export interface TestRequest extends ReplayRequest {
  readonly plan: { readonly replay: Record<string, unknown> };
}

/** A plan for the whole of a test's stream, under a durable of its own, into a file below the data root. */
export function requestOf(stream: TestStream, plan: Fields = {}, sink: Fields = {}): TestRequest {
  return requestInto({ type: 'file', directory: stream.name, ...sink }, stream, plan);
}

export function requestInto(sink: Fields, stream: TestStream, plan: Fields = {}): TestRequest {
  return {
    plan: {
      replay: {
        stream: stream.name,
        subject_filter: `${stream.prefix}.>`,
        durable_consumer: uniqueName('replay'),
        start_sequence: 1,
        max_messages: 1_000_000,
        stop_after_idle_seconds: 1,
        dry_run: false,
        ...plan,
      },
    },
    target: { sink, dead_letter: { subject: stream.deadLetterSubject } },
  };
}

/** A limited run never takes several batches in one step, and this limit never makes it wait. */
export const oneBatchAStep = { rate_limit_per_second: 1_000_000 };

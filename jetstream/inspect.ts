import type { NatsConnection } from 'nats';
import { readHeaders, type Headers } from './headers.ts';
import { openLink, withFaults, type LinkOptions } from './link.ts';
import type { StreamFacts } from './source.ts';
import { readNext } from './stored-message.ts';
import { describe } from './stream.ts';

export interface InspectedMessage {
  readonly sequence: number;
  readonly subject: string;
  readonly timeNanos: bigint;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** Looks at stored messages one by one: no consumer, no ACK, no subscription that outlives a call. Throws ReplayFault. */
export interface Inspector {
  describe(stream: string): Promise<StreamFacts>;
  /** The first message at or after the sequence that one of the filters takes; null when there is none. */
  next(stream: string, sequence: number, filters: readonly string[]): Promise<InspectedMessage | null>;
}

export function createInspector(nc: NatsConnection, options: LinkOptions = {}): Inspector {
  const link = openLink(nc, options);
  return {
    describe: (stream) => withFaults(undefined, () => describe(link, stream)),
    next: (stream, sequence, filters) =>
      withFaults(undefined, async () => {
        const found = await Promise.all(filters.map((filter) => readNext(link, stream, { sequence, filter })));
        const [first] = found.filter((one) => one !== null).toSorted((a, b) => a.sequence - b.sequence);
        if (first === undefined) return null;
        const { headerBlock, body, subject, timeNanos } = first;
        return { sequence: first.sequence, subject, timeNanos, headers: readHeaders(headerBlock), body };
      }),
  };
}

import { createInbox, type Msg } from 'nats';
import { ReplayFault } from '../../core/errors.ts';
import { bodyOf, headerBlockOf, openEnvelope } from '../envelope.ts';
import { faultOfClient } from '../faults.ts';
import { readStatus } from '../headers.ts';
import type { Link } from '../link.ts';

/** Silence that ends a request. */
const silenceMaxMs = 5_000;
const noContent = 204;
const notFound = 404;
const versionBytes = 'NATS/1.0'.length;
const carriageReturn = 0x0d;
const lastHeaders = '\r\nNats-Num-Pending: ';

export interface DirectMessage {
  /** With the server's own headers at its end. */
  readonly headerBlock: Buffer;
  readonly body: Buffer;
}

export interface DirectEnd {
  /** Messages beyond those that came; 0 with nothing found. */
  readonly pending: number;
  readonly found: boolean;
}

/** A direct get of several messages: all of them go to `receive`, in the server's order. Throws faults. */
export function directGetBatch(
  link: Link,
  stream: string,
  body: object,
  receive: (message: DirectMessage) => void,
  signal?: AbortSignal,
): Promise<DirectEnd> {
  signal?.throwIfAborted();
  link.ensureUp();
  return new Promise((resolve, reject) => {
    let ended = false;
    const end = (act: () => void) => {
      if (ended) return;
      ended = true;
      clearTimeout(silence);
      unwatch();
      signal?.removeEventListener('abort', onAbort);
      if (!link.nc.isClosed()) subscription.unsubscribe();
      act();
    };
    const onAbort = () => end(() => reject(signal?.reason as Error));
    // An exception in here would end the client's reader, and with it the whole connection.
    const onMessage = (error: Error | null, message: Msg) => {
      if (ended) return;
      try {
        if (error !== null) throw error;
        silence.refresh();
        const envelope = openEnvelope(message);
        const headerBlock = headerBlockOf(envelope);
        const code = hasStatus(headerBlock) ? readStatus(headerBlock).code : 0;
        // A stored message may have a status of its own in its first line; only a message has the server's sequence header.
        if (code === 0 || headerBlock.includes('\r\nNats-Sequence: ')) return receive({ headerBlock, body: bodyOf(envelope) });
        if (code === noContent) return end(() => resolve({ pending: pendingOf(headerBlock), found: true }));
        if (code === notFound) return end(() => resolve({ pending: 0, found: false }));
        throw new ReplayFault('unexpected', code === 503 ? 'nobody answers direct gets' : `direct get answered ${code}`);
      } catch (fault) {
        end(() => reject(faultOfClient(fault)));
      }
    };
    const inbox = createInbox(link.inboxPrefix);
    const subject = `${link.api}.DIRECT.GET.${stream}`;
    const subscription = link.nc.subscribe(inbox, { callback: onMessage });
    const silence = setTimeout(() => end(() => reject(new ReplayFault('nats_timeout'))), silenceMaxMs);
    const unwatch = link.watch(
      (refused) => refused === subject || refused === inbox,
      (fault) => end(() => reject(fault)),
    );
    signal?.addEventListener('abort', onAbort, { once: true });
    link.nc.publish(subject, JSON.stringify(body), { reply: inbox });
  });
}

/** Quick, since it runs for each message: whether anything follows `NATS/1.0`. */
function hasStatus(headerBlock: Buffer): boolean {
  return headerBlock[versionBytes] !== carriageReturn;
}

function pendingOf(headerBlock: Buffer): number {
  const text = headerBlock.toString('latin1');
  const at = text.lastIndexOf(lastHeaders);
  return at < 0 ? 0 : Number.parseInt(text.slice(at + lastHeaders.length), 10);
}

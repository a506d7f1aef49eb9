import { ReplayFault, type FaultCode } from '../core/errors.ts';
import { faultOfApi, faultOfClient, isNoResponders, jetStreamDisabled, type ApiError } from './faults.ts';
import { headerBlockOf, openEnvelope } from './envelope.ts';
import { readStatus } from './headers.ts';
import { request, type Link, type RequestOptions } from './link.ts';

export type ApiAnswer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: ApiError };

/** A JetStream API call by its own subject. The client's manager asks for more permissions and hides error codes. */
export async function callApi<T>(
  link: Link,
  operation: string,
  body: object | null,
  options?: RequestOptions,
): Promise<ApiAnswer<T>> {
  const answer = await requestJson(link, `${link.api}.${operation}`, body, options);
  const error = (answer as { error?: ApiError }).error;
  return error === undefined ? { ok: true, value: answer as T } : { ok: false, error };
}

/** Like `callApi`, but an error of the API is thrown as a fault. */
export async function callApiOrThrow<T>(
  link: Link,
  operation: string,
  body: object | null,
  otherwise: FaultCode,
  options?: RequestOptions,
): Promise<T> {
  const answer = await callApi<T>(link, operation, body, options);
  if (!answer.ok) throw faultOfApi(answer.error, otherwise);
  return answer.value;
}

async function requestJson(link: Link, subject: string, body: object | null, options?: RequestOptions): Promise<unknown> {
  try {
    const message = await request(link, subject, body === null ? '' : JSON.stringify(body), options);
    return JSON.parse(message.string());
  } catch (error) {
    if (isAbort(error, options)) throw error;
    if (isNoResponders(error)) throw jetStreamDisabled();
    if (error instanceof SyntaxError) throw new ReplayFault('unexpected', 'the answer of the JetStream API is not JSON');
    throw faultOfClient(error);
  }
}

export type DirectAnswer =
  { readonly kind: 'message'; readonly headerBlock: Buffer } | { readonly kind: 'none' } | { readonly kind: 'not_allowed' };

/** One direct get. `not_allowed`: nobody answers for this stream, because it lacks `allow_direct`. */
export async function directGet(link: Link, stream: string, body: object, options?: RequestOptions): Promise<DirectAnswer> {
  try {
    const message = await request(link, `${link.api}.DIRECT.GET.${stream}`, JSON.stringify(body), options);
    const headerBlock = headerBlockOf(openEnvelope(message));
    const status = readStatus(headerBlock);
    // A stored message may have a status of its own in its first line; only a message has the server's sequence header.
    if (status.code === 0 || headerBlock.includes('\r\nNats-Sequence: ')) return { kind: 'message', headerBlock };
    if (status.code === 404) return { kind: 'none' };
    throw new ReplayFault('unexpected', `direct get answered ${status.code}`);
  } catch (error) {
    if (isAbort(error, options)) throw error;
    if (isNoResponders(error)) return { kind: 'not_allowed' };
    throw faultOfClient(error);
  }
}

function isAbort(error: unknown, options: RequestOptions | undefined): boolean {
  return options?.signal?.aborted === true && error === options.signal.reason;
}

import { randomUUID } from 'node:crypto';
import { ReplayFault } from '../core/errors.ts';
import { callApi, callApiOrThrow } from './api.ts';
import {
  completedConfig,
  consumerConfig,
  consumerFacts,
  ownerOf,
  type ConsumerConfig,
  type ConsumerInfo,
} from './consumer-settings.ts';
import { apiCode, faultOfApi, type ApiError } from './faults.ts';
import type { Link, RequestOptions } from './link.ts';
import type { ConsumerFacts, ConsumerOwner, ConsumerSpec } from './source.ts';
import { checkIncarnation } from './stream.ts';

/** Times that our own lost attempt may create the durable between our delete and our create. */
const putBackAttemptsMax = 3;

export async function readConsumer(link: Link, stream: string, durable: string): Promise<ConsumerFacts | null> {
  const info = await consumerInfo(link, stream, durable);
  return info === null ? null : consumerFacts(info);
}

/** null when there is no such consumer. Throws `stream_missing`. */
export async function consumerInfo(
  link: Link,
  stream: string,
  durable: string,
  options?: RequestOptions,
): Promise<ConsumerInfo | null> {
  const answer = await callApi<ConsumerInfo>(link, `CONSUMER.INFO.${stream}.${durable}`, null, options);
  if (answer.ok) return answer.value;
  if (answer.error.err_code === apiCode.consumerNotFound) return null;
  throw faultOfApi(answer.error, 'unexpected');
}

/** See Source.putBack. A durable may be replaced only by the replay with its fingerprint, from the same Temporal namespace. */
export async function putBack(link: Link, spec: ConsumerSpec, cursor: number): Promise<void> {
  const { stream, durable } = spec;
  const [found] = await Promise.all([consumerInfo(link, stream, durable), checkIncarnation(link, stream, spec.incarnation)]);
  let present = found;
  for (let attempt = 0; attempt < putBackAttemptsMax; attempt++) {
    if (present !== null) {
      if (!mayReplace(ownerOf(present.config), spec.owner)) throw new ReplayFault('consumer_taken');
      await removeConsumer(link, stream, durable);
    }
    if (await create(link, stream, durable, consumerConfig(spec, cursor, randomUUID()))) {
      await checkStillThere(link, spec);
      return;
    }
    present = await consumerInfo(link, stream, durable);
  }
  throw new ReplayFault('consumer_taken', 'another attempt of the same replay keeps creating it');
}

export function mayReplace(found: ConsumerOwner | null, owner: ConsumerOwner): boolean {
  return (
    found !== null &&
    found.cluster === owner.cluster &&
    found.namespace === owner.namespace &&
    found.fingerprint === owner.fingerprint
  );
}

/** false when somebody else's is there. */
async function create(link: Link, stream: string, durable: string, config: ConsumerConfig): Promise<boolean> {
  const body = { stream_name: stream, config, action: 'create' };
  const answer = await callApi<ConsumerInfo>(link, `CONSUMER.CREATE.${stream}.${durable}`, body);
  if (answer.ok) return true;
  if (existsCodes.has(answer.error.err_code ?? 0)) return false;
  throw refusedFault(answer.error);
}

const existsCodes: ReadonlySet<number> = new Set([
  apiCode.consumerExists,
  apiCode.consumerNameInUse,
  apiCode.consumerExistingActive,
]);

const refusals: ReadonlyMap<number, string> = new Map([
  [apiCode.maxAckPendingExceeded, 'max_ack_pending is above what the stream, the account or the server allows'],
  [apiCode.inactiveThresholdExceeded, 'inactive_threshold is above what the stream or the server allows'],
  [apiCode.maximumConsumers, 'max_consumers: the stream or the account has all the consumers it may have'],
  [apiCode.accountResourcesExceeded, 'the account has used up its JetStream resources'],
  [apiCode.insufficientResources, 'the server has not enough resources'],
  [apiCode.memoryResourcesExceeded, 'the server has not enough memory for JetStream'],
  [apiCode.storageResourcesExceeded, 'the server has not enough storage for JetStream'],
]);

function refusedFault(error: ApiError): ReplayFault {
  const limit = refusals.get(error.err_code ?? 0);
  return limit === undefined ? faultOfApi(error, 'consumer_refused') : new ReplayFault('consumer_refused', limit);
}

/** The stream may have been recreated between the look at it and the creation of the durable. */
async function checkStillThere(link: Link, spec: ConsumerSpec): Promise<void> {
  try {
    await checkIncarnation(link, spec.stream, spec.incarnation);
  } catch (error) {
    if (error instanceof ReplayFault && error.code === 'stream_recreated') {
      await removeConsumer(link, spec.stream, spec.durable);
    }
    throw error;
  }
}

/** See Source.deleteConsumer. Throws `consumer_taken` when it was not made by a replay. */
export async function deleteConsumer(link: Link, stream: string, durable: string): Promise<void> {
  const info = await consumerInfo(link, stream, durable);
  if (info === null) return;
  if (ownerOf(info.config) === null) throw new ReplayFault('consumer_taken', 'it was not made by a replay');
  await removeConsumer(link, stream, durable);
}

async function removeConsumer(link: Link, stream: string, durable: string): Promise<void> {
  const answer = await callApi(link, `CONSUMER.DELETE.${stream}.${durable}`, null);
  if (!answer.ok && answer.error.err_code !== apiCode.consumerNotFound) throw faultOfApi(answer.error, 'unexpected');
}

/** See Source.markCompleted. Throws `consumer_taken` when the durable is another replay's, `consumer_disturbed` when it is gone. */
export async function markCompleted(link: Link, spec: ConsumerSpec): Promise<void> {
  const { stream, durable } = spec;
  const info = await consumerInfo(link, stream, durable);
  if (info === null) throw new ReplayFault('consumer_disturbed', 'the durable consumer is gone');
  if (!mayReplace(ownerOf(info.config), spec.owner)) throw new ReplayFault('consumer_taken');
  const body = { stream_name: stream, config: completedConfig(info.config), action: 'update' };
  await callApiOrThrow(link, `CONSUMER.CREATE.${stream}.${durable}`, body, 'unexpected');
}

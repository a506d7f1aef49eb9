import { ErrorCode, NatsError } from 'nats';
import { ReplayFault, type FaultCode } from '../core/errors.ts';
import { TopicError } from '../core/topic-errors.ts';

/** The one place where errors of the NATS client and of the JetStream API become faults. Nothing of their texts is kept: they
 *  may hold subjects and addresses. */

/** The `error` of a JetStream API answer. */
export interface ApiError {
  readonly code: number;
  readonly err_code?: number;
  readonly description?: string;
}

/** JetStream API error codes that this folder tells apart. */
export const apiCode = {
  accountResourcesExceeded: 10002,
  clusterNotActive: 10006,
  clusterNotAssigned: 10007,
  clusterNotAvailable: 10008,
  clusterNotLeader: 10009,
  consumerNameInUse: 10013,
  consumerNotFound: 10014,
  insufficientResources: 10023,
  maximumConsumers: 10026,
  memoryResourcesExceeded: 10028,
  noMessageFound: 10037,
  notEnabledForAccount: 10039,
  storageResourcesExceeded: 10047,
  messageTooLarge: 10054,
  streamNotFound: 10059,
  streamNotMatch: 10060,
  wrongLastSequence: 10071,
  notEnabled: 10076,
  storeFailed: 10077,
  consumerExistingActive: 10105,
  headerTooLarge: 10097,
  streamSealed: 10109,
  streamOffline: 10118,
  consumerOffline: 10119,
  maxAckPendingExceeded: 10121,
  consumerExists: 10148,
  wrongLastSequenceConstant: 10164,
  batchIncomplete: 10176,
  inactiveThresholdExceeded: 10153,
  streamOfflineReason: 10194,
  consumerOfflineReason: 10195,
  batchesInflight: 10210,
} as const;

const passing: ReadonlySet<number> = new Set([
  apiCode.clusterNotActive,
  apiCode.clusterNotAssigned,
  apiCode.clusterNotAvailable,
  apiCode.clusterNotLeader,
  apiCode.streamOffline,
  apiCode.consumerOffline,
  apiCode.streamOfflineReason,
  apiCode.consumerOfflineReason,
]);

/** Faults that mean the same whatever was asked; `otherwise` names the rest. */
export function faultOfApi(error: ApiError, otherwise: FaultCode): ReplayFault {
  const code = error.err_code ?? error.code;
  if (code === apiCode.streamNotFound) return new ReplayFault('stream_missing');
  if (code === apiCode.consumerNotFound) return new ReplayFault('consumer_disturbed', 'the durable consumer is gone');
  if (code === apiCode.notEnabled || code === apiCode.notEnabledForAccount) return jetStreamDisabled();
  if (passing.has(code)) return new ReplayFault('nats_timeout', `JetStream error ${code}: no leader, or not available now`);
  return new ReplayFault(otherwise, `JetStream error ${code}`);
}

export function jetStreamDisabled(): ReplayFault {
  return new ReplayFault('nats_timeout', 'JetStream is not enabled for this account, or its domain is another');
}

export function isNoResponders(error: unknown): boolean {
  return error instanceof NatsError && error.code === ErrorCode.NoResponders;
}

/** Anything that the client throws. Faults and aborts pass through as they are. */
export function faultOfClient(error: unknown): Error {
  if (error instanceof ReplayFault || error instanceof TopicError) return error;
  if (!(error instanceof NatsError)) return new ReplayFault('unexpected', undefined, { cause: error });
  const fault = (code: FaultCode, detail?: string) => new ReplayFault(code, detail);
  switch (error.code as ErrorCode) {
    case ErrorCode.PermissionsViolation:
      return deniedFault(error.permissionContext);
    case ErrorCode.AuthorizationViolation:
    case ErrorCode.AuthenticationExpired:
    case ErrorCode.AuthenticationTimeout:
    case ErrorCode.AccountExpired:
    case ErrorCode.BadAuthentication:
      return fault('nats_denied', 'the server refused the login');
    case ErrorCode.BadCreds:
      return fault('nats_denied', 'the credentials file has not the form of one');
    case ErrorCode.Timeout:
    case ErrorCode.Cancelled:
      return fault('nats_timeout');
    case ErrorCode.NoResponders:
      return jetStreamDisabled();
    case ErrorCode.Tls:
    case ErrorCode.ServerOptionNotAvailable:
      return fault('nats_unreachable', 'TLS could not be agreed on');
    case ErrorCode.ConnectionClosed:
    case ErrorCode.ConnectionDraining:
    case ErrorCode.ConnectionRefused:
    case ErrorCode.ConnectionTimeout:
    case ErrorCode.Disconnect:
      return fault('nats_unreachable');
    default:
      return fault('unexpected', `NATS client error ${error.code}`);
  }
}

/** Names the API operation, never a whole subject: those hold names of streams and consumers. */
export function deniedFault(context: { readonly operation: string; readonly subject: string } | undefined): ReplayFault {
  if (context === undefined) return new ReplayFault('nats_denied');
  if (context.operation === 'subscription') return new ReplayFault('nats_denied', 'subscribing to the inbox is not allowed');
  return new ReplayFault('nats_denied', `publishing is not allowed: ${describeSubject(context.subject)}`);
}

const operation =
  /^\$JS\.(?:[^.]+\.)?API\.(STREAM\.(?:INFO|NAMES|MSG\.GET)|CONSUMER\.(?:CREATE|INFO|DELETE|MSG\.NEXT)|DIRECT\.GET)(?:\.|$)/;

function describeSubject(subject: string): string {
  if (subject.startsWith('$JS.ACK.')) return '$JS.ACK';
  const named = operation.exec(subject)?.[1];
  return named === undefined
    ? 'a subject outside the API of JetStream (dead letters, or the destination stream)'
    : `$JS.API.${named}`;
}

import { groupDigits } from './problems.ts';

/** How a destination recognises a record it already has. See docs/delivery.md, "Idempotency". */
export type IdempotencyKey = 'stream_sequence' | 'message_id' | 'payload_field';

/** One pulled message with its envelope. Bytes, headers, subject and nanosecond time are exactly the stored message's. */
export interface ReplayRecord {
  readonly stream: string;
  /** The stream's creation time, RFC 3339 with nine decimals and `Z`: tells a recreated stream from the old one. */
  readonly incarnation: string;
  readonly sequence: bigint;
  readonly subject: string;
  /** Nanoseconds since 1970-01-01T00:00:00Z. */
  readonly timeNanos: bigint;
  /** The `Nats-Msg-Id` header, whatever its letter case; of a topic the deduplication key. */
  readonly messageId?: string;
  /** Names in their original spelling and order; a repeated header keeps all its values in order. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly payload: Uint8Array;
  readonly redelivered: boolean;
}

/** What a sink says of one record. */
export type Outcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'duplicate' }
  /** Left out by a rule of the target: acknowledged, and nothing more. */
  | { readonly kind: 'skipped' }
  | { readonly kind: 'rejected'; readonly code: RejectCode; readonly field?: string };

/** A record the sink refused for good. Compact: it travels through workflow history. */
export interface Reject {
  readonly sequence: number;
  /** Of a topic; its offset is the sequence less one. */
  readonly partition?: number;
  /** Nanoseconds since the epoch as a decimal string (too large for a JSON number). */
  readonly time: string;
  readonly code: RejectCode;
  readonly field?: string;
  /** Of a record that is too large: bytes of its body, and the most that its destination takes, where it says so. */
  readonly bytes?: number;
  readonly bytes_max?: number;
  /** An operator decided that it gets no dead letter. */
  readonly decision?: 'skip';
}

/** Why a record was refused: one entry per code, generated into docs/reference/errors.md. */
export const rejectCatalogue = {
  not_json: 'The target requires strict JSON and the body is not strict JSON.',
  too_large: 'The record is larger than the destination, or the target, allows.',
  value_too_long: 'A value is longer than its column.',
  value_invalid: 'A value does not fit the type or range of its column.',
  value_missing: 'A column that must not be null has no value in this record.',
  constraint_failed: 'A check or foreign-key constraint of the destination refused the record.',
  key_missing: 'The record has no usable idempotency key.',
  no_route: 'No child of the fan-out takes the subject of the record.',
  key_conflict: 'Another record already holds this idempotency key.',
} as const satisfies Record<string, string>;
export type RejectCode = keyof typeof rejectCatalogue;

/** A record as it was refused, for the list of a report. `bytesMax` as its sink says it. */
export function rejectOf(
  { sequence, timeNanos, payload }: { readonly sequence: number; readonly timeNanos: bigint; readonly payload: Uint8Array },
  { code, field }: Outcome & { readonly kind: 'rejected' },
  bytesMax: number | undefined,
): Reject {
  return {
    sequence,
    time: timeNanos.toString(),
    code,
    ...(field === undefined ? {} : { field }),
    ...(code === 'too_large' ? { bytes: payload.length, ...(bytesMax === undefined ? {} : { bytes_max: bytesMax }) } : {}),
  };
}

/** `value_too_long, total` */
export function rejectReason(reject: Reject): string {
  return [reject.code, rejectDetail(reject)].filter((part) => part !== '').join(', ');
}

/** The field that was refused, or how large the record is; empty: nothing to add to the code. */
export function rejectDetail({ field, bytes, bytes_max: bytesMax }: Reject): string {
  const size = bytes === undefined ? '' : `${groupDigits(bytes)} bytes`;
  const limit = bytesMax === undefined ? '' : ` of at most ${groupDigits(bytesMax)}`;
  return [field ?? '', `${size}${limit}`].filter((part) => part !== '').join(', ');
}

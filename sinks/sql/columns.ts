import { findToken, pointerSteps } from '../../core/json-token.ts';
import type { JsonToken } from '../../core/json-token.ts';
import { isStrictJson, payloadText } from '../../core/payload.ts';
import type { IdempotencyKey, RejectCode, ReplayRecord } from '../../core/record.ts';

/** Parts of a record that a column can take. `payload_json`: the body as JSON, null when it is not strict JSON. */
export const recordFields = [
  'stream',
  'incarnation',
  'sequence',
  'subject',
  'time',
  'message_id',
  'headers',
  'payload',
  'payload_json',
  'plan',
  'run',
] as const;
export type RecordField = (typeof recordFields)[number];

export type ColumnSource = { readonly payload: string } | { readonly field: RecordField };

export interface MappedColumn {
  readonly name: string;
  readonly source: ColumnSource;
}

/** Where records go: the columns that are written, those that make the key, and those that tell which record a row is of. */
export interface Layout {
  readonly columns: readonly MappedColumn[];
  readonly keyColumns: readonly string[];
  readonly key: IdempotencyKey;
  /** null: the table does not keep it, so that an older record cannot be told from a newer one. */
  readonly origin: { readonly incarnation: string; readonly sequence: string } | null;
  /** The columns were not chosen by the target. */
  readonly isDefault: boolean;
}

export interface Idempotency {
  readonly key: IdempotencyKey;
  readonly field: string | null;
  readonly key_conflicts: 'reject' | 'keep';
}

export const defaultIdempotency: Idempotency = { key: 'stream_sequence', field: null, key_conflicts: 'reject' };

/** Columns of a table whose target names none, in order. */
const defaultColumns: readonly MappedColumn[] = (
  [
    ['stream_name', 'stream'],
    ['stream_incarnation', 'incarnation'],
    ['stream_sequence', 'sequence'],
    ['subject', 'subject'],
    ['message_time_ns', 'time'],
    ['message_id', 'message_id'],
    ['headers', 'headers'],
    ['payload', 'payload'],
    ['payload_json', 'payload_json'],
    ['replay_plan', 'plan'],
    ['replay_run', 'run'],
  ] as const
).map(([name, field]) => ({ name, source: { field } }));

/** Column that the database fills with the time of storing, in a default table. */
export const STORED_AT = 'stored_at';

export type LayoutResult = { readonly ok: true; readonly layout: Layout } | { readonly ok: false; readonly missing: string };

/** `missing` says which column the key needs and `columns` does not name. */
export function layoutOf(
  columns: Readonly<Record<string, ColumnSource>> | null,
  { key, field }: Pick<Idempotency, 'key' | 'field'>,
): LayoutResult {
  const mapped = columns === null ? defaultColumns : Object.entries(columns).map(([name, source]) => ({ name, source }));
  const of = (wanted: RecordField) => mapped.find(({ source }) => 'field' in source && source.field === wanted)?.name;
  const needed: readonly (readonly [string, string | undefined])[] =
    key === 'payload_field'
      ? [
          [
            `{ "payload": ${JSON.stringify(field)} }`,
            mapped.find(({ source }) => 'payload' in source && source.payload === field)?.name,
          ],
        ]
      : (key === 'message_id' ? (['message_id'] as const) : (['stream', 'incarnation', 'sequence'] as const)).map((name) => [
          `{ "field": "${name}" }`,
          of(name),
        ]);
  const missing = needed.filter(([, name]) => name === undefined).map(([source]) => source);
  if (missing.length > 0) return { ok: false, missing: missing.join(', ') };
  const [incarnation, sequence] = [of('incarnation'), of('sequence')];
  return {
    ok: true,
    layout: {
      columns: mapped,
      keyColumns: needed.map(([, name]) => name!),
      key,
      origin: incarnation === undefined || sequence === undefined ? null : { incarnation, sequence },
      isDefault: columns === null,
    },
  };
}

/** A value before it is spelt for a database. A token keeps the spelling of the body. */
export type ColumnValue =
  | null
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'integer'; readonly value: bigint }
  | { readonly kind: 'time'; readonly nanos: bigint }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'json'; readonly text: string }
  | { readonly kind: 'token'; readonly token: JsonToken };

export type Mapped =
  | { readonly ok: true; readonly values: readonly ColumnValue[] }
  | { readonly ok: false; readonly code: RejectCode; readonly field?: string };

export interface RunContext {
  readonly plan: string;
  readonly run: string;
}

/** Reads the values of a record's columns; made once for a layout, used for every record. */
export function columnReader(layout: Layout, context: RunContext): (record: ReplayRecord) => Mapped {
  const readers = layout.columns.map(({ source }) => readerOf(source, context));
  const needsJson = layout.columns.some(({ source }) => 'payload' in source);
  const wantsJson = needsJson || layout.columns.some(({ source }) => 'field' in source && source.field === 'payload_json');
  const keys = layout.columns.flatMap(({ name }, i) => (layout.keyColumns.includes(name) ? [{ name, i }] : []));
  return (record) => {
    const json = wantsJson && isStrictJson(record.payload) ? payloadText(record.payload) : null;
    if (json === null && needsJson) return { ok: false, code: 'not_json' };
    const values = readers.map((read) => read(record, json));
    const unusable = keys.find(({ i }) => !isUsableKey(values[i]!));
    return unusable === undefined ? { ok: true, values } : { ok: false, code: 'key_missing', field: unusable.name };
  };
}

type Reader = (record: ReplayRecord, json: string | null) => ColumnValue;

function readerOf(source: ColumnSource, context: RunContext): Reader {
  if ('payload' in source) {
    const steps = pointerSteps(source.payload);
    return (_, json) => {
      const token = findToken(json!, steps);
      return token === undefined || token.kind === 'null' ? null : { kind: 'token', token };
    };
  }
  switch (source.field) {
    case 'stream':
      return ({ stream }) => ({ kind: 'text', text: stream });
    case 'incarnation':
      return ({ incarnation }) => ({ kind: 'text', text: incarnation });
    case 'sequence':
      return ({ sequence }) => ({ kind: 'integer', value: sequence });
    case 'subject':
      return ({ subject }) => ({ kind: 'text', text: subject });
    case 'time':
      return ({ timeNanos }) => ({ kind: 'time', nanos: timeNanos });
    case 'message_id':
      return ({ messageId }) => (messageId === undefined ? null : { kind: 'text', text: messageId });
    case 'headers':
      return ({ headers }) => ({ kind: 'json', text: headersJson(headers) });
    case 'payload':
      return ({ payload }) => ({ kind: 'bytes', bytes: payload });
    case 'payload_json':
      return (_, json) => (json === null ? null : { kind: 'json', text: json });
    case 'plan':
      return () => ({ kind: 'text', text: context.plan });
    case 'run':
      return () => ({ kind: 'text', text: context.run });
  }
}

/** JSON.stringify would drop a header called `__proto__` from an object, and put names like `1` first. */
function headersJson(headers: ReplayRecord['headers']): string {
  if (headers.size === 0) return '{}';
  const pairs = [...headers].map(([name, values]) => `${JSON.stringify(name)}:${JSON.stringify(values)}`);
  return `{${pairs.join(',')}}`;
}

/** A key is a scalar that is not blank. */
function isUsableKey(value: ColumnValue): boolean {
  if (value === null) return false;
  if (value.kind === 'text') return value.text.trim() !== '';
  if (value.kind !== 'token') return true;
  const { kind, text } = value.token;
  return kind === 'number' || kind === 'boolean' || (kind === 'string' && (JSON.parse(text) as string).trim() !== '');
}

import { hasLoneSurrogate } from './json-token.ts';
import type { hashVersion } from './partition.ts';
import { groupDigits, shown } from './problems.ts';
import type { IntegerLimits } from './limits.ts';
import { TopicError } from './topic-errors.ts';

/** What is fixed when a topic is created, and kept in the registry. */
export interface Topic extends TopicSettings {
  /** Names streams and keys: a topic that is created again has another one. */
  readonly id: string;
  readonly name: string;
  readonly hashVersion: typeof hashVersion;
  /** RFC 3339. */
  readonly createdAt: string;
}

export interface TopicSettings {
  readonly partitions: number;
  /** Of each partition: what stays hot. A sweep takes the rest away; no record goes before that. */
  readonly hot: HotBounds;
  readonly quota: TopicQuota;
  /** Where records go that leave the hot window; null: they are gone. */
  readonly cold: ColdKind | null;
}

/** `file`: below the cold root; `s3`: in the bucket of the settings. */
export const coldKinds = ['file', 's3'] as const;
export type ColdKind = (typeof coldKinds)[number];

export interface HotBounds {
  readonly maxAgeSeconds: number;
  readonly maxRecords: number;
  /** Of payload. */
  readonly maxBytes: number;
}

export interface TopicQuota {
  /** One record with its keys. */
  readonly maxRecordBytes: number;
  /** Records of one push into one partition, together. */
  readonly maxPushBytes: number;
  readonly maxGroups: number;
  /** Of one client, over all partitions; null: none. */
  readonly recordsPerSecond: number | null;
}

/** As a caller gives them; what is missing has its default. */
export interface TopicOptions {
  readonly partitions?: number | undefined;
  readonly hot?: { readonly [K in keyof HotBounds]?: HotBounds[K] | undefined } | undefined;
  readonly quota?: { readonly [K in keyof TopicQuota]?: TopicQuota[K] | undefined } | undefined;
  readonly cold?: ColdKind | null | undefined;
}

const mebibyte = 1_048_576;

export const topicDefaults: TopicSettings = {
  partitions: 8,
  hot: { maxAgeSeconds: 7 * 86_400, maxRecords: 50_000, maxBytes: 256 * mebibyte },
  quota: { maxRecordBytes: mebibyte, maxPushBytes: 16 * mebibyte, maxGroups: 1_000, recordsPerSecond: null },
  cold: null,
};

export const topicLimits = {
  partitions: { min: 1, max: 256 },
  maxAgeSeconds: { min: 1, max: 10 * 365 * 86_400 },
  maxRecords: { min: 1, max: 100_000_000 },
  maxBytes: { min: 1, max: 1_024 * mebibyte },
  maxRecordBytes: { min: 1, max: 64 * mebibyte },
  maxPushBytes: { min: 1, max: 64 * mebibyte },
  maxGroups: { min: 1, max: 100_000 },
  recordsPerSecond: { min: 1, max: 10_000_000 },
} as const satisfies Record<string, IntegerLimits>;

/** Records of one push into one partition. */
export const pushRecordsMax = 100;
/** A push has an answer within this time. */
export const pushTimeoutMs = 5_000;
/** Records of one page or lease. */
export const pageRecordsMax = 100;
/** Beyond the soft limit there is room for so many records until pushes are refused. */
const overloadRecords = 50_000;
/** Partition and deduplication keys, in bytes of UTF-8. */
export const keyBytesMax = 1_024;
const nameBytesMax = 64;
/** What subject and headers of a record take at most, beside its keys and payload. */
export const envelopeBytes = 512;

/** Limits of a partition: above the soft ones, so that nothing is refused before a sweep had its chance. */
export function hardRecords(hot: HotBounds): number {
  return hot.maxRecords + overloadRecords;
}

/** Whether so many records with so many stored bytes are more than twice the payload that may stay hot. */
export function isOverBytes(hot: HotBounds, { records, bytes }: { readonly records: number; readonly bytes: number }): boolean {
  return bytes - records * envelopeBytes > 2 * hot.maxBytes;
}

/** Throws `setting_invalid` naming everything that is wrong. */
export function checkSettings(options: TopicOptions): TopicSettings {
  const { partitions = topicDefaults.partitions } = options;
  const hot = { ...topicDefaults.hot, ...present(options.hot) };
  const quota = { ...topicDefaults.quota, ...present(options.quota) };
  const values = { partitions, ...hot, ...quota };
  const problems = Object.entries(topicLimits).flatMap(([name, { min, max }]) => {
    const value = values[name as keyof typeof values];
    if (value === null || (Number.isInteger(value) && value >= min && value <= max)) return [];
    return [`${name} is ${shown(value)}; expected a whole number from ${groupDigits(min)} to ${groupDigits(max)}`];
  });
  if (problems.length > 0) throw new TopicError('setting_invalid', problems.join('; '));
  return { partitions, hot, quota, cold: options.cold ?? null };
}

function present<T extends object>(values: T | undefined): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(values ?? {}).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** Throws `name_invalid`. `what` is `topic` or `group`. */
export function checkName(what: string, name: string): string {
  const problem = topicNameProblem(name);
  if (problem !== null) throw new TopicError('name_invalid', `the name of the ${what} ${problem}`);
  return name;
}

/** What is wrong with the name of a topic or group; goes after the name. */
export function topicNameProblem(name: string): string | null {
  if (typeof name !== 'string') return 'is not a string';
  if (name === '') return 'is empty';
  if (hasLoneSurrogate(name)) return 'holds half of a surrogate pair';
  if (/\p{Cc}/u.test(name)) return 'holds a control character';
  const bytes = new TextEncoder().encode(name).length;
  return bytes > nameBytesMax ? `has ${groupDigits(bytes)} bytes; expected at most ${nameBytesMax}` : null;
}

/** As subjects and keys may hold it: every byte but `A-Z a-z 0-9 _ -` as `=2E`. Different names stay different. */
export function encodeName(name: string): string {
  let encoded = '';
  for (const byte of new TextEncoder().encode(name)) {
    const character = String.fromCharCode(byte);
    encoded += /[\w-]/.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

export function decodeName(encoded: string): string {
  return decodeURIComponent(encoded.replaceAll('=', '%'));
}

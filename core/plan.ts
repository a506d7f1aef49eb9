import type { z } from 'zod';
import type { AllowedHours } from './hours.ts';
import { jsonProblems, readJson } from './json.ts';
import { nameBytesMax, planDefaults, subjectFiltersMax } from './limits.ts';
import { planFileSchema, replaySchema } from './plan-fields.ts';
import { boundedProblems, problemAt, shown } from './problems.ts';
import type { Parsed, Problem } from './problems.ts';
import { checkSchema, isRecord, visiblePath, withoutNulls } from './schema.ts';
import { filterProblem, overlaps } from './subjects.ts';
import { parseTime, timeNanos } from './time.ts';

/** A parsed plan: the fields of the plan file with their defaults filled in. `{ "replay": plan }` parses to the same again. */
export interface ReplayPlan {
  /** Of a topic: `topic:NAME`, which no stream is called. */
  readonly stream: string;
  readonly subject_filters: readonly string[];
  /** null: of a stream. Absent in runs of older code. */
  readonly topic?: string | null;
  readonly from?: PlanFrom | null;
  readonly durable_consumer: string;
  readonly start_sequence: number | null;
  readonly start_time: string | null;
  readonly end_sequence: number | null;
  readonly end_time: string | null;
  /** Instead of a start and an end, which are then null in a plan file; in a description they are what it means now. */
  readonly window: string | null;
  readonly max_messages: number;
  /** null: adaptive. */
  readonly batch_size: number | null;
  readonly batch_bytes: number;
  readonly stop_after_idle_seconds: number;
  readonly dry_run: boolean;
  readonly report_file: string | null;
  readonly rate_limit_per_second: number | null;
  /** This and the next four are absent in runs of older code. */
  readonly rate_limit_bytes_per_second?: number | null;
  /** null: as fast as it goes. */
  readonly pace?: 'original' | null;
  /** null: there is no pace. */
  readonly pace_factor?: number | null;
  readonly pace_gap_seconds_max?: number | null;
  /** null: at any hour. */
  readonly allowed_hours?: AllowedHours | null;
  readonly require_approval: boolean;
  readonly approval_timeout_seconds: number;
  readonly max_rejects: number;
  readonly keep_consumer: boolean;
  readonly production_consumer: string | null;
}

/** Where the replay of a topic starts: `earliest`, an RFC 3339 time, or offsets by partition. */
export type PlanFrom = string | Readonly<Record<string, number>>;

/** A topic and its durable consumers have a stream per partition, and every record of a topic is in the scope. */
const topicScope: readonly string[] = ['replay-topic.>'];

function topicStreamName(topic: string): string {
  return `topic:${topic}`;
}

/** Takes the document, `{ "replay": { ... } }`. All problems at once. */
export function parsePlan(given: unknown): Parsed<ReplayPlan> {
  const document = withoutDerived(given);
  const checked = checkSchema(planFileSchema, document, { at: [], echo: true });
  const replay = isRecord(document) && Object.hasOwn(document, 'replay') ? document['replay'] : undefined;
  const between = isRecord(replay) ? betweenFields(withoutNulls(replaySchema, replay) as Record<string, unknown>) : [];
  if (!checked.ok) return { ok: false, problems: boundedProblems([...checked.problems, ...between]) };
  if (between.length > 0) return { ok: false, problems: boundedProblems(between) };
  return { ok: true, value: withDefaults(checked.value.replay) };
}

/** Takes the bytes of a plan file. All problems at once, those of the JSON included. */
export function parsePlanBytes(bytes: Uint8Array): Parsed<ReplayPlan> {
  const reading = readJson(bytes);
  const problems = jsonProblems(reading.findings, (path) => visiblePath(planFileSchema, path));
  if (reading.value === undefined) return { ok: false, problems: boundedProblems(problems) };
  const parsed = parsePlan(reading.value);
  if (problems.length === 0) return parsed;
  return { ok: false, problems: boundedProblems([...problems, ...(parsed.ok ? [] : parsed.problems)]) };
}

/** A start that lies in the future would replay nothing and look complete. */
export function checkStartTime(plan: ReplayPlan, nowNanos: bigint): readonly Problem[] {
  const [field, start] = isTime(plan.from) ? (['from', plan.from] as const) : (['start_time', plan.start_time] as const);
  if (start === null || timeNanos(start) <= nowNanos) return [];
  return [problemAt(['replay', field], `${shown(start)} is in the future; expected a time that has passed`)];
}

/** `lastSequence`: the last sequence that the stream has given out, 0 for a stream that never held a message. */
export function checkStartSequence(plan: ReplayPlan, lastSequence: number): readonly Problem[] {
  if (plan.start_sequence === null || plan.start_sequence <= lastSequence) return [];
  const end = lastSequence === 0 ? 'the stream has never held a message' : `the stream ends at ${lastSequence}`;
  return [problemAt(['replay', 'start_sequence'], `${plan.start_sequence} is past the end; ${end}`)];
}

/** A parsed plan of a topic names stream and scope too, which its file may not. */
function withoutDerived(document: unknown): unknown {
  if (!isRecord(document) || !isRecord(document['replay'])) return document;
  const { stream, subject_filters: filters, ...replay } = document['replay'];
  const { topic } = replay;
  const isParsed = typeof topic === 'string' && stream === topicStreamName(topic);
  return isParsed && JSON.stringify(filters) === JSON.stringify(topicScope) ? { ...document, replay } : document;
}

function withDefaults(replay: z.output<typeof replaySchema>): ReplayPlan {
  const filters = replay.subject_filters ?? (replay.subject_filter === undefined ? [] : [replay.subject_filter]);
  const source =
    replay.topic === undefined
      ? { stream: replay.stream!, subject_filters: filters, topic: null, from: null }
      : {
          stream: topicStreamName(replay.topic),
          subject_filters: topicScope,
          topic: replay.topic,
          from: replay.from!,
        };
  return {
    ...source,
    durable_consumer: replay.durable_consumer,
    start_sequence: replay.start_sequence ?? null,
    start_time: replay.start_time ?? null,
    end_sequence: replay.end_sequence ?? null,
    end_time: replay.end_time ?? null,
    window: replay.window ?? null,
    max_messages: replay.max_messages,
    batch_size: replay.batch_size ?? null,
    batch_bytes: replay.batch_bytes ?? planDefaults.batch_bytes,
    stop_after_idle_seconds: replay.stop_after_idle_seconds ?? planDefaults.stop_after_idle_seconds,
    dry_run: replay.dry_run ?? planDefaults.dry_run,
    report_file: replay.report_file ?? null,
    rate_limit_per_second: replay.rate_limit_per_second ?? null,
    rate_limit_bytes_per_second: replay.rate_limit_bytes_per_second ?? null,
    pace: replay.pace ?? null,
    pace_factor: replay.pace_factor ?? (replay.pace === undefined ? null : planDefaults.pace_factor),
    pace_gap_seconds_max: replay.pace_gap_seconds_max ?? (replay.pace === undefined ? null : planDefaults.pace_gap_seconds_max),
    allowed_hours: replay.allowed_hours ?? null,
    require_approval: replay.require_approval ?? planDefaults.require_approval,
    approval_timeout_seconds: replay.approval_timeout_seconds ?? planDefaults.approval_timeout_seconds,
    max_rejects: replay.max_rejects ?? planDefaults.max_rejects,
    keep_consumer: replay.keep_consumer ?? planDefaults.keep_consumer,
    production_consumer: replay.production_consumer ?? null,
  };
}

/** Rules between fields, on the values as given: zod skips such rules as soon as one field has a wrong type. */
function betweenFields(replay: Readonly<Record<string, unknown>>): Problem[] {
  const ofTopic = replay['topic'] !== undefined;
  return [
    ...(ofTopic ? topicProblems(replay) : streamProblems(replay)),
    ...filterListProblems(replay['subject_filters']),
    ...endProblems(replay),
    ...consumerProblems(replay),
    ...paceProblems(replay),
  ];
}

function streamProblems(replay: Readonly<Record<string, unknown>>): Problem[] {
  const problems = replay['stream'] === undefined ? exactlyOne(replay, 'stream', 'topic') : [];
  if (replay['from'] !== undefined) {
    problems.push(problemAt(['replay', 'from'], 'has no effect without topic; expected start_sequence, start_time or window'));
  }
  return [
    ...problems,
    ...(replay['window'] === undefined ? exactlyOne(replay, 'start_sequence', 'start_time') : besideWindow(replay)),
    ...exactlyOne(replay, 'subject_filter', 'subject_filters'),
  ];
}

const notOfTopics = [
  'stream',
  'subject_filter',
  'subject_filters',
  'start_sequence',
  'start_time',
  'end_sequence',
  'window',
  'pace',
];

function topicProblems(replay: Readonly<Record<string, unknown>>): Problem[] {
  const { from, end_time: end, durable_consumer: durable } = replay;
  const problems = notOfTopics
    .filter((field) => replay[field] !== undefined)
    .map((field) =>
      problemAt(['replay', field], 'stands together with topic; expected topic and from, and end_time for an end'),
    );
  if (from === undefined) {
    const expected = 'expected "earliest", a time, or offsets by partition such as { "0": 1200 }';
    problems.push(problemAt(['replay', 'from'], `missing; ${expected}`));
  }
  if (isRecord(from) && Object.keys(from).length === 0) {
    problems.push(problemAt(['replay', 'from'], 'names no partition; expected at least one, such as { "0": 1200 }'));
  }
  if (isTime(from) && isTime(end) && timeNanos(end) <= timeNanos(from)) {
    problems.push(problemAt(['replay', 'end_time'], `${shown(end)} is not after the start; expected a time after from`));
  }
  if (typeof durable === 'string' && new TextEncoder().encode(durable).length > nameBytesMax - laneSuffixBytes) {
    const most = nameBytesMax - laneSuffixBytes;
    problems.push(
      problemAt(['replay', 'durable_consumer'], `is longer than ${most} bytes, with which the name of each partition begins`),
    );
  }
  return problems;
}

/** `-p255` */
const laneSuffixBytes = 5;

function isTime(value: unknown): value is string {
  return typeof value === 'string' && parseTime(value).ok;
}

function exactlyOne(replay: Readonly<Record<string, unknown>>, one: string, other: string): Problem[] {
  const given = [one, other].filter((field) => replay[field] !== undefined);
  if (given.length === 1) return [];
  const fault = given.length === 0 ? 'missing' : `stands together with ${other}`;
  return [problemAt(['replay', one], `${fault}; expected exactly one of ${one} and ${other}`)];
}

function besideWindow(replay: Readonly<Record<string, unknown>>): Problem[] {
  return ['start_sequence', 'start_time', 'end_sequence', 'end_time']
    .filter((field) => replay[field] !== undefined)
    .map((field) => problemAt(['replay', field], 'stands together with window; expected a window, or a start and an end'));
}

function filterListProblems(filters: unknown): Problem[] {
  if (!Array.isArray(filters) || filters.length > subjectFiltersMax) return [];
  return filters.flatMap((later: unknown, index) => {
    if (!isFilter(later)) return [];
    const earlier = filters.findIndex((other: unknown, i) => i < index && isFilter(other) && overlaps(other, later));
    if (earlier === -1) return [];
    const pair = `${shown(later)} overlaps subject_filters[${earlier}], ${shown(filters[earlier])}`;
    return [problemAt(['replay', 'subject_filters', index], `${pair}; expected filters that share no subject`)];
  });
}

function endProblems(replay: Readonly<Record<string, unknown>>): Problem[] {
  const problems: Problem[] = [];
  const { start_sequence: first, end_sequence: last, start_time: from, end_time: until } = replay;
  if (isSequence(first) && isSequence(last) && last < first) {
    problems.push(
      problemAt(['replay', 'end_sequence'], `${last} is before the start; expected at least start_sequence, ${first}`),
    );
  }
  if (typeof from !== 'string' || typeof until !== 'string') return problems;
  const start = parseTime(from);
  const end = parseTime(until);
  if (start.ok && end.ok && end.nanos <= start.nanos) {
    problems.push(
      problemAt(['replay', 'end_time'], `${shown(until)} is not after the start; expected a time after start_time`),
    );
  }
  return problems;
}

function consumerProblems(replay: Readonly<Record<string, unknown>>): Problem[] {
  const { durable_consumer: durable, production_consumer: production } = replay;
  if (typeof durable !== 'string' || durable !== production) return [];
  return [problemAt(['replay', 'durable_consumer'], 'is the production_consumer; expected a durable consumer of its own')];
}

function paceProblems(replay: Readonly<Record<string, unknown>>): Problem[] {
  const { pace, allowed_hours: hours } = replay;
  const alone = ['pace_factor', 'pace_gap_seconds_max'].filter((field) => pace === undefined && replay[field] !== undefined);
  const problems = alone.map((field) =>
    problemAt(['replay', field], 'stands without pace; expected "pace": "original" beside it'),
  );
  if (!isRecord(hours) || typeof hours['from'] !== 'string' || hours['from'] !== hours['to']) return problems;
  return [
    ...problems,
    problemAt(['replay', 'allowed_hours', 'to'], `${shown(hours['to'])} is from; expected another time of day`),
  ];
}

function isFilter(value: unknown): value is string {
  return typeof value === 'string' && filterProblem(value) === undefined;
}

function isSequence(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

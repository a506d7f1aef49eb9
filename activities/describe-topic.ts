import { createHash } from 'node:crypto';
import type { Described, Range, RangeCount } from '../core/description.ts';
import { fingerprintText } from '../core/fingerprint.ts';
import { placesOf, readableIn, type LaneRange, type LogContent } from '../core/lanes.ts';
import { checkStartTime, type ReplayPlan } from '../core/plan.ts';
import { problemAt, type Problem } from '../core/problems.ts';
import { laneDurable } from '../core/run.ts';
import type { DescribeRequest } from '../core/steps.ts';
import type { ReplayTarget } from '../core/target.ts';
import { TopicError } from '../core/topic-errors.ts';
import { timeNanos } from '../core/time.ts';
import type { Partition } from '../jetstream/topics/partition-stream.ts';
import type { OpenedTopic } from '../jetstream/topics/registry.ts';
import type { Deps } from './deps.ts';
import { checkDeadLetter, deadLetterWarnings, objectionTo } from './describe-checks.ts';

const nanosPerMilli = 1_000_000n;

export interface CheckedPlan {
  readonly plan: ReplayPlan;
  readonly target: ReplayTarget;
  /** What is wrong with them as they stand. */
  readonly problems: readonly Problem[];
}

/** What the replay of a topic would do, read-only; see makeDescribeStream. */
export async function describeTopic(deps: Deps, request: DescribeRequest, checked: CheckedPlan): Promise<Described> {
  const { plan, target } = checked;
  const searchAttributes = await deps.runs.hasSearchAttributes();
  const problems = [...checked.problems, ...(await checkDeadLetter(deps, target))];
  const opened = await findTopic(deps, plan);
  if ('path' in opened) return { kind: 'refused', problems: [...problems, opened], searchAttributes };
  problems.push(...checkWritten(deps, opened, target), ...checkPartitions(plan, opened));
  const fingerprint = createHash('sha256').update(fingerprintText(plan, target)).digest('hex').slice(0, 16);
  const cluster = await deps.runs.clusterId();
  const lanes: LaneFound[] = [];
  for (const partition of partitionsOf(plan, opened)) {
    const found = await describeLane(deps, request, { plan, partition, fingerprint, cluster });
    if ('content' in found) lanes.push(found);
    else problems.push(...found.problems);
  }
  problems.push(...checkStart(plan, lanes));
  if (problems.length > 0) return { kind: 'refused', problems, searchAttributes };
  const ranges = lanes.map(({ range }) => range);
  const places = placesOf(ranges, ranges.map(asPlace));
  const count = countOf(lanes);
  return {
    kind: 'described',
    predecessor: null,
    description: {
      plan,
      target,
      range: rangeOf(plan, opened, { end: places.end, isBounded: ranges.every(({ last }) => last !== null) }),
      lanes: ranges,
      cursor: places.cursor,
      resumed: lanes.some(({ resumed }) => resumed),
      fingerprint,
      cluster,
      families: plan.subject_filters,
      sink: { type: target.sink.type, key: target.idempotency.key, duplicatesSafe: true },
      count,
      warnings: [...warningsOf(plan, opened, lanes, count), ...(await deadLetterWarnings(deps, target))],
      searchAttributes,
    },
  };
}

function asPlace({ cursor, streamLast }: LaneRange) {
  return { cursor, streamLast, idleSinceMs: null, rangeEnded: false };
}

async function findTopic({ topics }: Deps, plan: ReplayPlan): Promise<OpenedTopic | Problem> {
  try {
    const opened = await topics.open(plan.topic!);
    await topics.content(opened.partitions[0]!);
    return opened;
  } catch (error) {
    if (!(error instanceof TopicError)) throw error;
    return problemAt(['replay', 'topic'], `${error.message} ${error.next}`);
  }
}

/** What is written into a partition would be replayed again. */
function checkWritten({ targets }: Deps, { partitions }: OpenedTopic, { sink }: ReplayTarget): Problem[] {
  const streams = new Set(partitions.map(({ stream }) => stream));
  return targets
    .streamsWritten(sink)
    .filter((stream) => streams.has(stream))
    .map((stream) =>
      problemAt(['sink', 'stream'], `"${stream}" belongs to the topic that the plan reads; expected another one`),
    );
}

function checkPartitions({ from }: ReplayPlan, { topic }: OpenedTopic): Problem[] {
  if (typeof from !== 'object' || from === null) return [];
  return Object.keys(from)
    .filter((partition) => Number(partition) >= topic.partitions)
    .map((partition) =>
      problemAt(['replay', 'from', partition], `no such partition; this topic has 0 to ${topic.partitions - 1}`),
    );
}

function partitionsOf({ from }: ReplayPlan, { partitions }: OpenedTopic): readonly Partition[] {
  if (typeof from !== 'object' || from === null) return partitions;
  return partitions.filter(({ partition }) => Object.hasOwn(from, partition));
}

interface LaneFound {
  readonly range: LaneRange;
  readonly content: LogContent & { readonly bytes: number };
  readonly resumed: boolean;
  readonly altered: boolean;
}

interface LaneAsked {
  readonly plan: ReplayPlan;
  readonly partition: Partition;
  readonly fingerprint: string;
  readonly cluster: string;
}

async function describeLane(
  deps: Deps,
  request: DescribeRequest,
  { plan, partition, fingerprint, cluster }: LaneAsked,
): Promise<LaneFound | { readonly problems: readonly Problem[] }> {
  const [first, end] = [await startOf(deps, plan, partition), await endOf(deps, plan, partition)];
  const content = await deps.topics.content(partition);
  const path = ['replay', 'from', ...(typeof plan.from === 'object' ? [String(partition.partition)] : [])];
  if (first > content.next) {
    return {
      problems: [problemAt(path, `${first} is past the end; partition ${partition.partition} ends at ${content.next}`)],
    };
  }
  const durable = laneDurable(plan.durable_consumer, partition.partition);
  const seen = plan.dry_run ? null : await deps.source.readConsumer(partition.stream, durable);
  const message = seen === null ? null : await objectionTo(seen, { runs: deps.runs, request, fingerprint, cluster });
  if (message !== null) {
    const problem = problemAt(['replay', 'durable_consumer'], `"${durable}" of partition ${partition.partition} ${message}`);
    return { problems: [problem] };
  }
  const altered = seen !== null && !seen.completed && seen.altered.length > 0;
  const resumed = seen !== null && !seen.completed && !altered;
  const range: LaneRange = {
    partition: partition.partition,
    stream: partition.stream,
    incarnation: partition.incarnation,
    first: first + 1,
    last: end,
    streamLast: content.next,
    cursor: resumed ? Math.max(first + 1, seen.startSequence) : first + 1,
    predecessor: seen?.owner ?? null,
  };
  return { range, content, resumed, altered };
}

async function startOf({ topics }: Deps, { from }: ReplayPlan, partition: Partition): Promise<number> {
  if (typeof from === 'object' && from !== null) return from[partition.partition]!;
  if (from !== 'earliest') return await topics.offsetAt(partition, timeNanos(from!));
  const { cold, hot } = await topics.content(partition);
  return Math.min(hot, cold[0]?.first ?? hot);
}

/** The last sequence, which is the first offset that is beyond; null: none, or not known before that time has come. */
async function endOf({ topics }: Deps, { end_time: end }: ReplayPlan, partition: Partition): Promise<number | null> {
  return end === null || isLater(end) ? null : await topics.offsetAt(partition, timeNanos(end));
}

function isLater(time: string): boolean {
  return timeNanos(time) > BigInt(Date.now()) * nanosPerMilli;
}

function checkStart(plan: ReplayPlan, lanes: readonly LaneFound[]): readonly Problem[] {
  const future = checkStartTime(plan, BigInt(Date.now()) * nanosPerMilli);
  const isTime = typeof plan.from === 'string' && plan.from !== 'earliest';
  const nothing = lanes.length > 0 && lanes.every(({ range }) => range.first > range.streamLast);
  if (future.length > 0 || !isTime || !nothing) return future;
  return [problemAt(['replay', 'from'], 'nothing was appended at or after it; expected a time before the end of the topic')];
}

function rangeOf(
  plan: ReplayPlan,
  { topic }: OpenedTopic,
  { end, isBounded }: { readonly end: number; readonly isBounded: boolean },
): Range {
  const endTimeNanos = plan.end_time !== null && isLater(plan.end_time) ? timeNanos(plan.end_time).toString() : null;
  return { incarnation: topic.id, first: 1, last: isBounded ? end : null, endTimeNanos, streamLast: end };
}

/** By what manifests and streams say; whether each cold object is really there shows when it is read. */
function countOf(lanes: readonly LaneFound[]): RangeCount {
  let [messages, length, bytes] = [0, 0, 0];
  for (const { range, content } of lanes) {
    const span = {
      first: range.cursor - 1,
      next: Math.max(range.cursor - 1, Math.min(range.last ?? Infinity, range.streamLast)),
    };
    const records = readableIn(content, span);
    const all = readableIn(content, { first: 0, next: content.next });
    messages += records;
    length += span.next - span.first;
    bytes += all === 0 ? 0 : Math.round((content.bytes * records) / all);
  }
  return { messages, bytes, exact: { messages: true, bytes: false }, gaps: length - messages };
}

function warningsOf(plan: ReplayPlan, { topic }: OpenedTopic, lanes: readonly LaneFound[], count: RangeCount): string[] {
  const warnings: string[] = [];
  const named = (some: readonly LaneFound[]) =>
    some.map(({ range: { partition, cursor } }) => `${partition} at ${cursor - 1}`).join(', ');
  const resumed = lanes.filter((lane) => lane.resumed);
  const altered = lanes.filter((lane) => lane.altered);
  if (resumed.length > 0)
    warnings.push(`An earlier run of this plan stopped: this one goes on there (partition ${named(resumed)}).`);
  if (altered.length > 0) {
    warnings.push(
      `Somebody changed durable consumers of an earlier run of this plan: these partitions begin at their start again (${named(altered)}).`,
    );
  }
  if (lanes.length < topic.partitions) {
    warnings.push(
      `${topic.partitions - lanes.length} of ${topic.partitions} partitions are not named in "from": they are left out.`,
    );
  }
  if ((count.gaps ?? 0) > 0) warnings.push(`The range is partly gone: ${count.gaps} offsets are neither hot nor cold.`);
  if (lanes.some(({ range }) => range.last === null) && plan.max_messages > count.messages) {
    warnings.push(`The plan has no end: it follows the topic until it is drained for ${plan.stop_after_idle_seconds} s.`);
  }
  if (count.messages === 0) warnings.push('No record is in the range of the plan.');
  return warnings;
}

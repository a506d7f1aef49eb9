import { createHash } from 'node:crypto';
import type { Owner } from '../core/consumer.ts';
import type { Described, Description, Range, RangeCount } from '../core/description.ts';
import { ReplayFault } from '../core/errors.ts';
import { fingerprintText } from '../core/fingerprint.ts';
import { ackPendingMin } from '../core/pacing.ts';
import { checkStartSequence, checkStartTime, parsePlan, type ReplayPlan } from '../core/plan.ts';
import type { Problem } from '../core/problems.ts';
import type { DescribeRequest } from '../core/steps.ts';
import { familyOf, overlaps } from '../core/subjects.ts';
import { checkPlanAgainstTarget, type ReplayTarget } from '../core/target.ts';
import { timeNanos } from '../core/time.ts';
import { beginning, boundWindow, type Occasion } from '../core/window.ts';
import type { StreamFacts } from '../jetstream/source.ts';
import type { Deps } from './deps.ts';
import { checkCertified, checkDeadLetter, deadLetterWarnings, objectionTo } from './describe-checks.ts';
import { describeTopic } from './describe-topic.ts';
import { step, type StepDeps } from './step.ts';

/**
 * Everything that can be known before the first batch, read-only: nothing is created, no sink is built. What is wrong comes
 * back as one list of problems, a value rather than a failure, so that nothing retries it.
 */
export function makeDescribeStream(deps: StepDeps): (request: DescribeRequest) => Promise<Described> {
  return (request) => step(deps.faults, () => describeStream(deps, request));
}

/** See makeDescribeStream. */
export async function describeStream(deps: Deps, request: DescribeRequest): Promise<Described> {
  const [given, target] = [parsePlan(request.plan), await deps.targets.resolve(request.target)];
  if (!given.ok || !target.ok)
    return await refused(deps, [
      ...(given.ok ? [] : within('plan', given.problems)),
      ...(target.ok ? [] : within('target', target.problems)),
    ]);
  const written = deps.targets.streamsWritten(target.value.sink);
  const problems = [...checkPlanAgainstTarget(given.value, target.value, written), ...checkCertified(deps, target.value)];
  if (given.value.topic != null)
    return await describeTopic(deps, request, { plan: given.value, target: target.value, problems });
  const facts = await findStream(deps, given.value.stream);
  if (facts === null) {
    return await refused(deps, [
      ...problems,
      { path: 'replay.stream', message: `no stream "${given.value.stream}"; nats stream ls shows the streams there are` },
    ]);
  }
  const plan = boundWindow(given.value, occasionOf(request, facts), facts);
  const range = await resolveRange(deps, plan, facts);
  const durable = await checkDurable(deps, request, { plan, target: target.value });
  problems.push(
    ...checkStream(facts, plan),
    ...checkOrigins(facts, written),
    ...range.problems,
    ...durable.problems,
    ...(await checkDeadLetter(deps, target.value)),
  );
  if (problems.length > 0) return await refused(deps, problems);
  const description = await describe(deps, { plan, target: target.value, facts, range: range.range, durable });
  const astray = checkScope(facts, description);
  if (astray.length > 0) return await refused(deps, astray);
  return {
    kind: 'described',
    predecessor: durable.predecessor,
    description,
  };
}

async function refused({ runs }: Deps, problems: readonly Problem[]): Promise<Described> {
  return { kind: 'refused', problems, searchAttributes: await runs.hasSearchAttributes() };
}

/** A problem of a whole file has no path of its own: here plan and target come in one request. */
function within(name: string, problems: readonly Problem[]): Problem[] {
  return problems.map((problem) => (problem.path === '' ? { ...problem, path: name } : problem));
}

function occasionOf({ at, lastSuccess }: DescribeRequest, facts: StreamFacts): Occasion {
  return { atNanos: at === undefined ? facts.serverTimeNanos : timeNanos(at), lastSuccess: lastSuccess ?? null };
}

async function findStream({ source }: Deps, stream: string): Promise<StreamFacts | null> {
  try {
    return await source.describe(stream);
  } catch (error) {
    if (error instanceof ReplayFault && error.code === 'stream_missing') return null;
    throw error;
  }
}

function checkStream(facts: StreamFacts, plan: ReplayPlan): Problem[] {
  const problems: Problem[] = [];
  if (facts.retention !== 'limits') {
    problems.push({
      path: 'replay.stream',
      message: `the stream has ${facts.retention} retention: an ACK there destroys messages; only streams with limits retention are replayed`,
    });
  }
  const cap = facts.consumerLimits.maxAckPending;
  if (cap !== null && cap < ackPendingMin(plan.batch_size)) {
    problems.push({
      path: 'replay.batch_size',
      message: `the stream allows its consumers ${cap} unacknowledged messages; give a batch_size of at most ${Math.floor(cap / ackPendingMin(1))}`,
    });
  }
  return problems;
}

/** What is written into an origin of the stream comes back into it, and would be replayed again. */
function checkOrigins(facts: StreamFacts, written: readonly string[]): Problem[] {
  return written
    .filter((stream) => facts.origins.includes(stream))
    .map((stream) => ({
      path: 'sink.stream',
      message: `the server copies "${stream}" into the stream that the plan reads (mirror or source), so that the replay would feed itself; expected another one`,
    }));
}

/** A filter that none of the stream's subjects can match, and that matches nothing, is a slip of the pen. */
function checkScope(facts: StreamFacts, { plan, count }: Description): Problem[] {
  if (count.messages > 0 || !count.exact.messages || facts.subjects.length === 0) return [];
  return plan.subject_filters
    .filter((filter) => !facts.subjects.some((subject) => overlaps(filter, subject)))
    .map((filter) => ({
      path: 'replay.subject_filters',
      message: `"${filter}" matches no subject of the stream, which takes ${facts.subjects.join(', ')}`,
    }));
}

interface Resolved {
  readonly range: Range;
  readonly problems: readonly Problem[];
}

async function resolveRange({ source }: Deps, plan: ReplayPlan, facts: StreamFacts): Promise<Resolved> {
  const now = facts.serverTimeNanos;
  // A window in which nothing was stored is no mistake.
  const windowed = plan.window !== null;
  const problems = windowed ? [] : [...checkStartTime(plan, now), ...checkStartSequence(plan, facts.lastSequence)];
  const first = plan.start_sequence ?? (await source.sequenceAt(facts, timeNanos(plan.start_time!)));
  if (!windowed && problems.length === 0 && first > facts.lastSequence) {
    problems.push({
      path: 'replay.start_time',
      message: 'nothing was stored at or after it; expected a time before the end of the stream',
    });
  }
  const endNanos = plan.end_time === null ? null : timeNanos(plan.end_time);
  const endsLater = endNanos !== null && endNanos > now;
  const byTime = endNanos === null || endsLater ? null : (await source.sequenceAt(facts, endNanos)) - 1;
  const last = byTime === null ? plan.end_sequence : Math.min(byTime, plan.end_sequence ?? Infinity);
  return {
    problems,
    range: {
      incarnation: facts.incarnation,
      first,
      last,
      endTimeNanos: endsLater ? endNanos.toString() : null,
      streamLast: facts.lastSequence,
    },
  };
}

interface Durable {
  readonly problems: readonly Problem[];
  readonly predecessor: Owner | null;
  /** Where an unfinished run of the same plan stopped; null: from the start. */
  readonly resumeAt: number | null;
  /** Settings that somebody changed: the durable may have passed over records, so its floor means nothing. */
  readonly altered: readonly string[];
  readonly fingerprint: string;
  readonly cluster: string;
}

async function checkDurable(
  { source, runs }: Deps,
  request: DescribeRequest,
  { plan, target }: { readonly plan: ReplayPlan; readonly target: ReplayTarget },
): Promise<Durable> {
  const fingerprint = createHash('sha256').update(fingerprintText(plan, target)).digest('hex').slice(0, 16);
  const cluster = await runs.clusterId();
  const none: Durable = { problems: [], predecessor: null, resumeAt: null, altered: [], fingerprint, cluster };
  if (plan.dry_run) return none;
  const seen = await source.readConsumer(plan.stream, plan.durable_consumer);
  if (seen === null) return none;
  const message = await objectionTo(seen, { runs, request, fingerprint, cluster });
  if (message !== null) return { ...none, problems: [{ path: 'replay.durable_consumer', message }] };
  const altered = seen.completed ? [] : seen.altered;
  return {
    ...none,
    predecessor: seen.owner,
    altered,
    resumeAt: seen.completed || altered.length > 0 ? null : seen.ackFloor + 1,
  };
}

interface Found {
  readonly plan: ReplayPlan;
  readonly target: ReplayTarget;
  readonly facts: StreamFacts;
  readonly range: Range;
  readonly durable: Durable;
}

async function describe(deps: Deps, found: Found): Promise<Description> {
  const { plan, target, facts, durable } = found;
  const cursor = beginning(plan, found.range.first, durable.resumeAt);
  const range = plan.window === null ? found.range : { ...found.range, first: cursor };
  const count = await countRange(deps, {
    facts,
    filters: plan.subject_filters,
    first: cursor,
    last: Math.min(range.last ?? Infinity, facts.lastSequence),
  });
  return {
    plan,
    target,
    range,
    cursor,
    resumed: durable.resumeAt !== null,
    fingerprint: durable.fingerprint,
    cluster: durable.cluster,
    families: [...new Set(plan.subject_filters.map(familyOf))],
    sink: { type: target.sink.type, key: target.idempotency.key, duplicatesSafe: true },
    count,
    warnings: await warningsOf(deps, { plan, target, facts, range, durable, count }),
    searchAttributes: await deps.runs.hasSearchAttributes(),
  };
}

async function countRange(
  { source }: Deps,
  scope: { readonly facts: StreamFacts; readonly filters: readonly string[]; readonly first: number; readonly last: number },
): Promise<RangeCount> {
  const { facts, filters, first, last } = scope;
  if (first > last) return { messages: 0, bytes: 0, exact: { messages: true, bytes: true }, gaps: 0 };
  const inScope = await source.count(facts, { filters, first, last });
  const all = await source.count(facts, { filters: ['>'], first, last });
  return { ...inScope, gaps: all.exact.messages ? last - first + 1 - all.messages : null };
}

async function warningsOf(deps: Deps, found: Found & { readonly count: RangeCount }): Promise<string[]> {
  const { plan, target, facts, range, durable, count } = found;
  const warnings: string[] = [];
  if (durable.resumeAt !== null)
    warnings.push(
      plan.window !== null && durable.resumeAt > range.first
        ? `An earlier run of this plan stopped at ${durable.resumeAt}: what it wrote of this window counts as duplicate.`
        : `An earlier run of this plan stopped at ${durable.resumeAt}: this one goes on there.`,
    );
  if (durable.altered.length > 0) {
    warnings.push(
      `Somebody changed the durable consumer of an earlier run of this plan (${durable.altered.join(', ')}): this run begins at the start again.`,
    );
  }
  if (range.first < facts.firstSequence) {
    warnings.push(`The range is partly gone: the stream begins at ${facts.firstSequence}, the plan at ${range.first}.`);
  }
  warnings.push(...(await deadLetterWarnings(deps, target)));
  if (range.last === null && plan.max_messages > count.messages) {
    warnings.push(`The plan has no end: it follows the stream until it is drained for ${plan.stop_after_idle_seconds} s.`);
  }
  if (count.exact.messages && count.messages === 0) warnings.push('No message in the range matches the scope of the plan.');
  if (!count.exact.messages) warnings.push('The number of messages is an estimate: the stream does not allow direct get.');
  if (!(await deps.source.timesRise(facts, range.first, Math.min(range.last ?? Infinity, facts.lastSequence)))) {
    warnings.push(
      'Message times do not rise with the sequence (a mirror or sources): time bounds are resolved to sequences by the first match.',
    );
  }
  return warnings;
}

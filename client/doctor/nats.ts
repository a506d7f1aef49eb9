import type { NatsConnection } from 'nats';
import { faultEntry, ReplayFault } from '../../core/errors.ts';
import { counted, formatProblems } from '../../core/problems.ts';
import type { ReplayPlan } from '../../core/plan.ts';
import type { ReplayTarget } from '../../core/target.ts';
import { connectNats, readNatsSettings, type NatsSettings } from '../../jetstream/connection.ts';
import { createSource, type Source, type StreamFacts } from '../../jetstream/source.ts';
import { bad, doubtful, good, skipped, type Check } from './check.ts';

const versionMin = [2, 10] as const;
/** A start time from a clock that is further off may miss what it means. */
const clockOffMsMax = 2_000;

export interface Asked {
  readonly plan: ReplayPlan;
  /** null: the target is a name, which only the worker can look up. */
  readonly target: ReplayTarget | null;
}

/** The server behind NATS_URL, as this shell reaches it; with a plan also its stream, and what the user may do there. */
export async function checkNats(asked: Asked | null): Promise<Check[]> {
  const settings = readNatsSettings(process.env);
  if (!settings.ok) return [bad('nats', formatProblems(settings.problems), 'Mend these variables: docs/reference/settings.md')];
  let nats: NatsConnection;
  try {
    nats = await connectNats(settings.value);
  } catch (error) {
    return [faulty('nats', error)];
  }
  try {
    return [checkVersion(nats), ...(await checkPlan(nats, settings.value, asked))];
  } finally {
    await nats.close();
  }
}

function checkVersion({ info }: NatsConnection): Check {
  const version = info?.version ?? '0.0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const old = major < versionMin[0] || (major === versionMin[0] && minor < versionMin[1]);
  if (old) return bad('nats', `server ${version} is too old`, `Update it to ${versionMin.join('.')} or newer.`);
  if (info?.jetstream !== true)
    return bad('nats', `server ${version} has no JetStream for this account`, 'Enable it: nats-server -js, or the account.');
  return good('nats', `server ${version} with JetStream`);
}

async function checkPlan(nats: NatsConnection, settings: NatsSettings, asked: Asked | null): Promise<Check[]> {
  if (asked === null) return [skipped('stream', 'give PLAN and TARGET to look at the stream, the permissions and the clocks')];
  const source = createSource(nats, settings);
  const { plan, target } = asked;
  try {
    const facts = await source.describe(plan.stream);
    return [
      good('stream', `${plan.stream}: ${counted(facts.messages, 'message')}, ${facts.firstSequence} to ${facts.lastSequence}`),
      checkClock(facts),
      ...(await checkPermissions(source, facts, { plan, target })),
    ];
  } catch (error) {
    if (!(error instanceof ReplayFault) || error.code !== 'stream_missing') return [faulty('stream', error)];
    return [
      bad(
        'stream',
        `There is no stream ${plan.stream}.`,
        'Mend replay.stream in the plan, or create it: nats stream ls, nats stream add',
      ),
    ];
  }
}

function checkClock({ serverTimeNanos }: StreamFacts): Check {
  const offMs = Date.now() - Number(serverTimeNanos / 1_000_000n);
  if (Math.abs(offMs) <= clockOffMsMax)
    return good('clocks', `this machine and the NATS server agree within ${clockOffMsMax / 1_000} s`);
  const seconds = Math.round(Math.abs(offMs) / 1_000);
  return doubtful(
    'clocks',
    `this machine is ${seconds} s ${offMs > 0 ? 'ahead of' : 'behind'} the NATS server`,
    'Synchronize the clocks (NTP): start times and windows are compared with the times of the server.',
  );
}

/** What can be tried without a trace; creating, deleting and acknowledging cannot. */
async function checkPermissions(source: Source, facts: StreamFacts, { plan, target }: Asked): Promise<Check[]> {
  const first = Math.max(1, facts.firstSequence);
  const tries: [string, () => Promise<unknown>][] = [
    ['read its messages', () => source.count(facts, { filters: plan.subject_filters, first, last: facts.lastSequence })],
    ['look at the durable consumer', () => source.readConsumer(plan.stream, plan.durable_consumer)],
  ];
  const subject = target?.dead_letter?.subject;
  const checks: Check[] = [];
  for (const [what, attempt] of tries) {
    checks.push(
      await attempt().then(
        () => good('permissions', `may ${what}`),
        (error: unknown) => faulty('permissions', error),
      ),
    );
  }
  if (subject === undefined) return checks;
  const bound = await source.isBound(subject).catch((error: unknown) => faulty('dead letters', error));
  if (typeof bound === 'object') return [...checks, bound];
  const create = `nats stream add DLQ --subjects "${subject}" --defaults --dupe-window 1h`;
  return [
    ...checks,
    bound ? good('dead letters', `a stream takes ${subject}`) : bad('dead letters', `no stream takes ${subject}`, create),
  ];
}

function faulty(name: string, error: unknown): Check {
  if (!(error instanceof ReplayFault)) throw error;
  return bad(name, error.message, faultEntry(error.code).next);
}

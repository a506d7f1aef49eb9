import { noopMetricMeter } from '@temporalio/common';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createActivities, type Activities } from '../../../activities/index.ts';
import { noLimits, paceAfter, paceAtStart, paceWaitMs, type PaceLimits } from '../../../core/pacing.ts';
import type { Owner } from '../../../core/consumer.ts';
import type { Description } from '../../../core/description.ts';
import { faultEntry, isFaultCode } from '../../../core/errors.ts';
import type { Receipt } from '../../../core/receipt.ts';
import type { Report } from '../../../core/report.ts';
import * as runs from '../../../core/run.ts';
import type { RunState } from '../../../core/run.ts';
import type { DeadLettered, Delivery } from '../../../core/steps.ts';
import { seeded, type Random } from './random.ts';
import { createWorld, stream, Terminated, WorkerLost, type Rates, type World } from './world.ts';

/** As in workflows/activities.ts. */
const attemptsMax = 5;
const quiet = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };
const stepsMax = 2_000;
const effectsBeforeCalm = 250;

export interface Played {
  readonly world: World;
  /** Of the last run, the one that completed. */
  readonly report: Report;
  readonly first: number;
  readonly trace: readonly string[];
}

/**
 * One schedule: the loop of workflows/replay-plan.ts around the real durable steps, with losses, restarts and meddling between
 * any two effects as the seed says. Throws where an invariant breaks.
 */
export async function play(seed: number): Promise<Played> {
  const random = seeded(seed);
  const rates: Rates = {
    crash: random.oneIn(4) ? 0 : 4 + random.below(40),
    meddle: random.oneIn(3) ? 0 : 8 + random.below(40),
    terminate: random.oneIn(2) ? 0 : 60 + random.below(200),
  };
  const size = { last: 10 + random.below(50), badOneIn: 3 + random.below(12) };
  const world = createWorld(random, size, rates);
  const game: Game = {
    random,
    world,
    activities: createActivities(world.deps, noopMetricMeter),
    limits: limitsOf(seed),
    steps: 0,
  };
  const batch = 1 + random.below(12);
  for (let starts = 1; ; starts++) {
    const state = begin(game, batch, starts);
    const first = state.cursor;
    try {
      const report = await playRun(game, state);
      return { world, report, first, trace: world.trace };
    } catch (error) {
      if (!(error instanceof Terminated)) throw annotated(error, `seed ${seed}\n${world.trace.slice(-80).join('\n')}`);
      revive(game);
    }
  }
}

/** Apart from the other decisions, so that a seed without a pace tells the story that it always told. */
function limitsOf(seed: number): PaceLimits {
  if (seed % 3 === 1) return { ...noLimits, original: { factor: 1 + (seed % 7), gapMsMax: 5_000 } };
  return seed % 15 === 2 ? { ...noLimits, bytesPerSecond: 5 } : noLimits;
}

/** Another worker, which knows nothing of what the lost one had pulled ahead. */
function revive(game: Game): void {
  game.world.revive();
  game.activities = createActivities(game.world.deps, noopMetricMeter);
}

interface Game {
  readonly random: Random;
  readonly world: World;
  activities: Activities;
  readonly limits: PaceLimits;
  steps: number;
}

function annotated(error: unknown, story: string): Error {
  const message = error instanceof Error ? error.message : String(error);
  return new Error(`${message}, ${story}`, { cause: error });
}

/** What describing finds: the range, and where an unfinished run of the same plan stopped. */
function begin({ world }: Game, batch: number, starts: number): RunState {
  const owner: Owner = { cluster: 'c', namespace: 'n', workflowId: 'w', firstRunId: `r${starts}`, fingerprint: 'f' };
  const floor = world.ackFloor();
  const cursor = floor === null ? 1 : floor + 1;
  const inside = [...world.messages.keys()].filter((n) => n >= cursor).length;
  const description: Description = {
    plan: {
      stream,
      subject_filters: ['s.>'],
      durable_consumer: 'd',
      start_sequence: 1,
      start_time: null,
      end_sequence: world.last,
      end_time: null,
      max_messages: 1_000_000,
      batch_size: batch,
      batch_bytes: 1_000_000,
      stop_after_idle_seconds: 1,
      dry_run: false,
      report_file: null,
      rate_limit_per_second: null,
      max_rejects: 1_000,
      window: null,
      require_approval: false,
      approval_timeout_seconds: 86_400,
      keep_consumer: false,
      production_consumer: null,
    },
    target: {
      sink: { type: 'memory' },
      idempotency: { key: 'stream_sequence', field: null, key_conflicts: 'reject' },
      dead_letter: { subject: 'dlq' },
    },
    range: {
      incarnation: '2026-01-01T00:00:00.000000000Z',
      first: 1,
      last: world.last,
      endTimeNanos: null,
      streamLast: world.last,
    },
    cursor,
    resumed: floor !== null,
    fingerprint: 'f',
    cluster: 'c',
    families: ['s.>'],
    sink: { type: 'memory', key: 'stream_sequence', duplicatesSafe: true },
    count: { messages: inside, bytes: inside, exact: { messages: true, bytes: true }, gaps: 0 },
    warnings: [],
    searchAttributes: false,
  };
  world.trace.push(`run ${starts} from ${cursor}`);
  return runs.startRun(description, owner, world.ownerOfDurable(), 0);
}

/** The loop of replayBatches in workflows/replay-plan.ts, and its end. */
async function playRun(game: Game, started: RunState): Promise<Report> {
  const { random, world } = game;
  let run = started;
  let acknowledging: (() => Promise<void>) | null = null;
  const awaitAck = async (): Promise<void> => {
    await acknowledging?.();
    acknowledging = null;
  };
  const beginAck = (): void => {
    const current = run;
    const receipt = runs.takeUnacknowledged(run);
    if (receipt !== null) acknowledging = () => acknowledge(game, current, receipt);
  };
  let nowMs = 1_000;
  let timerFired = false;
  for (;;) {
    if (game.steps++ > stepsMax) throw new Error('the run does not end');
    if (world.trace.length > effectsBeforeCalm) world.calm();
    nowMs += 400;
    const reason = runs.stopReason(run, nowMs);
    if (reason !== null) break;
    // A pause, a rate limit or continue-as-new: the ACK does not ride with the next delivery.
    if (random.oneIn(4)) beginAck();
    if (random.oneIn(15)) {
      beginAck();
      await awaitAck();
      run = structuredClone(run);
      world.trace.push('continued as new');
    }
    // The ACK of the last batch may be taken before, within or after this delivery.
    if (acknowledging !== null && random.oneIn(3)) await awaitAck();
    if (acknowledging !== null && random.oneIn(2)) world.inNextDelivery = awaitAck;
    run.pace = paceAtStart(run.pace, nowMs, timerFired);
    const delivery = await deliver(game, run, nowMs);
    world.inNextDelivery = null;
    const letters = await storeDeadLetters(game, run, delivery);
    await awaitAck();
    runs.settle(run, delivery, letters, nowMs);
    const sent = { records: delivery.receipt?.count ?? 0, bytes: delivery.bytes, stretch: delivery.stretch };
    run.pace = paceAfter(run.pace, sent, game.limits);
    const waitMs = paceWaitMs(run.pace.dueMs, nowMs);
    timerFired = waitMs > 0;
    nowMs += waitMs;
  }
  await awaitAck();
  beginAck();
  await awaitAck();
  const [request] = runs.closeRequests(run, 'end_of_range');
  runs.noteClosed(run, [await healed(game, () => game.activities.closeRun(request!))]);
  return runs.report(run, 'completed', 'end_of_range', nowMs);
}

async function deliver(game: Game, run: RunState, nowMs: number): Promise<Delivery> {
  for (;;) {
    const perSecond = game.random.oneIn(3) ? 1_000_000 : null;
    const delivery = await healed(game, () => {
      const request = runs.beginDelivery(run, { ...game.limits, perSecond }, nowMs);
      return game.activities.deliverBatch({ ...request, furtherMs: game.random.oneIn(4) ? 0 : Infinity });
    });
    runs.noteDelivered(run, delivery, nowMs);
    const code = runs.objection(run, delivery);
    if (code === null) return delivery;
    // Of the three things an operator may do each is as good here as another.
    const decision = ([null, 'dead-letter', 'retry'] as const)[code === 'drift' ? game.random.below(2) : 0]!;
    game.world.trace.push(`blocked: ${code}, ${decision ?? 'resume'}`);
    runs.overrule(run, code, delivery, decision);
  }
}

async function storeDeadLetters(game: Game, run: RunState, delivery: Delivery): Promise<DeadLettered> {
  const rejects = runs.sortRejects(run, delivery).toDeadLetter;
  if (rejects.length === 0) return { stored: 0, lostBodies: 0 };
  const request = { replay: runs.replayRef(run), target: run.description.target, rejects };
  return await healed(game, () => game.activities.deadLetter(request));
}

async function acknowledge(game: Game, run: RunState, receipt: Receipt): Promise<void> {
  try {
    runs.noteAcknowledged(run, await tried(game, () => game.activities.acknowledge(receipt)));
  } catch (error) {
    if (error instanceof Terminated || !isStepFailure(error)) throw error;
    runs.noteAcknowledged(run, { acked: 0, deferred: receipt.count });
  }
}

/** Blocked, and tried again: as `healed` of workflows/control.ts. */
async function healed<T>(game: Game, step: () => Promise<T>): Promise<T> {
  for (;;) {
    if (game.steps++ > stepsMax) throw new Error('the step does not heal');
    try {
      return await tried(game, step);
    } catch (error) {
      if (error instanceof Terminated || !isStepFailure(error)) throw error;
      game.world.trace.push('blocked');
    }
  }
}

/** What Temporal makes of a step: attempts until it succeeds, fails for good, or has failed too often. */
async function tried<T>(game: Game, step: () => Promise<T>): Promise<T> {
  const { world } = game;
  for (let attempt = 1; ; attempt++) {
    const cuts = world.cuts();
    const outcome = await new MockActivityEnvironment({ attempt }, { logger: quiet }).run(step).then(
      (value) => ({ ok: true as const, value: value as T }),
      (error: unknown) => ({ ok: false as const, error }),
    );
    // Whatever a lost worker came to, nobody hears of it; and only the world knows, since a step may have caught it.
    const cut = world.cutOff(cuts);
    if (cut instanceof Terminated) throw cut;
    if (cut instanceof WorkerLost) {
      revive(game);
      if (attempt === attemptsMax) throw lost();
      continue;
    }
    if (outcome.ok) return outcome.value;
    const { error } = outcome;
    if (!isStepFailure(error)) throw error;
    const code = error.type ?? '';
    // Anything unexpected is a fault of the simulation, or one that it has found.
    if (code === 'unexpected') throw new Error('unexpected', { cause: error });
    if (attempt === attemptsMax || (isFaultCode(code) && faultEntry(code).kind === 'stop')) throw error;
  }
}

function lost(): ApplicationFailure {
  return ApplicationFailure.create({ type: 'step_timeout', message: 'lost too often' });
}

function isStepFailure(error: unknown): error is ApplicationFailure {
  return error instanceof ApplicationFailure;
}

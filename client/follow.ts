import { setTimeout as timer } from 'node:timers/promises';
import type { AwaitedApproval } from '../core/approval.ts';
import type { BlockedBy, Progress } from '../core/progress.ts';
import { temporalFault } from '../platform/temporal.ts';
import { taskQueue } from '../workflows/messages.ts';
import type { ReplayResult } from './ending.ts';
import { CommandFailure } from './failure.ts';
import type { ReplayHandle } from './replays.ts';
import type { View } from './view.ts';

const pollMs = 500;
/** A shorter block heals by itself: no reason to give up. */
const blockedMs = 10_000;
/** So long without an answer from the run before looking whether there is a worker at all. */
const silentMs = 3_000;
const silentWithWorkersMs = 20_000;
const lookMs = 1_000;
/** A worker asks at least once a minute; an older poll is of one that is gone. */
const pollAgeMs = 90_000;
const waitTurnMs = 60_000;
const outageRetryMs = 1_000;
const outageMsMax = 10 * 60_000;

export type FollowEnd =
  | { readonly kind: 'ended'; readonly result: ReplayResult }
  /** Blocked or awaiting an approval, and nobody is there to ask. */
  | { readonly kind: 'blocked'; readonly problem: BlockedBy }
  | { readonly kind: 'awaiting'; readonly approval: AwaitedApproval }
  /** The user left; the replay goes on. */
  | { readonly kind: 'left'; readonly by: 'SIGINT' | 'SIGTERM' };

export type InterruptAnswer = 'leave' | 'cancel' | 'stay';

export interface FollowOptions {
  readonly handle: ReplayHandle;
  readonly view: View;
  /** When a worker last asked for work; null: none lately. */
  readonly lastPoll: () => Promise<Date | null>;
  /** Asks what Ctrl-C means; absent where nobody can be asked: then it leaves. `over` aborts when the run ends meanwhile. */
  readonly onInterrupt?: (over: AbortSignal) => Promise<InterruptAnswer>;
}

/** Shows a replay until it ends, or until there is a reason to leave it. */
export async function followReplay(options: FollowOptions): Promise<FollowEnd> {
  const over = new AbortController();
  const contact = createContact(options.view);
  const following: Following = { ...options, over: over.signal, contact };
  const interrupts = interrupted(following);
  try {
    return await Promise.race([waitForEnd(following), watchProgress(following), watchSilence(following), interrupts.answer]);
  } finally {
    over.abort();
    interrupts.stop();
    options.view.close();
  }
}

interface Following extends FollowOptions {
  /** Aborts when the following ends. */
  readonly over: AbortSignal;
  readonly contact: Contact;
}

async function waitForEnd({ handle, over, contact }: Following): Promise<FollowEnd> {
  for (;;) {
    // Each call of the long wait leaves a listener on its signal: a new one now and then keeps their number small.
    const turn = AbortSignal.timeout(waitTurnMs);
    try {
      return { kind: 'ended', result: await handle.result(AbortSignal.any([over, turn])) };
    } catch (error) {
      if (over.aborted) return await never();
      if (turn.aborted) continue;
      if (!isOutage(error)) throw error;
      contact.lost(error);
      await sleep(outageRetryMs, over);
    }
  }
}

async function watchProgress(following: Following): Promise<FollowEnd> {
  const { view, contact, over } = following;
  let blockedSince: number | null = null;
  while (!over.aborted) {
    const progress = await askProgress(following);
    if (over.aborted) break;
    if (progress !== null) {
      contact.answered();
      view.show(progress);
      blockedSince = progress.state === 'blocked' ? (blockedSince ?? Date.now()) : null;
      if (progress.problem !== null && blockedSince !== null && givesUp(following, blockedSince)) {
        return { kind: 'blocked', problem: progress.problem };
      }
      if (progress.approval != null && following.onInterrupt === undefined)
        return { kind: 'awaiting', approval: progress.approval };
    }
    await sleep(pollMs, over);
  }
  return await never();
}

function givesUp({ onInterrupt }: Following, blockedSince: number): boolean {
  return onInterrupt === undefined && Date.now() - blockedSince >= blockedMs;
}

/** null: no answer just now. */
async function askProgress({ handle, contact, over }: Following): Promise<Progress | null> {
  try {
    return await handle.progress(over);
  } catch (error) {
    // Refused and broken calls also reach waitForEnd, which decides; a silent worker only shows here.
    if (temporalFault(error) === 'unreachable') contact.lost(error);
    return null;
  }
}

/** Says once in every silence why nothing moves: no worker, or one that does not answer. */
async function watchSilence({ lastPoll, view, contact, over }: Following): Promise<FollowEnd> {
  let said = false;
  while (!over.aborted) {
    await sleep(lookMs, over);
    const silent = contact.silentMs();
    if (silent < silentMs) said = false;
    if (silent < silentMs || over.aborted) continue;
    const polled = await lastPoll().catch((error: unknown) => {
      if (isOutage(error)) contact.lost(error);
      return undefined;
    });
    if (polled === undefined) continue;
    contact.reached();
    const gone = polled === null || Date.now() - polled.getTime() > pollAgeMs;
    if (said || (!gone && silent < silentWithWorkersMs)) continue;
    said = true;
    view.say(gone ? noWorkerText : silentWorkerText);
  }
  return await never();
}

const noWorkerText = `No worker is polling the task queue ${taskQueue}; the replay waits for one. Start one: replay-stream worker`;
const silentWorkerText =
  'No worker answers, though one was there a moment ago; the replay waits. If it was stopped, start one: replay-stream worker';

interface Interrupts {
  readonly answer: Promise<FollowEnd>;
  stop(): void;
}

function interrupted(following: Following): Interrupts {
  let asking = false;
  let resolve: (end: FollowEnd) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const answer = new Promise<FollowEnd>((...settle) => ([resolve, reject] = settle));
  const onTerminate = (): void => resolve({ kind: 'left', by: 'SIGTERM' });
  const onInterrupt = (): void => {
    // A second Ctrl-C does not wait for an answer to the first.
    if (asking || following.onInterrupt === undefined) return resolve({ kind: 'left', by: 'SIGINT' });
    asking = true;
    askWhatToDo(following, following.onInterrupt).then((leave) => {
      asking = false;
      if (leave) resolve({ kind: 'left', by: 'SIGINT' });
    }, reject);
  };
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onTerminate);
  return {
    answer,
    stop() {
      process.off('SIGINT', onInterrupt);
      process.off('SIGTERM', onTerminate);
    },
  };
}

async function askWhatToDo(
  { handle, view, over }: Following,
  ask: (over: AbortSignal) => Promise<InterruptAnswer>,
): Promise<boolean> {
  view.hold();
  const answer = await ask(over);
  view.release();
  if (answer !== 'cancel') return answer === 'leave';
  view.say('Asked the replay to cancel; it settles its batch in flight first.');
  await handle.cancel();
  return false;
}

interface Contact {
  /** Temporal did not answer a call. Throws when that has lasted too long. */
  lost(error: unknown): void;
  /** Temporal answered. */
  reached(): void;
  /** The run answered, through a worker. */
  answered(): void;
  silentMs(): number;
}

function createContact(view: View): Contact {
  let answeredMs = Date.now();
  let lostMs: number | null = null;
  const reached = (): void => {
    if (lostMs === null) return;
    lostMs = null;
    // Workers need a moment to come back as well.
    answeredMs = Date.now();
    view.say('Temporal answers again.');
  };
  return {
    reached,
    answered() {
      reached();
      answeredMs = Date.now();
    },
    lost(error) {
      if (lostMs === null) view.say('Temporal does not answer; the replay goes on by itself. Trying again.');
      lostMs ??= Date.now();
      if (Date.now() - lostMs > outageMsMax) {
        throw new CommandFailure(
          `Temporal has not answered for ${outageMsMax / 60_000} minutes. The replay goes on by itself once it is back; look with replay-stream status.`,
          'failed',
          { cause: error },
        );
      }
    },
    silentMs: () => Date.now() - answeredMs,
  };
}

/** Time may heal it. */
function isOutage(error: unknown): boolean {
  const fault = temporalFault(error);
  return fault === 'unreachable' || fault === 'no_answer' || fault === 'other';
}

/** Ends early when the following does. */
async function sleep(ms: number, over: AbortSignal): Promise<void> {
  await timer(ms, undefined, { signal: over }).catch(() => undefined);
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

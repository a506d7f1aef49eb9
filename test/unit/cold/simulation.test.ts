import { describe, expect, test } from 'vitest';
import { storeMerge } from '../../../activities/merge-segments.ts';
import { reconcilePartition } from '../../../activities/reconcile-partition.ts';
import { removeLeft } from '../../../activities/remove-objects.ts';
import { storeFlush } from '../../../activities/store-segment.ts';
import type { SweepDeps } from '../../../activities/deps.ts';
import { expireBefore, newManifest, recordMerge } from '../../../core/manifest.ts';
import { repairCount, staleClaimMs } from '../../../core/reconcile.ts';
import { removeGraceMs } from '../../../core/sweep.ts';
import { seeded, type Random } from '../simulation/random.ts';
import { Lost, World, type Fate } from './world.ts';

/**
 * Schedules of several sweepers, reconcilers and operators over one partition, each of which may be lost at any effect, with requests
 * that arrive after their sender is gone. Whatever happens: each record is readable once and as it was, or expired.
 */

const schedules = process.env['REPLAY_TEST_LONG'] === '1' ? 20_000 : 1_200;
const never = new AbortController().signal;
const place = { topic: 't', partition: 0 };

/** As workflows/sweep-topic.ts does it. */
async function sweep(world: World, deps: SweepDeps): Promise<void> {
  const of = world.partition;
  for (let steps = 0; steps < 100; steps++) {
    const step = await deps.topics.next(of, world.nowMs, (span, epoch) => world.nameOf(span, epoch));
    if (step.kind === 'nothing') return;
    if (step.kind === 'purge') await deps.topics.purge(of, step.before);
    else if (step.kind === 'remove') await removeLeft(deps, place, step.names, never);
    else if (step.kind === 'merge') {
      const { merge } = step;
      const stored = await storeMerge(deps, { ...place, merge }, never);
      if (stored === null) return;
      await deps.topics.change(of, (manifest) => ({
        manifest: recordMerge(manifest, merge, stored, world.nowMs + removeGraceMs),
        answer: null,
      }));
    } else {
      const { intent } = step;
      const stored = await storeFlush(deps, { ...place, intent }, never);
      if (stored !== null && !(await deps.topics.record(of, intent, stored))) continue;
      await deps.topics.purge(of, intent.next);
    }
  }
}

async function expire(world: World, deps: SweepDeps, random: Random): Promise<void> {
  const offset = random.below(world.next + 1);
  await deps.topics.change(world.partition, (manifest) => {
    const { manifest: after, expired } = expireBefore(manifest, offset, world.nowMs + removeGraceMs);
    return { manifest: expired.length === 0 ? null : after, answer: null };
  });
}

/** Actors whose effects take turns in random order. */
class Stage {
  readonly #waiting: ((fate: Fate) => void)[] = [];
  #open = 0;

  turn(): Promise<Fate> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  start(act: () => Promise<unknown>): void {
    this.#open++;
    act()
      .catch((error: unknown) => {
        // A step that finds the world changed fails and is tried anew by the next sweep.
        if (!(error instanceof Lost) && !/not hot any more|not cold/.test(String(error)))
          this.fault ??= error instanceof Error ? error : new Error(String(error));
      })
      .finally(() => this.#open--);
  }

  fault: Error | undefined;

  get isBusy(): boolean {
    return this.#open > 0;
  }

  async step(random: Random, fate: Fate): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    const [next] = this.#waiting.splice(random.below(Math.max(1, this.#waiting.length)), 1);
    next?.(fate);
  }
}

const go = async (): Promise<Fate> => 'go';

async function settle(world: World): Promise<void> {
  while (world.late.length > 0) world.late.shift()!();
  world.nowMs += staleClaimMs + removeGraceMs;
  await sweep(world, world.deps(go));
}

/** Throws when a record is lost, doubled or changed. */
function check(world: World, destroyed: ReadonlySet<number>): void {
  for (let offset = 0; offset < world.next; offset++) {
    const read = world.read(offset);
    if (read === offset || read === 'expired' || (read === 'gone' && destroyed.has(offset))) continue;
    throw new Error(`offset ${offset} reads as ${read}`);
  }
  const spans = world.manifest.segments;
  if (spans.some(({ first }, i) => i > 0 && first < spans[i - 1]!.next)) throw new Error('segments overlap');
}

function fateOf(random: Random): Fate {
  const roll = random.below(100);
  return roll < 88 ? 'go' : roll < 92 ? 'lost_before' : roll < 96 ? 'lost_after' : 'arrives_late';
}

async function run(seed: number): Promise<{ repairs: number; merged: boolean }> {
  const random = seeded(seed);
  const world = new World();
  const stage = new Stage();
  const deps = world.deps(() => stage.turn());
  for (let turn = 0; turn < 120; turn++) {
    const roll = random.below(20);
    if (roll < 4) world.next += random.below(6);
    else if (roll === 4) stage.start(() => sweep(world, deps));
    else if (roll === 5 && random.below(3) === 0)
      stage.start(() => reconcilePartition(deps, world.partition, world.nowMs, never));
    else if (roll === 6 && random.below(6) === 0) stage.start(() => expire(world, deps, random));
    else if (roll === 7) world.nowMs += random.below(staleClaimMs);
    else if (roll === 8 && world.late.length > 0) world.late.splice(random.below(world.late.length), 1)[0]!();
    else await stage.step(random, fateOf(random));
    if (turn % 8 === 0) check(world, new Set());
  }
  while (stage.isBusy) await stage.step(random, 'go');
  if (stage.fault !== undefined) throw stage.fault;
  await settle(world);
  check(world, new Set());
  return await finish(world, random);
}

/** Damage at rest, then repair: twice, and the second pass finds nothing. */
async function finish(world: World, random: Random): Promise<{ repairs: number; merged: boolean }> {
  const destroyed = new Set<number>();
  const merged = [...world.objects.keys()].some((name) => {
    const { first, next } = world.deps(go).segments.parse(name)!;
    return next - first > 4;
  });
  const damage = random.below(4);
  if (damage === 1) {
    // With the manifest goes the knowledge of what was expired.
    for (let offset = 0; offset < world.next; offset++) if (world.read(offset) === 'expired') destroyed.add(offset);
    world.manifest = newManifest;
  }
  const names = [...world.objects.keys()];
  if (damage === 2 && names.length > 1) {
    const name = names[random.below(names.length)]!;
    const { first, next } = world.deps(go).segments.parse(name)!;
    world.objects.delete(name);
    for (let offset = first; offset < next; offset++) destroyed.add(offset);
  }
  if (damage === 3) world.objects.set('aa/0000/not-a-segment', Buffer.from('x'));
  const first = await reconcilePartition(world.deps(go), world.partition, world.nowMs, never);
  check(world, destroyed);
  await sweep(world, world.deps(go));
  const second = await reconcilePartition(world.deps(go), world.partition, world.nowMs, never);
  expect(second.repairs).toEqual({});
  check(world, destroyed);
  const holes = second.unrepaired.filter(({ kind }) => kind === 'hole');
  for (let offset = 0; offset < world.next; offset++) {
    const isTold = holes.some((hole) => hole.kind === 'hole' && hole.first <= offset && offset < hole.next);
    if (isTold !== (world.read(offset) === 'gone'))
      throw new Error(`offset ${offset} is gone and not told, or told and not gone`);
  }
  if (damage === 3) expect(second.unrepaired).toContainEqual(expect.objectContaining({ kind: 'foreign_object' }));
  return { repairs: repairCount(first.repairs), merged };
}

describe('cold history', () => {
  test(`${schedules} schedules of crashes: nothing lost, nothing doubled, a second reconcile repairs nothing`, async () => {
    let repairs = 0;
    let merges = 0;
    for (let seed = 1; seed <= schedules; seed++) {
      const result = await run(seed).catch((error: unknown) => {
        throw new Error(`schedule ${seed}: ${String(error)}`, { cause: error });
      });
      repairs += result.repairs;
      if (result.merged) merges++;
    }
    // The schedules reach what they are about.
    expect(repairs).toBeGreaterThan(schedules / 20);
    expect(merges).toBeGreaterThan(schedules / 20);
  }, 600_000);
});

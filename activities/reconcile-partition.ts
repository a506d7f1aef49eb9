import { record, recordMerge, type Manifest } from '../core/manifest.ts';
import { ReplayFault } from '../core/errors.ts';
import {
  addRepairs,
  adopt,
  dropEntries,
  findFaults,
  holes,
  repairCount,
  type ColdObject,
  type Findings,
  type RepairKind,
  type Repairs,
  type TopicReconciled,
  type Unrepaired,
} from '../core/reconcile.ts';
import { removeGraceMs, type StoredSegment } from '../core/sweep.ts';
import type { ColdStore } from '../cold/store.ts';
import type { Partition } from '../jetstream/topics/partition-stream.ts';
import type { SweepDeps } from './deps.ts';

/** One repair may bring the next to light. */
const roundsMax = 5;

/** Repairs what it can between the manifest of a partition and its objects. A second pass finds nothing to repair. */
export async function reconcilePartition(
  deps: SweepDeps,
  of: Partition,
  nowMs: number,
  signal: AbortSignal,
): Promise<TopicReconciled> {
  const { cold: kind } = of.topic;
  if (kind === null) return { repairs: {}, unrepaired: [] };
  const store = deps.cold(kind);
  let repairs: Repairs = {};
  for (let round = 1; ; round++) {
    const survey = await surveyOf(deps, store, of, nowMs, signal);
    const done = await repairOnce(deps, store, of, survey, signal);
    repairs = addRepairs(repairs, done);
    if (repairCount(done) === 0 || round === roundsMax) {
      return { repairs, unrepaired: unrepairedOf(of, survey, done) };
    }
  }
}

interface Survey {
  readonly names: readonly string[];
  readonly manifest: Manifest;
  readonly hot: number;
  readonly nowMs: number;
  readonly findings: Findings;
  /** Of what may be recorded. */
  readonly readable: ReadonlyMap<string, StoredSegment>;
}

async function surveyOf(
  { topics, segments }: SweepDeps,
  store: ColdStore,
  of: Partition,
  nowMs: number,
  signal: AbortSignal,
): Promise<Survey> {
  // In this order: what is purged meanwhile stands in the manifest, and so does the claim of every object that is listed.
  const { hot } = await topics.bounds(of);
  const names = await store.list(folderOf(of), signal);
  const manifest = await topics.manifest(of);
  await assertRightStore(store, of, { names, manifest }, signal);
  const objects = names.map((name) => segments.parse(name)).filter((object) => object !== null);
  const found = findFaults({ manifest, objects, hot, nowMs });
  const lost = [];
  // A segment may have been stored after the listing.
  for (const segment of found.lost) if ((await store.get(segment.name, signal)) === null) lost.push(segment);
  const readable = new Map<string, StoredSegment>();
  const claims = [found.staleIntent ? manifest.intent : null, found.staleMerge ? manifest.merge : null];
  for (const object of [...claims, ...found.adoptable]) {
    const stored = object === null ? null : await readStored({ segments }, store, of, object, signal);
    if (stored !== null) readable.set(object!.name, stored);
  }
  return { names, manifest, hot, nowMs, readable, findings: { ...found, lost } };
}

function folderOf({ topic, partition }: Partition): string {
  return `${topic.id}/${String(partition).padStart(4, '0')}/`;
}

/** In a wrong folder or bucket every entry would seem lost. */
async function assertRightStore(
  store: ColdStore,
  { topic }: Partition,
  { names, manifest }: { names: readonly string[]; manifest: Manifest },
  signal: AbortSignal,
): Promise<void> {
  if (names.length > 0 || manifest.segments.length === 0) return;
  if ((await store.list(`${topic.id}/`, signal)).length === 0) throw new ReplayFault('cold_missing');
}

/** null: it is not there, or is not what its name says. */
async function readStored(
  { segments }: Pick<SweepDeps, 'segments'>,
  store: ColdStore,
  { topic, partition }: Partition,
  { name, first, next }: Pick<ColdObject, 'name' | 'first' | 'next'>,
  signal: AbortSignal,
): Promise<StoredSegment | null> {
  const bytes = await store.get(name, signal);
  if (bytes === null) return null;
  try {
    const { header } = segments.decode({ topic: topic.id, partition, first, next }, bytes);
    return { bytes: bytes.length, lastTime: header.last_time };
  } catch (error) {
    if (error instanceof ReplayFault && error.code === 'cold_corrupt') return null;
    throw error;
  }
}

async function repairOnce(
  { topics }: SweepDeps,
  store: ColdStore,
  of: Partition,
  survey: Survey,
  signal: AbortSignal,
): Promise<Repairs> {
  const repaired = await topics.change(of, (manifest) => {
    const { after, repairs } = repairManifest(manifest, survey);
    return { manifest: after === manifest ? null : after, answer: repairs };
  });
  let removed = 0;
  for (const { name } of survey.findings.redundant) {
    await store.remove(name, signal);
    removed++;
  }
  return addRepairs(repaired, removed === 0 ? {} : { orphan_removed: removed });
}

/** Once more on the manifest as it is by now: what somebody else has mended meanwhile is left alone. */
function repairManifest(before: Manifest, survey: Survey): { readonly after: Manifest; readonly repairs: Repairs } {
  const { findings, readable, nowMs } = survey;
  const repairs: { [K in RepairKind]?: number } = {};
  let after = before;
  const take = (kind: RepairKind, changed: Manifest | null): void => {
    if (changed === null || changed === after) return;
    after = changed;
    repairs[kind] = (repairs[kind] ?? 0) + 1;
  };
  const { intent, merge } = survey.manifest;
  if (findings.staleIntent && before.intent?.name === intent!.name) {
    const stored = readable.get(intent!.name);
    take('stale_claim', stored === undefined ? { ...after, intent: null } : record(after, intent!, stored));
  }
  if (findings.staleMerge && before.merge?.name === merge!.name) {
    const stored = readable.get(merge!.name);
    const removeAtMs = nowMs + removeGraceMs;
    take('stale_claim', stored === undefined ? { ...after, merge: null } : recordMerge(after, merge!, stored, removeAtMs));
  }
  const present = (name: string) => after.segments.some((segment) => segment.name === name);
  for (const { name } of findings.lost) if (present(name)) take('entry_without_object', dropEntries(after, [name]));
  for (const { name } of findings.contained) {
    if (!present(name)) continue;
    const dropped = dropEntries(after, [name]);
    take('overlap', { ...dropped, leaving: [...dropped.leaving, { name, removeAtMs: nowMs + removeGraceMs }] });
  }
  for (const object of findings.adoptable) {
    const stored = readable.get(object.name);
    if (stored !== undefined) take('orphan_adopted', adopt(after, object, stored));
  }
  return { after, repairs };
}

function unrepairedOf(of: Partition, survey: Survey, done: Repairs): Unrepaired[] {
  const place = { topic: of.topic.name, partition: of.partition };
  const { manifest, findings, readable } = survey;
  if (repairCount(done) > 0) return [];
  const known = new Set([
    ...manifest.segments.map(({ name }) => name),
    ...manifest.leaving.map(({ name }) => name),
    ...findings.redundant.map(({ name }) => name),
    manifest.intent?.name,
    manifest.merge?.name,
  ]);
  const adoptable = new Set(findings.adoptable.map(({ name }) => name));
  const strangers = survey.names.filter((name) => !known.has(name) && !readable.has(name));
  return [
    ...holes(manifest, survey.hot).map((hole) => ({ ...place, kind: 'hole' as const, ...hole })),
    ...strangers.map((object) => ({ ...place, kind: kindOf(object, adoptable), object })),
  ];
}

function kindOf(name: string, adoptable: ReadonlySet<string>): 'foreign_object' | 'unreadable_object' | 'overlapping_object' {
  if (adoptable.has(name)) return 'unreadable_object';
  return /\/\d{16}-\d{16}-\d{8}-\w+\.jsonl$/.test(name) ? 'overlapping_object' : 'foreign_object';
}

/**
 * Position of a consumer group in one partition, and what may happen to it. Every change is decided here and stored by one
 * compare-and-set on one key, so that two pollers can never both make progress on the same records. Times are milliseconds
 * since the epoch of the caller's clock: they only decide when somebody may take over, never what is right.
 */
export interface GroupState {
  /** First offset that is not settled; null: nothing was committed yet, and reading begins at the oldest record. */
  readonly cursor: number | null;
  /** Raised by every lease and reset: whoever read under an older one is fenced. */
  readonly epoch: number;
  /** Leased once and not yet behind the cursor: ascending, none overlaps, each begins where the one before ends. */
  readonly ranges: readonly LeasedRange[];
  readonly movedAtMs: number | null;
  /** Records that were gone before this group came to them; the last `gapsMax`. */
  readonly gaps: readonly Gap[];
  /** The last `resetsMax`. */
  readonly resets: readonly ResetLine[];
}

export type LeasedRange = Span &
  (
    | {
        readonly kind: 'held';
        readonly id: string;
        readonly owner: string;
        readonly expiresAtMs: number;
        readonly attempts: number;
      }
    | { readonly kind: 'free'; readonly attempts: number }
    | { readonly kind: 'done' }
  );

/** From `first` to before `next`. */
export interface Span {
  readonly first: number;
  readonly next: number;
}

export interface Gap extends Span {
  readonly atMs: number;
}

/** The audit line of a reset. */
export interface ResetLine {
  readonly atMs: number;
  readonly by: string;
  readonly from: number | null;
  readonly to: number;
}

export const newGroup: GroupState = { cursor: null, epoch: 0, ranges: [], movedAtMs: null, gaps: [], resets: [] };

const gapsMax = 100;
const resetsMax = 20;
/** Ranges that a group may have open in a partition. */
export const rangesMax = 256;

export interface LogEnds {
  /** First offset that can be read; equal to `next` when there is none. */
  readonly oldest: number;
  /** Offset that the next record will have. */
  readonly next: number;
}

/** `stop`: records that are gone end every lease and consume as truncated, until a reset. `earliest`: go on at the oldest. */
export type TruncationPolicy = 'stop' | 'earliest';

export type Start =
  | { readonly kind: 'at'; readonly offset: number; readonly gap: Span | null }
  | { readonly kind: 'truncated'; readonly nextReadable: number };

/** Where a consume without a lease reads. */
export function startOf(state: GroupState, { oldest }: LogEnds, policy: TruncationPolicy): Start {
  const offset = state.cursor ?? oldest;
  if (offset >= oldest) return { kind: 'at', offset, gap: null };
  if (policy === 'stop') return { kind: 'truncated', nextReadable: oldest };
  return { kind: 'at', offset: oldest, gap: { first: offset, next: oldest } };
}

export interface LeaseRequest {
  readonly id: string;
  readonly owner: string;
  readonly nowMs: number;
  readonly leaseMs: number;
  readonly recordsMax: number;
  /** Leases that may be held in this partition at a time. */
  readonly parallel: number;
  /** Deliveries of a record before it is set aside; null: never. */
  readonly attemptsMax: number | null;
  readonly policy: TruncationPolicy;
}

export type Leased =
  | {
      readonly kind: 'leased';
      readonly state: GroupState;
      readonly lease: Span & { readonly attempt: number };
      readonly gap: Span | null;
    }
  /** Nobody could settle this record. Once its dead letter is stored, `state` may be. */
  | { readonly kind: 'poisoned'; readonly state: GroupState; readonly offset: number; readonly attempts: number }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'truncated'; readonly nextReadable: number };

/** Gives out what was given back or ran out first, then what comes next in the log. */
export function lease(before: GroupState, ends: LogEnds, request: LeaseRequest): Leased {
  const start = before.ranges.find(({ kind }) => kind !== 'done')?.first ?? frontierOf(before, ends);
  if (start < ends.oldest && request.policy === 'stop') return { kind: 'truncated', nextReadable: ends.oldest };
  const gap = start < ends.oldest ? { first: start, next: ends.oldest } : null;
  const state = skipGone(expire(before, request.nowMs), gap, request.nowMs);
  if (state.ranges.filter(({ kind }) => kind === 'held').length >= request.parallel) return { kind: 'nothing' };
  const free = state.ranges.find((range) => range.kind === 'free');
  if (free !== undefined) return leaseAgain(state, free, gap, request);
  const first = frontierOf(state, ends);
  const next = Math.min(first + request.recordsMax, ends.next);
  if (first >= next || state.ranges.length >= rangesMax) return { kind: 'nothing' };
  return hold(state, { first, next, attempts: 0 }, gap, request);
}

type FreeRange = Extract<LeasedRange, { kind: 'free' }>;

function leaseAgain(state: GroupState, free: FreeRange, gap: Span | null, request: LeaseRequest): Leased {
  const { attemptsMax } = request;
  const { first, next, attempts } = free;
  const spent = attemptsMax !== null && attempts >= attemptsMax;
  if (!spent) return hold(state, { first, next: Math.min(next, first + request.recordsMax), attempts }, gap, request);
  if (next - first === 1) {
    return { kind: 'poisoned', state: mark(state, free, request.nowMs), offset: first, attempts };
  }
  // Halves get one more try each, so that the records beside a bad one are not set aside with it.
  const middle = first + Math.ceil((next - first) / 2);
  const halves = [
    { kind: 'free', first, next: middle, attempts: attemptsMax - 1 },
    { kind: 'free', first: middle, next, attempts: attemptsMax - 1 },
  ] as const;
  const split = { ...state, ranges: state.ranges.flatMap((range) => (range === free ? halves : [range])) };
  return leaseAgain(split, halves[0], gap, request);
}

function hold(state: GroupState, span: Span & { attempts: number }, gap: Span | null, request: LeaseRequest): Leased {
  const { first, next, attempts } = span;
  const { id, owner, nowMs, leaseMs } = request;
  const held: LeasedRange = { kind: 'held', first, next, id, owner, expiresAtMs: nowMs + leaseMs, attempts: attempts + 1 };
  const ranges = [...state.ranges.flatMap((range) => without(range, held)), held].sort((a, b) => a.first - b.first);
  return {
    kind: 'leased',
    // From its first lease on, a group has a position: what was given out and is gone unsettled is told as truncated.
    state: { ...state, cursor: state.cursor ?? first, epoch: state.epoch + 1, ranges },
    lease: { first, next, attempt: attempts + 1 },
    gap,
  };
}

/** What `commit` may be given instead of nothing: an epoch (consume without a lease) or the id of a lease. */
export type Handle = { readonly kind: 'epoch'; readonly epoch: number } | { readonly kind: 'lease'; readonly id: string };

export function formatHandle(handle: Handle): string {
  return handle.kind === 'epoch' ? `epoch-${handle.epoch}` : `lease-${handle.id}`;
}

/** null: not a handle. */
export function parseHandle(text: string): Handle | null {
  const [, kind, value] = /^(epoch|lease)-([0-9a-f-]{1,64})$/.exec(text) ?? [];
  if (kind === undefined || value === undefined) return null;
  if (kind === 'lease') return { kind, id: value };
  const epoch = /^\d{1,15}$/.test(value) ? Number(value) : null;
  return epoch === null ? null : { kind: 'epoch', epoch };
}

export interface CommitRequest {
  /** First offset that is not settled. */
  readonly nextOffset: number;
  /** null: fenced only while somebody holds a lease. */
  readonly handle: Handle | null;
  readonly nowMs: number;
}

export type CommitResult = 'advanced' | 'ignored' | 'fenced' | 'out_of_range';

/** `state` only with `advanced`. */
export interface Committed {
  readonly result: CommitResult;
  readonly state: GroupState | null;
}

export function commit(state: GroupState, ends: LogEnds, request: CommitRequest): Committed {
  const { nextOffset, handle, nowMs } = request;
  const answer = (result: Exclude<CommitResult, 'advanced'>): Committed => ({ result, state: null });
  if (handle?.kind === 'lease') return commitLease(state, ends, handle.id, request);
  const isHeld = state.ranges.some((range) => isLive(range, nowMs));
  if (isHeld || (handle !== null && handle.epoch !== state.epoch)) return answer('fenced');
  if (nextOffset > ends.next) return answer('out_of_range');
  if (state.cursor !== null && nextOffset <= state.cursor) return answer('ignored');
  const settled = { first: Math.min(state.cursor ?? nextOffset, nextOffset), next: nextOffset };
  const gone =
    state.cursor !== null && state.cursor < ends.oldest
      ? { first: state.cursor, next: Math.min(ends.oldest, nextOffset) }
      : null;
  const ranges = state.ranges.flatMap((range) => without(range, settled));
  return {
    result: 'advanced',
    state: compact({ ...withGap(state, gone, nowMs), cursor: nextOffset, movedAtMs: nowMs, ranges }, nowMs),
  };
}

function commitLease(state: GroupState, ends: LogEnds, id: string, { nextOffset, nowMs }: CommitRequest): Committed {
  const held = state.ranges.find((range) => range.kind === 'held' && range.id === id);
  if (held === undefined || !isLive(held, nowMs)) return { result: 'fenced', state: null };
  if (nextOffset > held.next || nextOffset > ends.next) return { result: 'out_of_range', state: null };
  if (nextOffset <= held.first) return { result: 'ignored', state: null };
  return { result: 'advanced', state: mark(state, { first: held.first, next: nextOffset }, nowMs) };
}

/** Puts off the end of a lease. null: it is no longer held. */
export function renew(
  state: GroupState,
  id: string,
  { nowMs, leaseMs }: { nowMs: number; leaseMs: number },
): GroupState | null {
  return withHeld(state, id, nowMs, (range) => ({ ...range, expiresAtMs: Math.max(range.expiresAtMs, nowMs + leaseMs) }));
}

/** Gives a lease back: its records go out again, at the next attempt. null: it is no longer held. */
export function release(state: GroupState, id: string, nowMs: number): GroupState | null {
  return withHeld(state, id, nowMs, ({ first, next, attempts }) => ({ kind: 'free', first, next, attempts }));
}

type HeldRange = Extract<LeasedRange, { kind: 'held' }>;

function withHeld(state: GroupState, id: string, nowMs: number, change: (range: HeldRange) => LeasedRange): GroupState | null {
  const held = state.ranges.find((range): range is HeldRange => range.kind === 'held' && range.id === id);
  if (held === undefined || !isLive(held, nowMs)) return null;
  return { ...state, ranges: state.ranges.map((range) => (range === held ? change(held) : range)) };
}

/** Sets the position, whatever it was; every lease and every older reader is fenced. */
export function reset(state: GroupState, { to, by, nowMs }: { to: number; by: string; nowMs: number }): GroupState {
  const line: ResetLine = { atMs: nowMs, by, from: state.cursor, to };
  return {
    ...state,
    cursor: to,
    epoch: state.epoch + 1,
    ranges: [],
    movedAtMs: nowMs,
    resets: [...state.resets, line].slice(-resetsMax),
  };
}

function frontierOf(state: GroupState, { oldest }: LogEnds): number {
  return state.ranges.at(-1)?.next ?? state.cursor ?? oldest;
}

function isLive(range: LeasedRange, nowMs: number): boolean {
  return range.kind === 'held' && range.expiresAtMs > nowMs;
}

function expire(state: GroupState, nowMs: number): GroupState {
  const ranges = state.ranges.map((range): LeasedRange => {
    if (range.kind !== 'held' || isLive(range, nowMs)) return range;
    return { kind: 'free', first: range.first, next: range.next, attempts: range.attempts };
  });
  return { ...state, ranges };
}

/** Records that are gone count as settled, and are remembered as a gap. */
function skipGone(state: GroupState, gap: Span | null, nowMs: number): GroupState {
  if (gap === null) return state;
  return mark(withGap(state, gap, nowMs), gap, nowMs);
}

function withGap(state: GroupState, gap: Span | null, nowMs: number): GroupState {
  return gap === null ? state : { ...state, gaps: [...state.gaps, { ...gap, atMs: nowMs }].slice(-gapsMax) };
}

function mark(state: GroupState, { first, next }: Span, nowMs: number): GroupState {
  const done: LeasedRange = { kind: 'done', first, next };
  const ranges = [...state.ranges.flatMap((range) => without(range, done)), done].sort((a, b) => a.first - b.first);
  return compact({ ...state, ranges }, nowMs);
}

/** The cursor moves over settled ranges at the front; settled neighbours become one. */
function compact(state: GroupState, nowMs: number): GroupState {
  let { cursor, movedAtMs } = state;
  const ranges: LeasedRange[] = [];
  for (const range of state.ranges) {
    const last = ranges.at(-1);
    if (range.kind !== 'done') ranges.push(range);
    else if (last === undefined) [cursor, movedAtMs] = [Math.max(cursor ?? 0, range.next), nowMs];
    else if (last.kind === 'done') ranges[ranges.length - 1] = { ...last, next: range.next };
    else ranges.push(range);
  }
  return { ...state, cursor, movedAtMs, ranges };
}

/** What of a range lies outside the span: nothing, one piece or two. */
function without(range: LeasedRange, span: Span): LeasedRange[] {
  if (range.next <= span.first || range.first >= span.next) return [range];
  const before = { ...range, next: span.first };
  const after = { ...range, first: span.next };
  return [before, after].filter(({ first, next }) => first < next);
}

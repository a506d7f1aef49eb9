import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  commit,
  formatHandle,
  lease,
  newGroup,
  parseHandle,
  rangesMax,
  release,
  renew,
  reset,
  startOf,
  type CommitRequest,
  type GroupState,
  type Leased,
  type LeaseRequest,
  type LogEnds,
} from '../../../core/group.ts';

const ends: LogEnds = { oldest: 0, next: 10 };
let ids = 0;

function ask(change: Partial<LeaseRequest> = {}): LeaseRequest {
  return {
    id: `${++ids}`,
    owner: 'test',
    nowMs: 0,
    leaseMs: 1_000,
    recordsMax: 2,
    parallel: 1,
    attemptsMax: null,
    policy: 'stop',
    ...change,
  };
}

function leased(answer: Leased): Extract<Leased, { kind: 'leased' }> {
  if (answer.kind !== 'leased') throw new Error(`no lease: ${answer.kind}`);
  return answer;
}

/** A lease with its id, as a poller has it. */
function take(state: GroupState, change: Partial<LeaseRequest> = {}, log = ends) {
  const request = ask(change);
  const answer = leased(lease(state, log, request));
  return { id: request.id, state: answer.state, span: answer.lease, gap: answer.gap };
}

function settle(state: GroupState, id: string | null, nextOffset: number, change: Partial<CommitRequest> = {}, log = ends) {
  const handle = id === null ? null : ({ kind: 'lease', id } as const);
  return commit(state, log, { nextOffset, handle, nowMs: 0, ...change });
}

function advanced(committed: ReturnType<typeof commit>): GroupState {
  expect(committed.result).toBe('advanced');
  return committed.state!;
}

describe('commit without a lease', () => {
  test('only forward, never past the end', () => {
    const three = advanced(settle(newGroup, null, 3));
    expect(three.cursor).toBe(3);
    expect(settle(three, null, 1)).toEqual({ result: 'ignored', state: null });
    expect(settle(three, null, 3)).toEqual({ result: 'ignored', state: null });
    expect(settle(three, null, 11)).toEqual({ result: 'out_of_range', state: null });
    expect(advanced(settle(three, null, 10)).cursor).toBe(10);
  });

  test('fenced while somebody holds a lease, and no longer', () => {
    const { state } = take(newGroup);
    expect(settle(state, null, 1).result).toBe('fenced');
    const after = advanced(settle(state, null, 1, { nowMs: 1_000 }));
    expect(after.cursor).toBe(1);
  });

  test('a handle of an older reader is fenced by a lease and by a reset', () => {
    const handle = { kind: 'epoch', epoch: newGroup.epoch } as const;
    expect(settle(newGroup, null, 1, { handle }).result).toBe('advanced');
    const { state, id } = take(newGroup);
    const over = advanced(settle(state, id, 2));
    expect(settle(over, null, 3, { handle }).result).toBe('fenced');
    expect(settle(reset(newGroup, { to: 0, by: 't', nowMs: 0 }), null, 3, { handle }).result).toBe('fenced');
  });

  test('a handle of the current epoch is fenced while the lease is held', () => {
    const { state } = take(newGroup);
    expect(settle(state, null, 3, { handle: { kind: 'epoch', epoch: state.epoch } }).result).toBe('fenced');
  });

  test('a gap that it steps over is remembered', () => {
    const at1 = advanced(settle(newGroup, null, 1));
    const log = { oldest: 4, next: 10 };
    expect(startOf(at1, log, 'stop')).toEqual({ kind: 'truncated', nextReadable: 4 });
    expect(startOf(at1, log, 'earliest')).toEqual({ kind: 'at', offset: 4, gap: { first: 1, next: 4 } });
    expect(advanced(settle(at1, null, 6, {}, log)).gaps).toEqual([{ first: 1, next: 4, atMs: 0 }]);
  });
});

describe('leases', () => {
  test('one after the other: the second waits until the first is settled', () => {
    const one = take(newGroup);
    expect(one.span).toEqual({ first: 0, next: 2, attempt: 1 });
    expect(lease(one.state, ends, ask()).kind).toBe('nothing');
    const two = take(advanced(settle(one.state, one.id, 2)));
    expect(two.span).toEqual({ first: 2, next: 4, attempt: 1 });
  });

  test('what a first lease gave out and nobody settled is told when it is gone, to readers without a lease too', () => {
    const one = take(newGroup);
    const back = release(one.state, one.id, 0)!;
    const log = { oldest: 4, next: 4 };
    expect(lease(back, log, ask())).toEqual({ kind: 'truncated', nextReadable: 4 });
    expect(startOf(back, log, 'stop')).toEqual({ kind: 'truncated', nextReadable: 4 });
  });

  test('two at a time: the cursor moves over the settled front only', () => {
    const one = take(newGroup, { recordsMax: 1, parallel: 2 });
    const two = take(one.state, { recordsMax: 1, parallel: 2 });
    expect(two.span.first).toBe(1);
    expect(lease(two.state, ends, ask({ parallel: 2 })).kind).toBe('nothing');
    const second = advanced(settle(two.state, two.id, 2));
    expect(second.cursor).toBe(0);
    expect(advanced(settle(second, one.id, 1))).toMatchObject({ cursor: 2, ranges: [] });
  });

  test('given back: the same records, the next attempt, another id', () => {
    const one = take(newGroup);
    const back = release(one.state, one.id, 0)!;
    const two = take(back);
    expect(two.span).toEqual({ first: 0, next: 2, attempt: 2 });
    expect(settle(two.state, one.id, 2).result).toBe('fenced');
    expect(release(two.state, one.id, 0)).toBeNull();
  });

  test('run out: taken over by another; the late commit, renewal and release are fenced', () => {
    const one = take(newGroup);
    expect(lease(one.state, ends, ask({ nowMs: 999 })).kind).toBe('nothing');
    expect(settle(one.state, one.id, 2, { nowMs: 1_001 }).result).toBe('fenced');
    expect(renew(one.state, one.id, { nowMs: 1_001, leaseMs: 1_000 })).toBeNull();
    const two = take(one.state, { nowMs: 1_001 });
    expect(two.span).toEqual({ first: 0, next: 2, attempt: 2 });
    expect(settle(two.state, one.id, 2, { nowMs: 1_001 }).result).toBe('fenced');
    expect(release(two.state, one.id, 1_001)).toBeNull();
    expect(advanced(settle(two.state, two.id, 2, { nowMs: 1_001 })).cursor).toBe(2);
  });

  test('renewed: held on', () => {
    const one = take(newGroup);
    const renewed = renew(one.state, one.id, { nowMs: 900, leaseMs: 1_000 })!;
    expect(lease(renewed, ends, ask({ nowMs: 1_800 })).kind).toBe('nothing');
    expect(settle(renewed, one.id, 2, { nowMs: 1_800 }).result).toBe('advanced');
  });

  test('settled twice, or settled and then given back: fenced', () => {
    const one = take(newGroup);
    const done = advanced(settle(one.state, one.id, 2));
    expect(settle(done, one.id, 2).result).toBe('fenced');
    expect(release(done, one.id, 0)).toBeNull();
  });

  test('settled in part: what is left goes on, and comes again alone', () => {
    const one = take(newGroup, { recordsMax: 5 });
    const part = advanced(settle(one.state, one.id, 3));
    expect(part.cursor).toBe(3);
    expect(settle(part, one.id, 2).result).toBe('ignored');
    expect(settle(part, one.id, 6).result).toBe('out_of_range');
    expect(take(release(part, one.id, 0)!, { recordsMax: 5 }).span).toEqual({ first: 3, next: 5, attempt: 2 });
  });

  test('a smaller poller gets a part of what was given back, the next one the rest', () => {
    const one = take(newGroup, { recordsMax: 4 });
    const two = take(release(one.state, one.id, 0)!, { recordsMax: 1, parallel: 2 });
    expect(two.span).toEqual({ first: 0, next: 1, attempt: 2 });
    expect(take(two.state, { recordsMax: 4, parallel: 2 }).span).toEqual({ first: 1, next: 4, attempt: 2 });
  });

  test('a group that begins on a log that was truncated before moves its cursor', () => {
    const log = { oldest: 10, next: 20 };
    const one = take(newGroup, { recordsMax: 10 }, log);
    expect(one.span).toEqual({ first: 10, next: 20, attempt: 1 });
    expect(one.gap).toBeNull();
    expect(advanced(settle(one.state, one.id, 20, {}, log)).cursor).toBe(20);
  });

  test('records that went while they were leased or waited: truncated, or a gap', () => {
    const one = take(newGroup, { recordsMax: 3 });
    const back = release(one.state, one.id, 0)!;
    const log = { oldest: 5, next: 10 };
    expect(lease(back, log, ask())).toEqual({ kind: 'truncated', nextReadable: 5 });
    const two = take(back, { policy: 'earliest' }, log);
    expect(two).toMatchObject({ span: { first: 5, next: 7, attempt: 1 }, gap: { first: 0, next: 5 } });
    expect(two.state).toMatchObject({ cursor: 5, gaps: [{ first: 0, next: 5 }] });
  });

  test('an empty log: nothing', () => {
    expect(lease(newGroup, { oldest: 0, next: 0 }, ask()).kind).toBe('nothing');
    expect(lease(newGroup, { oldest: 7, next: 7 }, ask()).kind).toBe('nothing');
  });

  test('open ranges are bounded', () => {
    let state = newGroup;
    const log = { oldest: 0, next: 10_000 };
    for (let i = 0; i < rangesMax; i++) state = take(state, { recordsMax: 1, parallel: 1_000 }, log).state;
    expect(lease(state, log, ask({ parallel: 1_000 })).kind).toBe('nothing');
  });
});

describe('poison', () => {
  const twice = { attemptsMax: 2, recordsMax: 1 };

  test('without a limit it comes again and again', () => {
    let state = newGroup;
    for (let i = 1; i <= 3; i++) {
      const one = take(state, { recordsMax: 1 });
      expect(one.span.attempt).toBe(i);
      state = release(one.state, one.id, 0)!;
    }
    expect(state.cursor).toBe(0);
  });

  test('after the last attempt the next poller gets nothing, and the one after it goes on behind the record', () => {
    let state = newGroup;
    for (let i = 0; i < 2; i++) {
      const one = take(state, twice);
      state = release(one.state, one.id, 0)!;
    }
    const third = lease(state, ends, ask(twice));
    expect(third).toMatchObject({ kind: 'poisoned', offset: 0, attempts: 2 });
    const after = (third as Extract<Leased, { kind: 'poisoned' }>).state;
    expect(after.cursor).toBe(1);
    const next = take(after, twice);
    expect(next.span).toEqual({ first: 1, next: 2, attempt: 1 });
    expect(advanced(settle(next.state, next.id, 2)).cursor).toBe(2);
  });

  test.each([0, 3, 6])('of seven records the one that nobody can settle (%d) is set aside alone', (bad) => {
    const log = { oldest: 0, next: 7 };
    let state = newGroup;
    const setAside: number[] = [];
    for (let polls = 0; polls < 100 && state.cursor !== log.next; polls++) {
      const request = ask({ recordsMax: 7, attemptsMax: 3 });
      const answer = lease(state, log, request);
      if (answer.kind === 'poisoned') {
        setAside.push(answer.offset);
        state = answer.state;
        continue;
      }
      const { lease: span, state: held } = leased(answer);
      const fails = span.first <= bad && bad < span.next;
      state = fails ? release(held, request.id, 0)! : advanced(settle(held, request.id, span.next, {}, log));
    }
    expect(setAside).toEqual([bad]);
    expect(state).toMatchObject({ cursor: 7, ranges: [] });
  });
});

describe('reset', () => {
  test('moves anywhere, fences all, and leaves a line', () => {
    const one = take(newGroup);
    const over = reset(one.state, { to: 7, by: 'ops', nowMs: 5 });
    expect(over).toMatchObject({ cursor: 7, ranges: [], resets: [{ atMs: 5, by: 'ops', from: 0, to: 7 }] });
    expect(settle(over, one.id, 2).result).toBe('fenced');
    expect(take(reset(over, { to: 0, by: 'ops', nowMs: 6 })).span.first).toBe(0);
  });
});

test('handles', () => {
  for (const handle of [{ kind: 'epoch', epoch: 12 } as const, { kind: 'lease', id: '0af3' } as const]) {
    expect(parseHandle(formatHandle(handle))).toEqual(handle);
  }
  for (const text of ['', 'epoch-', 'epoch-x', 'lease-', 'lease-../x', 'epoch-1\n', '12']) expect(parseHandle(text)).toBeNull();
});

/** Several pollers that crash, are late, and settle in part, in any order: every record is settled once, in the end. */
test('any schedule of pollers settles each record exactly once', () => {
  type Step = { poller: number; act: 'lease' | 'commit' | 'part' | 'release' | 'crash' | 'wait'; size: number };
  const step: fc.Arbitrary<Step> = fc.record({
    poller: fc.nat(3),
    act: fc.constantFrom('lease', 'commit', 'part', 'release', 'crash', 'wait'),
    size: fc.integer({ min: 1, max: 5 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 3 }), (steps, parallel) => {
      let state = newGroup;
      let nowMs = 0;
      const log = { oldest: 0, next: 30 };
      const settled = new Map<number, number>();
      const held = new Map<number, { id: string; first: number; next: number }>();
      for (const { poller, act, size } of steps) {
        const mine = held.get(poller);
        if (act === 'wait') nowMs += size * 300;
        else if (act === 'lease' && mine === undefined) {
          const request = ask({ nowMs, parallel, recordsMax: size });
          const answer = lease(state, log, request);
          if (answer.kind === 'leased') {
            state = answer.state;
            held.set(poller, { id: request.id, ...answer.lease });
          }
        } else if (mine !== undefined && act === 'crash') held.delete(poller);
        else if (mine !== undefined && act === 'release') {
          state = release(state, mine.id, nowMs) ?? state;
          held.delete(poller);
        } else if (mine !== undefined) {
          const nextOffset = act === 'part' ? Math.min(mine.next, mine.first + size) : mine.next;
          const answer = settle(state, mine.id, nextOffset, { nowMs }, log);
          if (answer.result === 'advanced') {
            for (let at = mine.first; at < nextOffset; at++) settled.set(at, (settled.get(at) ?? 0) + 1);
            state = answer.state!;
          }
          if (answer.result !== 'advanced' || nextOffset === mine.next) held.delete(poller);
          else held.set(poller, { ...mine, first: nextOffset });
        }
        const cursor = state.cursor ?? 0;
        for (let at = 0; at < cursor; at++) expect(settled.get(at)).toBe(1);
        expect([...settled.values()].every((times) => times === 1)).toBe(true);
        expect(state.ranges.map(({ first }) => first)).toEqual(state.ranges.map(({ first }) => first).sort((a, b) => a - b));
        for (const [i, range] of state.ranges.entries()) expect(range.first).toBe(state.ranges[i - 1]?.next ?? cursor);
      }
    }),
    { numRuns: 300 },
  );
});

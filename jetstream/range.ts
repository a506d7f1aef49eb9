import { formatTime } from '../core/time.ts';
import { callApiOrThrow, directGet } from './api.ts';
import type { Link } from './link.ts';
import type { Count, Scope, StreamFacts } from './source.ts';
import { nextPlace, readPlace, type Place } from './stored-message.ts';
import type { StreamInfo } from './stream.ts';

/** Counting walks the stream's index: slow on a very large stream with many subjects. */
const countTimeoutMs = 30_000;
/** A count between two readings that differ is taken anew this often before it is called an estimate. */
const countAttemptsMax = 3;
/** Pages of 100,000 subjects. */
const subjectPagesMax = 20;
/** Halvings of 2^53 sequences. */
const halvingsMax = 54;
const timeSamples = 32;

/** See Source.sequenceAt. */
export async function sequenceAt(link: Link, facts: StreamFacts, time: bigint): Promise<number> {
  const beyond = facts.lastSequence + 1;
  if (facts.messages === 0) return beyond;
  if (facts.allowDirect) {
    const answer = await directGet(link, facts.stream, { start_time: formatTime(time), batch: 1 });
    if (answer.kind === 'message') return Math.min(readPlace(answer.headerBlock).sequence, beyond);
    if (answer.kind === 'none') {
      // A replica that lags behind may answer so: believe it only when the last message really is older.
      const last = await nextPlace(link, facts.stream, facts.lastSequence, true);
      if (last === null || last.timeNanos < time) return beyond;
    }
  }
  return bisect(facts, time, (sequence) => nextPlace(link, facts.stream, sequence, facts.allowDirect));
}

/** Finds the first place at or after the time by halving; deleted sequences count as the next message that is there. */
export async function bisect(
  range: { readonly firstSequence: number; readonly lastSequence: number },
  time: bigint,
  placeAt: (sequence: number) => Promise<Place | null>,
): Promise<number> {
  const beyond = range.lastSequence + 1;
  let low = range.firstSequence;
  let high = beyond;
  let found = beyond;
  for (let i = 0; i < halvingsMax && low < high; i++) {
    const middle = low + Math.floor((high - low) / 2);
    const place = await placeAt(middle);
    if (place !== null && place.timeNanos < time) low = place.sequence + 1;
    else {
      if (place !== null) found = Math.min(found, place.sequence);
      high = middle;
    }
  }
  return Math.min(found, beyond);
}

/** See Source.timesRise. */
export function timesRise(link: Link, facts: StreamFacts, first: number, last: number): Promise<boolean> {
  const range = { first: Math.max(first, facts.firstSequence), last: Math.min(last, facts.lastSequence) };
  return riseAt(range, (sequence) => nextPlace(link, facts.stream, sequence, facts.allowDirect));
}

export async function riseAt(
  range: { readonly first: number; readonly last: number },
  placeAt: (sequence: number) => Promise<Place | null>,
): Promise<boolean> {
  let previous: Place | null = null;
  for (const start of samplePoints(range.first, range.last, timeSamples)) {
    // Two neighbours each: where a clock was set back, times fall from one message to the next.
    let sequence = Math.max(start, (previous?.sequence ?? 0) + 1);
    for (let neighbour = 0; neighbour < 2 && sequence <= range.last; neighbour++) {
      const place: Place | null = await placeAt(sequence);
      if (place === null || place.sequence > range.last) return true;
      if (previous !== null && place.timeNanos < previous.timeNanos) return false;
      previous = place;
      sequence = place.sequence + 1;
    }
  }
  return true;
}

export function samplePoints(first: number, last: number, count: number): number[] {
  if (last < first) return [];
  const points = Math.min(count, last - first + 1);
  return Array.from({ length: points }, (_, i) =>
    points === 1 ? first : first + Math.floor(((last - first) * i) / (points - 1)),
  );
}

/** See Source.count. */
export async function count(link: Link, facts: StreamFacts, scope: Scope): Promise<Count> {
  const range = { ...scope, first: Math.max(scope.first, 1) };
  const counted =
    range.last < range.first || facts.messages === 0
      ? { messages: 0, exact: true }
      : ((facts.allowDirect ? await countByDirectGet(link, facts, range) : null) ?? (await countBySubject(link, facts, range)));
  // The server tells the stored size of the whole stream only; of messages it tells none.
  const bytes = facts.messages === 0 ? 0 : Math.round((facts.bytes / facts.messages) * counted.messages);
  return {
    messages: counted.messages,
    bytes,
    exact: { messages: counted.exact, bytes: counted.exact && counted.messages === 0 },
  };
}

interface Counted {
  readonly messages: number;
  readonly exact: boolean;
}

/** Filters do not overlap, so their counts add up. null when the stream does not answer direct gets. */
async function countByDirectGet(link: Link, facts: StreamFacts, scope: Scope): Promise<Counted | null> {
  let messages = 0;
  let exact = true;
  for (const filter of scope.filters) {
    const counted = await countFilter((sequence) => matchingFrom(link, facts.stream, sequence, filter), scope);
    if (counted === null) return null;
    messages += counted.messages;
    exact &&= counted.exact;
  }
  return { messages, exact };
}

async function countFilter(from: (sequence: number) => Promise<number | null>, scope: Scope): Promise<Counted | null> {
  let messages = 0;
  for (let attempt = 0; attempt < countAttemptsMax; attempt++) {
    const before = await from(scope.first);
    const beyond = await from(scope.last + 1);
    const after = await from(scope.first);
    if (before === null || beyond === null || after === null) return null;
    messages = Math.max(0, after - beyond);
    if (before === after) return { messages, exact: true };
  }
  return { messages, exact: false };
}

/** Messages of the filter at or after the sequence; null when the stream does not answer direct gets. */
async function matchingFrom(link: Link, stream: string, sequence: number, filter: string): Promise<number | null> {
  const body = { seq: sequence, next_by_subj: filter, batch: 1 };
  const answer = await directGet(link, stream, body, { timeoutMs: countTimeoutMs });
  if (answer.kind === 'not_allowed') return null;
  return answer.kind === 'none' ? 0 : readPlace(answer.headerBlock).pendingAfter + 1;
}

async function countBySubject(link: Link, facts: StreamFacts, scope: Scope): Promise<Counted> {
  const first = Math.max(scope.first, facts.firstSequence);
  const last = Math.min(scope.last, facts.lastSequence);
  if (last < first) return { messages: 0, exact: true };
  const span = facts.lastSequence - facts.firstSequence + 1;
  if (scope.filters.includes('>') && facts.messages === span) return { messages: last - first + 1, exact: true };
  let whole = 0;
  let complete = true;
  for (const filter of scope.filters) {
    const counted = await subjectTotal(link, facts, filter);
    whole += counted.messages;
    complete &&= counted.exact;
  }
  if (first === facts.firstSequence && last === facts.lastSequence) return { messages: whole, exact: complete };
  return { messages: Math.round((whole * (last - first + 1)) / span), exact: whole === 0 && complete };
}

async function subjectTotal(link: Link, facts: StreamFacts, filter: string): Promise<Counted> {
  let messages = 0;
  let offset = 0;
  for (let page = 0; page < subjectPagesMax; page++) {
    const body = { subjects_filter: filter, offset };
    const options = { timeoutMs: countTimeoutMs };
    const info = await callApiOrThrow<StreamInfo>(link, `STREAM.INFO.${facts.stream}`, body, 'unexpected', options);
    const counts = Object.values(info.state.subjects ?? {});
    messages += counts.reduce((sum, one) => sum + one, 0);
    offset += counts.length;
    if (counts.length === 0 || offset >= (info.total ?? 0)) {
      return { messages, exact: info.state.last_seq === facts.lastSequence };
    }
  }
  return { messages, exact: false };
}

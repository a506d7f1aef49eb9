import { encodeRuns } from '../../core/receipt.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import { formRecord } from './format.ts';
import type { FormedRecord } from './format.ts';
import type { SequenceRuns } from './journal.ts';
import type { SequenceIndex } from '../../core/sequence-set.ts';

export interface RecordRules {
  readonly requireJson: boolean;
  /** Bytes of the body; null: no limit. */
  readonly maxRecordBytes: number | null;
}

export interface SortedBatch {
  /** One a record of the batch, in its order. */
  readonly outcomes: readonly Outcome[];
  /** What is to be written, in the order of the batch, and its sequences for the journal. */
  readonly fresh: readonly FormedRecord[];
  readonly sequences: readonly SequenceRuns[];
}

const WRITTEN: Outcome = { kind: 'written' };
const DUPLICATE: Outcome = { kind: 'duplicate' };
const NOT_JSON: Outcome = { kind: 'rejected', code: 'not_json' };
const TOO_LARGE: Outcome = { kind: 'rejected', code: 'too_large' };

/** Decides about each record. What is in already is a duplicate even where today's rules would refuse it. */
export function sortOut(batch: readonly ReplayRecord[], index: SequenceIndex, rules: RecordRules): SortedBatch {
  const groups = new Groups(index);
  const fresh: FormedRecord[] = [];
  const outcomes = batch.map((record): Outcome => {
    const group = groups.of(record);
    const sequence = Number(record.sequence);
    if (!Number.isSafeInteger(sequence)) throw new RangeError('a stream sequence is beyond 2^53 - 1');
    if (group.known.has(sequence) || group.added.has(sequence)) return DUPLICATE;
    if (rules.maxRecordBytes !== null && record.payload.length > rules.maxRecordBytes) return TOO_LARGE;
    const formed = formRecord(record);
    if (rules.requireJson && formed.form !== 'json') return NOT_JSON;
    group.added.add(sequence);
    fresh.push(formed);
    return WRITTEN;
  });
  return { outcomes, fresh, sequences: groups.sequences() };
}

interface Group {
  readonly stream: string;
  readonly incarnation: string;
  readonly known: { has(sequence: number): boolean };
  readonly added: Set<number>;
}

/** Records by stream and incarnation. */
class Groups {
  readonly #index: SequenceIndex;
  readonly #groups: Group[] = [];
  #last: Group | undefined;

  constructor(index: SequenceIndex) {
    this.#index = index;
  }

  of({ stream, incarnation }: ReplayRecord): Group {
    const last = this.#last;
    if (last !== undefined && last.stream === stream && last.incarnation === incarnation) return last;
    this.#last = this.#groups.find((group) => group.stream === stream && group.incarnation === incarnation);
    if (this.#last === undefined) {
      this.#last = { stream, incarnation, known: this.#index.of(stream, incarnation), added: new Set() };
      this.#groups.push(this.#last);
    }
    return this.#last;
  }

  sequences(): SequenceRuns[] {
    return this.#groups.flatMap(({ stream, incarnation, added }) =>
      added.size === 0 ? [] : [[stream, incarnation, encodeRuns([...added].sort((a, b) => a - b))] as const],
    );
  }
}

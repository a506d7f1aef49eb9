import type { ReplayRecord } from '../core/record.ts';

/**
 * The other end of a sink that only keeps records for a while: what it holds is taken out, and removed once it is settled
 * elsewhere. Every call throws ReplayFault when the store cannot answer.
 */
export interface SpoolDrain {
  /** What it holds. Makes nothing, moves nothing. */
  describe(): Promise<SpoolContent>;
  /**
   * Makes the owner the one who drains; asked before each batch. Throws `spool_taken` while another one does: `isOpen` says
   * whether a run is still going on.
   */
  claim(owner: DrainOwner, isOpen: (owner: DrainOwner) => Promise<boolean>): Promise<void>;
  /** What is to be moved on next: whole packs, at least one, otherwise no more records than asked. Nothing is removed. */
  take(recordsMax: number, signal: AbortSignal): Promise<Taken & { readonly left: number }>;
  /** The same packs once more. */
  read(packs: readonly number[], signal: AbortSignal): Promise<Taken>;
  /** Their records are settled. No error for those already gone. */
  remove(packs: readonly number[]): Promise<void>;
}

export interface SpoolContent {
  readonly records: number;
  readonly bytes: number;
  /** Damaged or foreign files that were found. */
  readonly setAside: number;
}

export interface Taken {
  readonly packs: readonly number[];
  /** Stream by stream, in the order of their sequences, each once. */
  readonly records: readonly ReplayRecord[];
  /** Entries and files that were damaged or foreign, and were put where a person can look at them. */
  readonly setAside: number;
}

export interface DrainOwner {
  /** Temporal cluster id. */
  readonly cluster: string;
  readonly namespace: string;
  readonly workflowId: string;
  readonly firstRunId: string;
}

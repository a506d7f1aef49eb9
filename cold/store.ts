/**
 * Where cold segments lie: objects that are written once, read whole, and never changed. Every call throws ReplayFault: `retry`
 * when the store does not answer (`cold_unavailable`), `stop` when only a person can help (`cold_denied`, `cold_full`).
 */
export interface ColdStore {
  /**
   * Creates the object, and never replaces one. Resolves when it is durable as a whole: a crash leaves all of it or nothing.
   * `exists`: there is an object of this name, which may be the caller's own from an attempt that was lost; it compares.
   */
  put(name: string, bytes: Uint8Array, signal: AbortSignal): Promise<'stored' | 'exists'>;
  /** null: there is none of this name. */
  get(name: string, signal: AbortSignal): Promise<Uint8Array | null>;
  /** Names that begin with the prefix (a folder with its slash), in order. */
  list(prefix: string, signal: AbortSignal): Promise<readonly string[]>;
  /** No error when it is gone. */
  remove(name: string, signal: AbortSignal): Promise<void>;
  /** Shows that `put` really never replaces. Throws `cold_unfit` when the store ignores that. */
  prove(signal: AbortSignal): Promise<void>;
}

/** Names are parts of `A-Z a-z 0-9 _ . -` with slashes between; none begins with a dot. Throws RangeError. */
export function checkObjectName(name: string): string {
  if (name.length <= objectNameMax && /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/.test(name)) return name;
  throw new RangeError('not the name of a cold object');
}

const objectNameMax = 512;

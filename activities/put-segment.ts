import type { ColdStore } from '../cold/store.ts';
import { ReplayFault } from '../core/errors.ts';

/**
 * Stores an object under a name that was claimed. One that is there already is this one from an attempt that was lost, or a
 * conflict: then nothing else is touched. Throws `cold_conflict`.
 */
export async function putSegment(cold: ColdStore, name: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  if ((await cold.put(name, bytes, signal)) === 'stored') return;
  const there = await cold.get(name, signal);
  if (there === null) throw new ReplayFault('cold_unavailable', 'an object that exists cannot be read');
  if (Buffer.compare(there, bytes) !== 0) throw new ReplayFault('cold_conflict');
}

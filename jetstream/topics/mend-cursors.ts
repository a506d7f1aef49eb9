import { reset } from '../../core/group.ts';
import type { Link } from '../link.ts';
import { changeGroup, listGroupsOf } from './group-store.ts';
import { readBounds, type Partition } from './partition-stream.ts';

const nothing = (): void => undefined;

/** A position beyond the end would skip what comes next. Who holds a lease there is fenced. Resolves to how many were mended. */
export async function mendCursors(link: Link, partition: Partition, nowMs: number): Promise<number> {
  const { topic, partition: number } = partition;
  let mended = 0;
  for (const group of await listGroupsOf(link, topic, number)) {
    const isMended = await changeGroup(
      link,
      { topic, group, partition: number },
      async (state) => {
        const { next } = await readBounds(link, partition);
        const isBeyond = state.cursor !== null && state.cursor > next;
        return { state: isBeyond ? reset(state, { to: next, by: 'reconcile', nowMs }) : null, answer: isBeyond };
      },
      nothing,
    );
    if (isMended) mended++;
  }
  return mended;
}

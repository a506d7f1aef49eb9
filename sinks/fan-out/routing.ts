import type { ReplayRecord } from '../../core/record.ts';
import { matches } from '../../core/subjects.ts';
import type { FanOutConfig } from './config.ts';

/** The children that take a record, in the order of the target; or what the rule for the others says. */
export type Route = readonly string[] | 'reject' | 'skip';

/** Subjects remembered with their routes: bodies repeat them. */
const REMEMBERED_MAX = 10_000;

/** Decides by subject. */
export function createRouter({ sinks, unmatched }: Pick<FanOutConfig, 'sinks' | 'unmatched'>): (record: ReplayRecord) => Route {
  const known = new Map<string, Route>();
  return ({ subject }) => {
    const found = known.get(subject);
    if (found !== undefined) return found;
    if (known.size >= REMEMBERED_MAX) known.clear();
    const route = routeOf(subject, { sinks, unmatched });
    known.set(subject, route);
    return route;
  };
}

export function routeOf(subject: string, { sinks, unmatched }: Pick<FanOutConfig, 'sinks' | 'unmatched'>): Route {
  const names = Object.entries(sinks).flatMap(([name, { subjects }]) =>
    subjects === undefined || subjects.some((filter) => matches(filter, subject)) ? [name] : [],
  );
  if (names.length > 0) return names;
  return unmatched === 'reject' || unmatched === 'skip' ? unmatched : [unmatched];
}

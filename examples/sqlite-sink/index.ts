import type { SinkSpec } from 'durable-replay/sinks';
import { sqliteSpec } from './config.ts';

/** What REPLAY_SINKS looks for in a package. */
export const sinks: readonly SinkSpec[] = [sqliteSpec];

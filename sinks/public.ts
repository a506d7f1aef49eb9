/** What a package of sinks builds on: `import { ReplayFault } from 'durable-replay/sinks'`. See docs/certification.md. */
export { ReplayFault } from '../core/errors.ts';
export type { FaultCode } from '../core/errors.ts';
export type { IdempotencyKey, Outcome, RejectCode, ReplayRecord } from '../core/record.ts';
export { ruledText, secretSchema } from '../core/schema.ts';
export type { SinkSpec } from './registry.ts';
export type { Finding, Sink, SinkCapabilities, SinkContext } from './sink.ts';

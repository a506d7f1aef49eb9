/** The contract suite for packages of sinks: `import { certify } from 'durable-replay/contract'`. See docs/certification.md. */
export type { Certification } from '../../sinks/certification.ts';
export { certify, failedCases } from './certify.ts';
export { assertCase, contractCases } from './sink-contract.ts';
export type { Destination, Place, StoredRecord } from './sink-contract.ts';

import { readFileSync } from 'node:fs';
import type { SinkSpec } from './registry.ts';

/** Version of the evidence format. */
export const CERTIFICATION_FORMAT = 1;

/** What was found when `npm run certify -- TYPE`, or `certify` of test/contract/certify.ts, ran the contract suite against the real destination. */
export interface Certification {
  readonly format: number;
  readonly type: string;
  /** Version of the package that brings the sink, when it was certified. */
  readonly package_version: string;
  readonly modes: readonly CertifiedMode[];
}

export interface CertifiedMode {
  readonly mode: string;
  readonly cases: readonly { readonly name: string; readonly result: 'passed' | 'failed' | 'not_applicable' }[];
}

/** null without evidence, and where it is for something else or in another format. Reads a small file each time. */
export function certificationOf(spec: Pick<SinkSpec, 'type' | 'evidence'>): Certification | null {
  if (spec.evidence === undefined) return null;
  const certification = readEvidence(spec.evidence);
  return certification?.type === spec.type && certification.format === CERTIFICATION_FORMAT ? certification : null;
}

/** Whether the contract suite passed for the mode that this `sink` object of a target asks for. */
export function isCertified(spec: SinkSpec, sink: Readonly<Record<string, unknown>>): boolean {
  const mode = modeOf(spec, sink);
  const certified = certificationOf(spec)?.modes.find((candidate) => candidate.mode === mode);
  return certified !== undefined && certified.cases.length > 0 && certified.cases.every(({ result }) => result !== 'failed');
}

export function modeOf(spec: Pick<SinkSpec, 'modeOf'>, sink: Readonly<Record<string, unknown>>): string {
  return spec.modeOf?.(sink) ?? DEFAULT_MODE;
}

export const DEFAULT_MODE = 'default';

function readEvidence(evidence: URL): Certification | null {
  try {
    return JSON.parse(readFileSync(evidence, 'utf8')) as Certification;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

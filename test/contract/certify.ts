import { CERTIFICATION_FORMAT } from '../../sinks/certification.ts';
import type { Certification, CertifiedMode } from '../../sinks/certification.ts';
import { assertCase, contractCases } from './sink-contract.ts';
import type { ContractCase, Destination } from './sink-contract.ts';

export interface CertifyOptions {
  /** Of the package that brings the sink. */
  readonly version: string;
  /** Told each case as it ends, and what a failed one threw. */
  readonly say: (line: string) => void;
}

/** Runs the contract suite over each mode of one sink type, a destination each. What it returns belongs beside the sink. */
export async function certify(destinations: readonly Destination[], { version, say }: CertifyOptions): Promise<Certification> {
  const type = destinations[0]!.spec.type;
  const modes: CertifiedMode[] = [];
  for (const destination of destinations) {
    const cases: CertifiedMode['cases'][number][] = [];
    for (const contractCase of contractCases) {
      const result = await tryCase(contractCase, destination, say);
      say(`${type} ${destination.mode}: ${contractCase.name}: ${result}`);
      cases.push({ name: contractCase.name, result });
    }
    modes.push({ mode: destination.mode, cases });
  }
  return { format: CERTIFICATION_FORMAT, type, package_version: version, modes };
}

async function tryCase(contractCase: ContractCase, destination: Destination, say: CertifyOptions['say']) {
  try {
    return await assertCase(contractCase, destination);
  } catch (error) {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return 'failed';
  }
}

export function failedCases({ modes }: Certification): string[] {
  return modes.flatMap(({ mode, cases }) =>
    cases.filter(({ result }) => result === 'failed').map(({ name }) => `${mode}: ${name}`),
  );
}

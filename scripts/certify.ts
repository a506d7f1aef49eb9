/**
 * `npm run certify -- TYPE`: runs the contract suite against the real destination of a sink type, in each of its modes, and
 * writes what it found beside the sink. A replay is refused into a sink, or a mode of it, without a whole pass.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { CERTIFICATION_FORMAT } from '../sinks/certification.ts';
import type { Certification, CertifiedMode } from '../sinks/certification.ts';
import { findSinkSpec } from '../sinks/registry.ts';
import { destinations } from '../test/contract/destinations.ts';
import { assertCase, contractCases } from '../test/contract/sink-contract.ts';
import type { ContractCase, Destination } from '../test/contract/sink-contract.ts';
import { runAtFileEnd } from '../test/support/file-end.ts';

const [type = '', ...rest] = process.argv.slice(2);
const load = destinations[type];
const evidence = findSinkSpec(type)?.evidence;
if (load === undefined || evidence === undefined || rest.length > 0) {
  process.stderr.write(
    `Name one sink type, such as: npm run certify -- file\nKnown: ${Object.keys(destinations).join(', ')}\n`,
  );
  process.exit(2);
}

const modes: CertifiedMode[] = [];
for (const destination of await load()) modes.push(await certify(destination));
await runAtFileEnd();
const file = fileURLToPath(evidence);
await writeEvidence(file, { format: CERTIFICATION_FORMAT, type, package_version: await packageVersion(), modes });
const failed = modes.flatMap(({ cases }) => cases).filter(({ result }) => result === 'failed');
process.stdout.write(`Wrote ${relative('.', file)}: ${failed.length === 0 ? 'certified' : `${failed.length} cases failed`}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;

async function certify(destination: Destination): Promise<CertifiedMode> {
  const cases: CertifiedMode['cases'][number][] = [];
  for (const contractCase of contractCases) {
    const result = await tryCase(contractCase, destination);
    process.stdout.write(`${type} ${destination.mode}: ${contractCase.name}: ${result}\n`);
    cases.push({ name: contractCase.name, result });
  }
  return { mode: destination.mode, cases };
}

async function tryCase(contractCase: ContractCase, destination: Destination) {
  try {
    return await assertCase(contractCase, destination);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    return 'failed';
  }
}

async function packageVersion(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

async function writeEvidence(path: string, certification: Certification): Promise<void> {
  const options = await resolveConfig(path);
  await writeFile(path, await format(JSON.stringify(certification), { ...options, filepath: path }));
}

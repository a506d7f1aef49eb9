/**
 * `npm run certify -- TYPE`: runs the contract suite against the real destination of a sink type, in each of its modes, and
 * writes what it found beside the sink. A replay is refused into a sink, or a mode of it, without a whole pass.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { certify, failedCases } from '../test/contract/certify.ts';
import { destinations } from '../test/contract/destinations.ts';
import { runAtFileEnd } from '../test/support/file-end.ts';

const [type = '', ...rest] = process.argv.slice(2);
const load = destinations[type];
if (load === undefined || rest.length > 0) {
  process.stderr.write(
    `Name one sink type, such as: npm run certify -- file\nKnown: ${Object.keys(destinations).join(', ')}\n`,
  );
  process.exit(2);
}

const found = await load();
const file = fileURLToPath(found[0]!.spec.evidence!);
const version = await packageVersion(dirname(file));
const certification = await certify(found, { version, say: (line) => void process.stdout.write(`${line}\n`) });
await runAtFileEnd();
await writeFile(file, await format(JSON.stringify(certification), { ...(await resolveConfig(file)), filepath: file }));
const failed = failedCases(certification);
process.stdout.write(`Wrote ${relative('.', file)}: ${failed.length === 0 ? 'certified' : `${failed.length} cases failed`}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;

/** Of the package that the folder is in. */
async function packageVersion(folder: string): Promise<string> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => null);
  return text === null ? await packageVersion(dirname(folder)) : (JSON.parse(text) as { readonly version: string }).version;
}

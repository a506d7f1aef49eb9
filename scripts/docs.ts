/**
 * Generates the reference pages and editor schemas from the code. `--check` writes nothing: it names the stale files and ends
 * with status 1.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { cliPage } from './docs/cli-page.ts';
import { errorsPage } from './docs/errors-page.ts';
import { planSchemaText, targetSchemaText } from './docs/editor-schemas.ts';
import { metricsPage } from './docs/metrics-page.ts';
import { planPage } from './docs/plan-page.ts';
import { settingsPage } from './docs/settings-page.ts';
import { sinksPage } from './docs/sinks-page.ts';
import { targetPage } from './docs/target-page.ts';

export interface Generator {
  /** Path from the root of the project. */
  readonly file: string;
  /** The whole text; it is formatted afterwards. */
  readonly text: () => string | Promise<string>;
}

const generators: readonly Generator[] = [
  { file: 'docs/reference/plan.md', text: planPage },
  { file: 'docs/reference/target.md', text: targetPage },
  { file: 'docs/reference/sinks.md', text: sinksPage },
  { file: 'docs/reference/errors.md', text: errorsPage },
  { file: 'docs/reference/settings.md', text: settingsPage },
  { file: 'docs/reference/metrics.md', text: metricsPage },
  { file: 'docs/reference/cli.md', text: cliPage },
  { file: 'docs/schema/plan.schema.json', text: planSchemaText },
  { file: 'docs/schema/target.schema.json', text: targetSchemaText },
];

/** The files of the list that are missing below `root` or differ from what the code says now. */
export async function staleFiles(list: readonly Generator[], root: string): Promise<string[]> {
  const stale: string[] = [];
  for (const generator of list) {
    const present = await readFile(join(root, generator.file), 'utf8').catch(() => undefined);
    if (present !== (await generated(generator, root))) stale.push(generator.file);
  }
  return stale;
}

export async function writeFiles(list: readonly Generator[], root: string): Promise<void> {
  for (const generator of list) {
    const path = join(root, generator.file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, await generated(generator, root));
  }
}

async function generated(generator: Generator, root: string): Promise<string> {
  const path = join(root, generator.file);
  return format(await generator.text(), { ...(await resolveConfig(path)), filepath: path });
}

async function main(): Promise<void> {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const stale = await staleFiles(generators, root);
  if (!process.argv.includes('--check')) {
    await writeFiles(
      generators.filter(({ file }) => stale.includes(file)),
      root,
    );
    process.stdout.write(stale.length === 0 ? 'docs: all up to date\n' : `docs: wrote ${stale.join(', ')}\n`);
  } else if (stale.length > 0) {
    process.stderr.write(`docs: stale: ${stale.join(', ')}\nRun npm run docs and commit the result.\n`);
    process.exitCode = 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { shown } from '../core/problems.ts';
import type { Problem } from '../core/problems.ts';
import { addSinkSpecs, findSinkSpec } from './registry.ts';
import type { SinkSpec } from './registry.ts';

const PACKAGES_MAX = 32;
const packageName = /^(@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/;
const typeName = /^[a-z][a-z0-9_-]{0,63}$/;

/**
 * Sinks that come as packages, by the names in the setting REPLAY_SINKS. A package is looked for from the working directory
 * `from`, then beside this one, and exports `sinks`, a list of SinkSpec. All problems at once; with one, nothing is added.
 * Adding a package again does nothing.
 */
export async function loadSinkPackages(names: readonly string[], from: string): Promise<readonly Problem[]> {
  if (names.length > PACKAGES_MAX) return [problem(`names ${names.length} packages; expected at most ${PACKAGES_MAX}`)];
  const problems: Problem[] = [];
  const added: SinkSpec[] = [];
  for (const name of new Set(names)) {
    const loaded = await loadPackage(name, from);
    if (!loaded.ok) problems.push(problem(loaded.message));
    else for (const spec of loaded.specs) place(name, spec, { added, problems });
  }
  if (problems.length === 0) addSinkSpecs(added);
  return problems;
}

function place(name: string, spec: SinkSpec, { added, problems }: { added: SinkSpec[]; problems: Problem[] }): void {
  const known = findSinkSpec(spec.type) ?? added.find(({ type }) => type === spec.type);
  if (known === undefined) added.push(spec);
  else if (known !== spec) problems.push(problem(`${shown(name)} brings the sink ${shown(spec.type)}, which is there already`));
}

type Loaded = { readonly ok: true; readonly specs: readonly SinkSpec[] } | { readonly ok: false; readonly message: string };

async function loadPackage(name: string, from: string): Promise<Loaded> {
  const refused = (message: string): Loaded => ({ ok: false, message });
  if (!packageName.test(name)) return refused(`${shown(name)} is not the name of a package, such as durable-replay-sqlite`);
  const file = resolvePackage(name, from);
  if (file === null) return refused(`no package ${shown(name)}; install it where this runs: npm install ${name}`);
  try {
    const { sinks } = (await import(pathToFileURL(file).href)) as { readonly sinks?: unknown };
    if (!Array.isArray(sinks) || sinks.length === 0 || !sinks.every(isSinkSpec)) {
      return refused(`the package ${shown(name)} is none of sinks; expected it to export "sinks", a list of SinkSpec`);
    }
    return { ok: true, specs: sinks };
  } catch (error) {
    return refused(`the package ${shown(name)} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** null when it is nowhere. */
function resolvePackage(name: string, from: string): string | null {
  for (const base of [join(from, 'package.json'), import.meta.url]) {
    try {
      return createRequire(base).resolve(name);
    } catch {
      continue;
    }
  }
  return null;
}

function isSinkSpec(value: unknown): value is SinkSpec {
  const { type, summary, config, keys, local, example, load } = Object(value) as Partial<Record<keyof SinkSpec, unknown>>;
  return (
    typeof type === 'string' &&
    typeName.test(type) &&
    typeof summary === 'string' &&
    typeof Object(config).safeParse === 'function' &&
    Array.isArray(keys) &&
    keys.length > 0 &&
    typeof local === 'boolean' &&
    typeof example === 'object' &&
    typeof load === 'function'
  );
}

function problem(message: string): Problem {
  return { path: 'REPLAY_SINKS', message };
}

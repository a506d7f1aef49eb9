import { open, stat, type FileHandle } from 'node:fs/promises';
import { readJson } from '../core/json.ts';
import { fileBytesMax } from '../core/limits.ts';
import { parsePlanBytes } from '../core/plan.ts';
import { formatProblems, groupDigits, type Parsed, type Problem } from '../core/problems.ts';
import { parseTargetBytes, type ReplayTarget } from '../core/target.ts';
import { sinkSpecs } from '../sinks/registry.ts';
import { problemsBetween, withDryRun, type CheckedRequest } from './request.ts';

export interface FileProblem extends Problem {
  /** As the user named it. */
  readonly file: string;
}

export type RequestReading =
  { readonly ok: true; readonly value: CheckedRequest } | { readonly ok: false; readonly problems: readonly FileProblem[] };

export interface RequestFiles {
  readonly planFile: string;
  /** A file, or the name of a target in the worker's targets folder. */
  readonly targetFile: string;
  /** undefined: as the plan says. */
  readonly dryRun: boolean | undefined;
}

/** Reads and checks both files; all problems of both at once. `nowMs`: milliseconds since the epoch. */
export async function readRequest({ planFile, targetFile, dryRun }: RequestFiles, nowMs: number): Promise<RequestReading> {
  const plan = await readDocument(planFile, 'a plan file', parsePlanBytes);
  const target = await readTarget(targetFile);
  const problems: FileProblem[] = [...(plan.ok ? [] : inFile(planFile, plan.problems)), ...(target.ok ? [] : target.problems)];
  if (!plan.ok || !target.ok) return { ok: false, problems };
  const between = problemsBetween(plan.value.parsed, target.value.parsed, nowMs);
  problems.push(...inFile(planFile, between.plan), ...inFile(targetFile, between.target));
  if (problems.length > 0) return { ok: false, problems };

  const chosen = dryRun ?? plan.value.parsed.dry_run;
  return {
    ok: true,
    value: {
      request: {
        plan: dryRun === undefined ? plan.value.document : withDryRun(plan.value.document, dryRun),
        target: target.value.document,
      },
      plan: { ...plan.value.parsed, dry_run: chosen },
      target: target.value.parsed,
    },
  };
}

export interface TargetReading {
  /** The document, or the name of a target of the worker. */
  readonly document: unknown;
  /** null: only the worker can look it up. */
  readonly parsed: ReplayTarget | null;
}

/** A target file, or the name of a target in the worker's targets folder. */
export async function readTarget(
  targetFile: string,
): Promise<
  { readonly ok: true; readonly value: TargetReading } | { readonly ok: false; readonly problems: readonly FileProblem[] }
> {
  if (await isTargetName(targetFile)) return { ok: true, value: { document: targetFile, parsed: null } };
  const read = await readDocument(targetFile, targetExpected, (bytes) => parseTargetBytes(bytes, sinkSpecs));
  return read.ok ? read : { ok: false, problems: inFile(targetFile, read.problems) };
}

/** One problem a line, each with its file. */
export function formatFileProblems(problems: readonly FileProblem[]): string {
  return problems.map(({ file, ...problem }) => `${file}: ${formatProblems([problem])}`).join('\n');
}

const targetExpected = 'a target file, or the name of a target in the targets folder of the worker';

function inFile(file: string, problems: readonly Problem[]): FileProblem[] {
  return problems.map((problem) => ({ file, ...problem }));
}

interface Document<T> {
  readonly document: unknown;
  readonly parsed: T;
}

async function readDocument<T>(
  file: string,
  expected: string,
  parse: (bytes: Uint8Array) => Parsed<T>,
): Promise<Parsed<Document<T>>> {
  const bytes = await readBytes(file, expected);
  if (!bytes.ok) return bytes;
  const parsed = parse(bytes.value);
  return parsed.ok ? { ok: true, value: { document: readJson(bytes.value).value, parsed: parsed.value } } : parsed;
}

/** At most `fileBytesMax`, from anything that can be read: a pipe such as `<(jq ...)` too. */
async function readBytes(file: string, expected: string): Promise<Parsed<Uint8Array>> {
  try {
    const handle = await open(file, 'r');
    try {
      if ((await handle.stat()).isDirectory()) return refused(`is a directory; expected ${expected}`);
      return await readBounded(handle);
    } finally {
      await handle.close();
    }
  } catch (error) {
    return refused(`${openFault(error)}; expected ${expected}`);
  }
}

async function readBounded(handle: FileHandle): Promise<Parsed<Uint8Array>> {
  const buffer = Buffer.alloc(fileBytesMax + 1);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) return { ok: true, value: buffer.subarray(0, length) };
    length += bytesRead;
  }
  return refused(`the file has more than ${groupDigits(fileBytesMax)} bytes, the most that is read`);
}

function openFault(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'no such file';
    case 'EACCES':
    case 'EPERM':
      return 'may not be read';
    default:
      return `cannot be read${typeof code === 'string' ? ` (${code})` : ''}`;
  }
}

function refused(message: string): { readonly ok: false; readonly problems: readonly Problem[] } {
  return { ok: false, problems: [{ path: '', message }] };
}

/** No path, no file there: a name for the worker to look up. */
async function isTargetName(target: string): Promise<boolean> {
  if (target === '' || /[/\\]|\.json$/i.test(target)) return false;
  try {
    await stat(target);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT';
  }
}

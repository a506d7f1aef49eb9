import { readdir, readFile } from 'node:fs/promises';

export interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Running processes below `parent`, at any depth. Empty where there is no /proc. */
export async function childProcesses(parent: number): Promise<ProcessFacts[]> {
  const all = await allProcesses();
  const found: ProcessFacts[] = [];
  let parents = new Set([parent]);
  while (parents.size > 0) {
    const next = all.filter((one) => parents.has(one.parent));
    found.push(...next);
    parents = new Set(next.map(({ pid }) => pid));
  }
  return found;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function allProcesses(): Promise<ProcessFacts[]> {
  const names = await readdir('/proc').catch(() => []);
  const facts = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map((name) => readProcess(Number(name))));
  return facts.filter((one) => one !== null);
}

/** null: it ended meanwhile, or has ended and only waits for its parent. */
async function readProcess(pid: number): Promise<ProcessFacts | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z') return null;
    const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim();
    return { pid, parent: Number(parent), command };
  } catch {
    return null;
  }
}

export type Version = readonly [major: number, minor: number, patch: number];

/** The first `1.2.3` or `1.2` of a program's version line; null when there is none. */
export function parseVersion(text: string): Version | null {
  const found = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(text);
  return found === null ? null : [Number(found[1]), Number(found[2]), Number(found[3] ?? 0)];
}

export function isAtLeast(version: Version, minimum: Version): boolean {
  for (const [index, part] of version.entries()) {
    if (part !== minimum[index]) return part > minimum[index]!;
  }
  return true;
}

export function formatVersion(version: Version): string {
  return version.join('.');
}

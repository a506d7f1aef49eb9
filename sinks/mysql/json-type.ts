import { hasLoneSurrogate } from '../../core/json-token.ts';

/** Depth up to which MySQL takes a JSON value. */
const depthMaxMysql = 100;
/** Found on MariaDB 11.8. */
export const depthMaxMariadb = 31;

/**
 * Whether MySQL's JSON type takes this strict JSON. It refuses lone surrogates, depth over 100 (MariaDB: 31) and numbers beyond a double.
 * What is not foreseen here is found when the server refuses the row.
 */
export function jsonTypeTakes(json: string, depthMax = depthMaxMysql): boolean {
  if (depthOf(json) > depthMax) return false;
  if (json.includes('\\u') && hasLoneSurrogate(unescaped(json))) return false;
  return !hugeNumber.test(json) || !(json.match(/-?\d+(\.\d+)?([eE][+-]?\d+)?/g) ?? []).some((text) => !Number.isFinite(+text));
}

/** Cheap: an exponent of three digits, or very many digits; either may stand in a string as well. */
const hugeNumber = /[eE]\+?\d{3}|\d{300}/;

/** Only `\uXXXX` matters; `\\u` is a backslash and a letter. */
function unescaped(json: string): string {
  return json.replace(/\\(?:u([0-9a-fA-F]{4})|.)/g, (_, hex: string | undefined) =>
    hex === undefined ? '.' : String.fromCharCode(parseInt(hex, 16)),
  );
}

function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x7b || c === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (c === 0x7d || c === 0x5d) depth--;
  }
  return deepest;
}

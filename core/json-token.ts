/**
 * Values within a JSON text by their own spelling: parsing would round 19-digit integers and turn 1.10 into 1.1. Takes text
 * that is known to be strict JSON (core/payload.ts); without recursion, so that depth costs no stack.
 */

export interface JsonToken {
  readonly kind: 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array';
  /** As it stands in the text, quotes included. */
  readonly text: string;
}

/** Steps of a JSON Pointer (RFC 6901) that has been checked before. */
export function pointerSteps(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The value that the steps lead to from the root; undefined when there is none. */
export function findToken(json: string, steps: readonly string[]): JsonToken | undefined {
  let at = skipSpace(json, 0);
  for (const step of steps) {
    const found = json[at] === '{' ? findKey(json, at, step) : json[at] === '[' ? findIndex(json, at, step) : -1;
    if (found === -1) return undefined;
    at = found;
  }
  const text = json.slice(at, skipValue(json, at));
  return { kind: kindOf(text), text };
}

/** The string that a token of kind `string` spells. */
export function stringOf(token: JsonToken): string {
  return token.text.includes('\\') ? (JSON.parse(token.text) as string) : token.text.slice(1, -1);
}

/** Whether a text has half of a surrogate pair, which no UTF-8 can hold. */
export function hasLoneSurrogate(text: string): boolean {
  return /[\ud800-\udfff]/.test(text) && /\p{Surrogate}/u.test(text);
}

/** One spelling for numbers that are equal: `1.10` and `11e-1` are `1.1`. Takes a JSON number. */
export function canonicalNumber(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (match === null) return text;
  const [, sign, whole, fraction = '', exponent = '0'] = match;
  const digits = (whole! + fraction).replace(/^0+/, '');
  const trimmed = digits.replace(/0+$/, '');
  if (trimmed === '') return '0';
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - trimmed.length);
  return power === 0n ? `${sign}${trimmed}` : `${sign}${trimmed}e${power}`;
}

function kindOf(text: string): JsonToken['kind'] {
  switch (text[0]) {
    case '"':
      return 'string';
    case '{':
      return 'object';
    case '[':
      return 'array';
    case 't':
    case 'f':
      return 'boolean';
    case 'n':
      return 'null';
    default:
      return 'number';
  }
}

/** Where the value of a key begins, in the object that begins at `from`; -1 without it. */
function findKey(json: string, from: number, key: string): number {
  let at = skipSpace(json, from + 1);
  while (json[at] !== '}') {
    const end = skipString(json, at);
    const name = stringOf({ kind: 'string', text: json.slice(at, end) });
    const value = skipSpace(json, skipSpace(json, end) + 1);
    if (name === key) return value;
    at = skipSpace(json, skipValue(json, value));
    if (json[at] === ',') at = skipSpace(json, at + 1);
  }
  return -1;
}

function findIndex(json: string, from: number, step: string): number {
  if (!/^(0|[1-9]\d{0,9})$/.test(step)) return -1;
  let at = skipSpace(json, from + 1);
  for (let left = Number(step); json[at] !== ']'; left--) {
    if (left === 0) return at;
    at = skipSpace(json, skipValue(json, at));
    if (json[at] === ',') at = skipSpace(json, at + 1);
  }
  return -1;
}

function skipSpace(json: string, from: number): number {
  let at = from;
  while (at < json.length && json.charCodeAt(at) <= 0x20) at++;
  return at;
}

function skipString(json: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const c = json[at];
    if (c === '"') return at + 1;
    if (c === '\\') at++;
  }
}

function skipValue(json: string, from: number): number {
  const first = json[from];
  if (first === '"') return skipString(json, from);
  if (first !== '{' && first !== '[') {
    let at = from;
    while (at < json.length && !/[\s,\]}]/.test(json[at]!)) at++;
    return at;
  }
  let depth = 0;
  for (let at = from; ;) {
    const c = json[at];
    if (c === '"') {
      at = skipString(json, at);
      continue;
    }
    if (c === '{' || c === '[') depth++;
    else if ((c === '}' || c === ']') && --depth === 0) return at + 1;
    at++;
  }
}

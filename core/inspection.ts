/** What `inspect` may show of a stored message: bounded, and without what looks like a credential. */

const headersShownMax = 20;
const headerCharactersMax = 200;
const redacted = '<redacted>';
const secretName = /auth|token|secret|passw|passphrase|cookie|credential|api[-_]?key|private|signature|session|jwt|bearer/i;

export interface ShownHeaders {
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly headers_not_shown: number;
}

/** Values of headers that are named like a credential are left out; long ones are cut. */
export function shownHeaders(headers: ReadonlyMap<string, readonly string[]>): ShownHeaders {
  const shown = [...headers].slice(0, headersShownMax);
  return {
    headers: Object.fromEntries(
      shown.map(([name, values]) => [
        name,
        secretName.test(name) ? [redacted] : values.map((value) => cut(value, headerCharactersMax)),
      ]),
    ),
    headers_not_shown: headers.size - shown.length,
  };
}

/** At most so many characters, the cut marked. */
export function cut(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax)}... (${text.length} characters)`;
}

/** For a terminal: nothing that moves its cursor or hides text. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (mark) => `\\u${mark.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  );
}

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Parsed } from '../../../core/problems.ts';
import { parseTarget, parseTargetBytes } from '../../../core/target.ts';
import { sinkSpecs } from '../../../sinks/registry.ts';

/**
 * Whoever writes a secret into a target, in its field or in a wrong one, as text or in the wrong shape, is refused without
 * seeing it again: problems are printed, logged and kept in histories.
 */
const secrets = fc
  .tuple(fc.string({ minLength: 6, maxLength: 40, unit: 'grapheme' }), fc.integer({ min: 1_000, max: 9_999 }))
  .map(([text, number]) => `${text}#s3cret-${number}`);

const targets = sinkSpecs.flatMap(({ example, type }) =>
  Object.entries(example)
    .filter(([, value]) => typeof value === 'object' && value !== null && 'env' in value)
    .flatMap(([field]) => {
      const at = (value: unknown): object => ({ sink: { ...example, [field]: value } });
      return [
        { name: `${type}.${field} as text`, make: (secret: string) => at(secret) },
        { name: `${type}.${field} as the name of its variable`, make: (secret: string) => at({ env: secret }) },
        { name: `${type}.${field} in a list`, make: (secret: string) => at([secret]) },
        { name: `${type}.${field} in an unknown field`, make: (secret: string) => at({ value: secret }) },
        { name: `${type}, an unknown secret field`, make: (secret: string) => ({ sink: { ...example, passwd: secret } }) },
        { name: `${type}, beside the sink`, make: (secret: string) => ({ sink: example, password: secret }) },
      ];
    }),
);

test('there are sinks with secrets', () => expect(targets.length).toBeGreaterThan(5));

test.each(targets)('$name', ({ make }) => {
  fc.assert(
    fc.property(secrets, (secret) => {
      const document = make(secret);
      for (const parsed of [
        parseTarget(document, sinkSpecs),
        parseTargetBytes(Buffer.from(JSON.stringify(document)), sinkSpecs),
      ])
        expectHidden(parsed, secret);
    }),
    { numRuns: 100 },
  );
});

function expectHidden(parsed: Parsed<unknown>, secret: string): void {
  expect(parsed.ok).toBe(false);
  const told = JSON.stringify(parsed);
  expect(told).not.toContain(JSON.stringify(secret).slice(1, -1));
  expect(told).not.toContain(secret.slice(-11));
}

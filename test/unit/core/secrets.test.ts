import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { parsePlanBytes } from '../../../core/plan.ts';
import type { Parsed } from '../../../core/problems.ts';
import { secretSchema } from '../../../core/schema.ts';
import { parseTarget, parseTargetBytes } from '../../../core/target.ts';
import type { SinkSpec } from '../../../sinks/registry.ts';

const login = { user: z.string().min(1), password: secretSchema('The password.') };
const spec: SinkSpec = {
  type: 'table',
  summary: 'For tests.',
  config: z.strictObject({
    type: z.literal('table'),
    ...login,
    url: z.string().regex(/^[a-z.]+$/),
    tls: z.strictObject({ key: secretSchema('The key.').optional() }).optional(),
    wallet: z
      .union([
        z.strictObject({ content: secretSchema('Content.') }),
        z.strictObject({ folder: z.string(), password: secretSchema('P.') }),
      ])
      .optional(),
    sinks: z.record(z.string().max(64), z.strictObject(login)).optional(),
  }),
  keys: ['stream_sequence'],
  local: false,
  example: {},
  load: () => Promise.reject(new Error('not here')),
};

/** A target whose secret-marked fields, unknown fields and an ordinary sink string all hold what `plant` gives. */
const documents: readonly ((plant: unknown) => unknown)[] = [
  (plant) => sink({ password: plant }),
  (plant) => sink({ password: { env: plant } }),
  (plant) => sink({ password: { env: 'REPLAY_SECRET_A', value: plant } }),
  (plant) => sink({ password: { [String(plant)]: 1 } }),
  (plant) => sink({ password: [plant, { [String(plant)]: plant }] }),
  (plant) => sink({ tls: { key: plant } }),
  (plant) => sink({ tls: { key: { [String(plant)]: plant } } }),
  (plant) => sink({ tls: plant }),
  (plant) => sink({ wallet: plant }),
  (plant) => sink({ wallet: { content: plant } }),
  (plant) => sink({ wallet: { folder: 'w', password: plant } }),
  (plant) => sink({ wallet: { folder: 'w', password: { [String(plant)]: plant } } }),
  (plant) => sink({ sinks: { a: { user: 'u', password: plant } } }),
  (plant) => sink({ sinks: { a: { user: 'u', password: { [String(plant)]: plant } } } }),
  (plant) => sink({ sinks: { a: plant } }),
  (plant) => sink({ url: plant }),
  (plant) => sink({ user: [plant] }),
  (plant) => sink({ passwort: plant }),
  (plant) => sink({ passwort: { deep: [plant] } }),
  (plant) => ({ ...sink({}), secrets: plant }),
  (plant) => ({ ...sink({}), idempotency: { key: 'stream_sequence', token: plant } }),
];

function sink(change: Record<string, unknown>): Record<string, unknown> {
  return { sink: { type: 'table', user: 'u', url: 'db', password: { env: 'REPLAY_SECRET_DB' }, ...change } };
}

// Long and of letters that no message contains, so that a find is a leak.
const secret = fc
  .array(fc.constantFrom(...'QXZqxz0123456789'.split(''), '\u0007', '"', '😀', 'é'), { minLength: 12, maxLength: 40 })
  .map((letters) => `Zq9${letters.join('')}`);

function expectNoTrace(parsed: Parsed<unknown>, planted: string): void {
  expect(parsed.ok).toBe(false);
  const output = JSON.stringify(parsed, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  expect(output).not.toContain('Zq9');
  expect(output).not.toContain(planted);
}

test('a secret given as text, in a secret field, below one, or under an unknown field, is nowhere in the problems', () => {
  fc.assert(
    fc.property(fc.constantFrom(...documents), secret, (document, planted) => {
      expectNoTrace(parseTarget(document(planted), [spec]), planted);
    }),
    { numRuns: 1_000 },
  );
});

test('nor when it is a number', () => {
  for (const document of documents.slice(0, 4)) {
    expect(JSON.stringify(parseTarget(document(834_756_120_987), [spec]))).not.toContain('834756120987');
  }
});

test('nor in a file of broken, repeated or oddly written JSON', () => {
  const damage = fc.constantFrom(
    (text: string, at: number) => text.slice(0, at),
    (text: string, at: number) => `${text.slice(0, at)}}${text.slice(at)}`,
    (text: string, at: number) => `${text.slice(0, at)},NaN${text.slice(at)}`,
    (text: string, at: number) => `${text.slice(0, at)}\\q${text.slice(at)}`,
    (text: string, at: number) => `${text.slice(0, at)}\n${text.slice(at)}`,
    (text: string, at: number) => `${text.slice(0, at)}"${text.slice(at)}`,
    (text: string) => `${text} ${text}`,
    (text: string) => text.replaceAll(/("[^"\\]*"):/g, '$1: 1.0, $1:'),
  );
  fc.assert(
    fc.property(fc.constantFrom(...documents), secret, damage, fc.nat(10_000), (document, planted, damaged, place) => {
      const text = JSON.stringify(document(planted));
      const bytes = new TextEncoder().encode(damaged(text, place % text.length));
      const parsed = parseTargetBytes(bytes, [spec]);
      // Damage inside a key makes another, unknown key of it, which a message has to name.
      if (!brokenKey(document)) expectNoTrace(parsed, planted);
    }),
    { numRuns: 2_000 },
  );
});

function brokenKey(document: (plant: unknown) => unknown): boolean {
  return Object.keys(flat(document('Zq9'))).some((key) => key.includes('Zq9'));
}

function flat(value: unknown): Record<string, true> {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).flatMap(([key, item]) => [[key, true], ...Object.entries(flat(item))]));
}

test('a key below a secret is not shown by the JSON reader either', () => {
  for (const text of [
    '{"sink": {"type": "table", "password": {"Zq9a": 1, "Zq9a": 2}}}',
    '{"sink": {"password": {"Zq9a": x}}}',
  ]) {
    expectNoTrace(parseTargetBytes(new TextEncoder().encode(text), [spec]), 'Zq9a');
  }
  expectNoTrace(parsePlanBytes(new TextEncoder().encode('{"replay": {"password": {"Zq9a": x}}}')), 'Zq9a');
});

import { z } from 'zod';
import type { SinkSpec } from '../sinks/registry.ts';
import { jsonProblems, readJson } from './json.ts';
import { jsonPointerBytesMax } from './limits.ts';
import type { ReplayPlan } from './plan.ts';
import { anyOf, boundedProblems, kindOf, nearest, problemAt, shown } from './problems.ts';
import type { Parsed, Problem } from './problems.ts';
import type { IdempotencyKey } from './record.ts';
import { checkSchema, isRecord, ruledText, visiblePath, withoutNulls } from './schema.ts';
import { literalSubjectProblem, matches } from './subjects.ts';

/** A parsed target; parses to the same again. Secrets are still names: they are resolved only in the worker. */
export interface ReplayTarget {
  /** Validated by the sink's own schema, defaults filled in. */
  readonly sink: { readonly type: string } & Readonly<Record<string, unknown>>;
  readonly idempotency: {
    readonly key: IdempotencyKey;
    readonly field: string | null;
    readonly key_conflicts: 'reject' | 'keep';
  };
  readonly dead_letter: { readonly subject: string } | null;
}

const idempotencySchema = z.strictObject({
  key: z.enum(['stream_sequence', 'message_id', 'payload_field']).optional().meta({
    description: 'How the destination recognises a record that it already has. The sink must honour it.',
    default: 'stream_sequence',
  }),
  field: ruledText(pointerProblem)
    .optional()
    .meta({
      description: 'JSON Pointer to a scalar in the body: the key. With `payload_field`, and only then.',
      expected: 'a JSON Pointer such as /id',
      examples: ['/id'],
    }),
  key_conflicts: z.enum(['reject', 'keep']).optional().meta({
    description:
      'What happens to a record whose key another record already holds: refused, or counted and left as it is (`keep`, with `payload_field` only).',
    default: 'reject',
  }),
});

const deadLetterSchema = z.strictObject({
  subject: ruledText(literalSubjectProblem).meta({
    description:
      'Subject for the records that the sink refuses for good. A stream must take it; outside the scope of the plan.',
    expected: 'a subject without wildcards, such as dlq.orders',
    examples: ['dlq.orders'],
  }),
});

const restShape = {
  idempotency: idempotencySchema.optional().meta({ description: 'How records that come again are recognised.' }),
  dead_letter: deadLetterSchema.optional().meta({
    description: 'Where refused records go. Without it a refused record stops the plan (state `blocked`).',
  }),
};

const schemaField = z.string().optional().meta({
  description: 'For editors: where the JSON Schema of this file is. Not read otherwise.',
});

/** The target file for all sinks of the list, which has at least one. Rules between fields are checked by `parseTarget`. */
export function targetFileSchema(specs: readonly SinkSpec[]): z.ZodType {
  const sink = z.union(specs.map((spec) => spec.config)).meta({ description: 'The destination.' });
  return z.strictObject({ $schema: schemaField, sink, ...restShape });
}

/** Everything but the sink, which has a schema per type. */
const frameSchema = z.strictObject({
  $schema: schemaField,
  sink: z.unknown().optional().meta({ description: 'The destination.' }),
  ...restShape,
});

/** Takes the document and the registry's specs. All problems at once; never a secret's value in a message. */
export function parseTarget(document: unknown, specs: readonly SinkSpec[]): Parsed<ReplayTarget> {
  const frame = checkSchema(frameSchema, document, { at: [], echo: true });
  if (!isRecord(document)) {
    return { ok: false, problems: [problemAt([], `expected an object with "sink", got ${kindOf(document)}`)] };
  }
  const sink = parseSink(Object.hasOwn(document, 'sink') ? document['sink'] : undefined, specs);
  const problems = [
    ...(sink.ok ? [] : sink.problems),
    ...(frame.ok ? [] : frame.problems),
    ...betweenFields(withoutNulls(frameSchema, document) as Record<string, unknown>, specs),
  ];
  if (!sink.ok || !frame.ok || problems.length > 0) return { ok: false, problems: boundedProblems(problems) };
  const { dead_letter } = frame.value;
  const idempotency = {
    key: frame.value.idempotency?.key ?? 'stream_sequence',
    field: frame.value.idempotency?.field ?? null,
    key_conflicts: frame.value.idempotency?.key_conflicts ?? 'reject',
  } as const;
  const spec = specs.find((candidate) => candidate.type === sink.value.type);
  const together = spec === undefined ? [] : problemsTogether(spec, sink.value, { idempotency, specs });
  if (together.length > 0) return { ok: false, problems: boundedProblems(together) };
  return {
    ok: true,
    value: {
      sink: sink.value,
      idempotency,
      dead_letter: dead_letter === undefined ? null : { subject: dead_letter.subject },
    },
  };
}

/** Takes the bytes of a target file. All problems at once, those of the JSON included. */
export function parseTargetBytes(bytes: Uint8Array, specs: readonly SinkSpec[]): Parsed<ReplayTarget> {
  const reading = readJson(bytes);
  const schema = targetFileSchema(specs);
  const problems = jsonProblems(reading.findings, (path) => visiblePath(schema, path));
  if (reading.value === undefined) return { ok: false, problems: boundedProblems(problems) };
  const parsed = parseTarget(reading.value, specs);
  if (problems.length === 0) return parsed;
  return { ok: false, problems: boundedProblems([...problems, ...(parsed.ok ? [] : parsed.problems)]) };
}

/**
 * Problems that only plan and target together show: a dead-letter subject inside the plan's own scope, a plan that reads what
 * it writes. `written`: the streams that the sink writes into.
 */
export function checkPlanAgainstTarget(
  plan: ReplayPlan,
  target: ReplayTarget,
  written: readonly string[] = [],
): readonly Problem[] {
  const loop = `is the stream that the plan reads, so that the replay would feed itself; expected another one`;
  return [
    ...(written.includes(plan.stream) ? [problemAt(['sink', 'stream'], `${shown(plan.stream)} ${loop}`)] : []),
    ...deadLetterProblems(plan, target),
    ...(plan.topic == null ? [] : optionalChildProblems(target)),
  ];
}

/** What an optional child misses is kept by sequence, which means nothing across the partitions of a topic. */
function optionalChildProblems({ sink }: ReplayTarget): readonly Problem[] {
  const children = isRecord(sink['sinks']) ? Object.entries(sink['sinks']) : [];
  return children
    .filter(([, child]) => isRecord(child) && child['required'] === false)
    .map(([name]) => problemAt(['sink', 'sinks', name, 'required'], 'is false; expected true for the replay of a topic'));
}

function deadLetterProblems(plan: ReplayPlan, target: ReplayTarget): readonly Problem[] {
  const subject = target.dead_letter?.subject;
  if (subject === undefined) return [];
  const index = plan.subject_filters.findIndex((filter) => matches(filter, subject));
  if (index === -1) return [];
  const message =
    `${shown(subject)} is inside the scope of the plan (${shown(plan.subject_filters[index])}), which would read its own ` +
    'dead letters; expected a subject that no filter of the plan takes';
  return [problemAt(['dead_letter', 'subject'], message)];
}

function parseSink(sink: unknown, specs: readonly SinkSpec[]): Parsed<ReplayTarget['sink']> {
  const types = specs.map((spec) => spec.type);
  const refused = (path: readonly string[], message: string) => ({ ok: false, problems: [problemAt(path, message)] }) as const;
  const oneOf = anyOf(types.map((type) => JSON.stringify(type)));
  if (sink === undefined) return refused(['sink'], `missing; expected an object with "type": ${oneOf}`);
  if (!isRecord(sink)) return refused(['sink'], `expected an object with "type": ${oneOf}, got ${kindOf(sink)}`);
  const type = Object.hasOwn(sink, 'type') ? sink['type'] : undefined;
  if (type === undefined || type === null) return refused(['sink', 'type'], `missing; expected ${oneOf}`);
  const spec = specs.find((candidate) => candidate.type === type);
  if (spec === undefined) {
    const near = typeof type === 'string' ? nearest(type, types) : undefined;
    const packaged = typeof type === 'string' ? '; a package that brings it is named in REPLAY_SINKS' : '';
    const meant = near === undefined ? packaged : `; did you mean ${JSON.stringify(near)}?`;
    return refused(['sink', 'type'], `expected ${oneOf}, got ${shown(type)}${meant}`);
  }
  const checked = checkSchema(spec.config, sink, { at: ['sink'], echo: false });
  if (!checked.ok) return checked;
  const value = checked.value as ReplayTarget['sink'];
  return spec.fansOut === true ? parseChildren(value, specs) : { ok: true, value };
}

type Children = Readonly<Record<string, { readonly sink: unknown } & Readonly<Record<string, unknown>>>>;

/** Each child by the schema of its own sink, defaults filled in. */
function parseChildren(sink: ReplayTarget['sink'], specs: readonly SinkSpec[]): Parsed<ReplayTarget['sink']> {
  const leaves = specs.filter((spec) => spec.fansOut !== true);
  const problems: Problem[] = [];
  const sinks = Object.entries(sink['sinks'] as Children).map(([name, child]) => {
    const parsed = parseSink(child.sink, leaves);
    if (!parsed.ok) problems.push(...parsed.problems.map((problem) => inChild(name, problem)));
    return [name, parsed.ok ? { ...child, sink: parsed.value } : child] as const;
  });
  if (problems.length > 0) return { ok: false, problems: boundedProblems(problems) };
  return { ok: true, value: { ...sink, sinks: Object.fromEntries(sinks) } };
}

function inChild(name: string, { path, message }: Problem): Problem {
  return { path: path.replace(/^sink/, `sink.sinks.${name}.sink`), message };
}

/** Rules between the fields of a sink, and of each of its children, and with the idempotency of the target. */
function problemsTogether(
  spec: SinkSpec,
  sink: ReplayTarget['sink'],
  { idempotency, specs }: { readonly idempotency: ReplayTarget['idempotency']; readonly specs: readonly SinkSpec[] },
): readonly Problem[] {
  const own = spec.problems?.(sink, idempotency) ?? [];
  if (spec.fansOut !== true) return own;
  const ofChildren = Object.entries(sink['sinks'] as Children).flatMap(([name, child]) => {
    const leaf = child.sink as ReplayTarget['sink'];
    const leafSpec = specs.find(({ type }) => type === leaf.type)!;
    const problems = (leafSpec.problems?.(leaf, idempotency) ?? []).map((problem) => inChild(name, problem));
    if (leafSpec.keys.includes(idempotency.key)) return problems;
    const honoured = anyOf(leafSpec.keys.map((key) => JSON.stringify(key)));
    const message = `the child "${name}" (${leaf.type}) cannot honour ${shown(idempotency.key)}; expected ${honoured}`;
    return [...problems, problemAt(['idempotency', 'key'], message)];
  });
  return [...own, ...ofChildren];
}

/** Rules between fields, on the values as given: zod skips such rules as soon as one field has a wrong type. */
function betweenFields(document: Readonly<Record<string, unknown>>, specs: readonly SinkSpec[]): Problem[] {
  const idempotency = document['idempotency'] ?? {};
  if (!isRecord(idempotency)) return [];
  const at = (field: string, message: string): Problem => problemAt(['idempotency', field], message);
  const { key = 'stream_sequence', field, key_conflicts: conflicts } = idempotency;
  const problems: Problem[] = [];
  const spec = isRecord(document['sink']) ? specs.find((candidate) => candidate.type === sinkType(document)) : undefined;
  const isKey = idempotencySchema.shape.key.safeParse(key).success;
  if (isKey && spec !== undefined && !spec.keys.includes(key as IdempotencyKey)) {
    const honoured = anyOf(spec.keys.map((honouredKey) => JSON.stringify(honouredKey)));
    problems.push(at('key', `the ${spec.type} sink cannot honour ${shown(key)}; expected ${honoured}`));
  }
  if (key === 'payload_field' && field === undefined) {
    problems.push(at('field', 'missing; expected a JSON Pointer such as /id, since the key is "payload_field"'));
  }
  if (isKey && key !== 'payload_field' && field !== undefined) {
    problems.push(at('field', `has no effect with the key ${shown(key)}; expected only with "payload_field"`));
  }
  if (isKey && key !== 'payload_field' && conflicts === 'keep') {
    problems.push(at('key_conflicts', `"keep" has no effect with the key ${shown(key)}; expected only with "payload_field"`));
  }
  return problems;
}

function sinkType(document: Readonly<Record<string, unknown>>): unknown {
  const sink = document['sink'];
  return isRecord(sink) && Object.hasOwn(sink, 'type') ? sink['type'] : undefined;
}

/** RFC 6901. The empty pointer names the whole body, which is no key. */
function pointerProblem(pointer: string): string | undefined {
  const expected = 'expected a JSON Pointer such as /id or /customer/0/id';
  if (!pointer.startsWith('/')) return `does not begin with a slash; ${expected}`;
  if (/~(?![01])/.test(pointer)) return `has a ~ that is not ~0 (for ~) or ~1 (for /); ${expected}`;
  if (/[\p{Cc}\p{Cs}]/u.test(pointer)) return `has an unprintable character; ${expected}`;
  if (new TextEncoder().encode(pointer).length > jsonPointerBytesMax)
    return `is longer than ${jsonPointerBytesMax} bytes; ${expected}`;
  return undefined;
}

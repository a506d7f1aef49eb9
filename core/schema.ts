/**
 * Checks values against zod schemas and says what is wrong in words of our own: zod's texts name types of a programming
 * language, and some of its issues hold the value, which may be a secret.
 *
 * A field is described by `meta`: `description` and `examples` for people, `secret: true` where a secret is named, `expected`
 * where the words derived from the schema ("a whole number from 1 to 10") do not say enough.
 */
import { z } from 'zod';
import { fileDepthMax, problemsMax } from './limits.ts';
import { anyOf, boundedProblems, groupDigits, kindOf, nearest, problemAt, shown } from './problems.ts';
import type { Parsed, Path, Problem } from './problems.ts';

const secretName = /^REPLAY_SECRET_[A-Z0-9_]{1,200}$/;
const secretExpected =
  'expected { "env": "REPLAY_SECRET_NAME" } and nothing else: the name of an environment variable of the worker, ' +
  'REPLAY_SECRET_ followed by A-Z, 0-9 and _; the secret itself never stands here';

/** A secret, by the name of the worker's environment variable that holds it. */
export function secretSchema(description: string): z.ZodObject<{ env: z.ZodString }, z.core.$strict> {
  return z
    .strictObject({ env: z.string().regex(secretName) })
    .meta({ description, secret: true, examples: [{ env: 'REPLAY_SECRET_NAME' }] });
}

/** A string with a rule that answers what is wrong ("is empty; expected ..."). The message shows the text: not for secrets. */
export function ruledText(rule: (text: string) => string | undefined): z.ZodString {
  return z.string().superRefine((text, context) => {
    const wrong = rule(text);
    if (wrong !== undefined) context.addIssue({ code: 'custom', message: `${shown(text)} ${wrong}` });
  });
}

export interface CheckOptions {
  /** Where the value stands in the file. */
  readonly at: Path;
  /** Whether messages may show the values found: only where no field can hold a secret. */
  readonly echo: boolean;
}

/** null counts as absent for optional fields. */
export function checkSchema<S extends z.ZodType>(schema: S, value: unknown, options: CheckOptions): Parsed<z.output<S>> {
  const given = withoutNulls(schema, value);
  const result = schema.safeParse(given);
  if (result.success) return { ok: true, value: result.data };
  const translation = { schema, value: given, ...options };
  const problems: Problem[] = [];
  for (const issue of result.error.issues) {
    problems.push(...translate(issue, translation));
    if (problems.length > problemsMax) break;
  }
  return { ok: false, problems: boundedProblems(problems) };
}

/** Drops fields that are null where the schema takes nothing but takes no null. */
export function withoutNulls(schema: z.ZodType, value: unknown): unknown {
  if (Array.isArray(value)) {
    const elements = childrenOf([schema], 0);
    return value.map((item) => elements.reduce<unknown>((rest, element) => withoutNulls(element, rest), item));
  }
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).flatMap(([key, item]) => {
    const children = childrenOf([schema], key);
    if (item === null && children.some((child) => child.isOptional()) && !children.some((child) => child.isNullable()))
      return [];
    return [[key, children.reduce<unknown>((rest, child) => withoutNulls(child, rest), item)] as const];
  });
  return Object.fromEntries(kept);
}

/** Cuts a path after the first step that the schema does not know, and at a secret: keys below may be secrets themselves. */
export function visiblePath(schema: z.ZodType, path: Path): Path {
  let schemas: readonly z.ZodType[] = [schema];
  for (const [index, step] of path.entries()) {
    schemas = childrenOf(schemas, step);
    if (schemas.length === 0 || schemas.some(isSecret)) return path.slice(0, index + 1);
  }
  return path;
}

/** Words for what a field takes: `a whole number from 1 to 10`, `"none" or "gzip"`. */
function expectedBy(schema: z.ZodType): string {
  if (isSecret(schema)) return '{ "env": "REPLAY_SECRET_NAME" }';
  for (const layer of layersOf(schema)) {
    const expected = metaOf(layer)['expected'];
    if (typeof expected === 'string') return expected;
  }
  return wordsOf(z.toJSONSchema(schema, { io: 'input', target: 'draft-07', unrepresentable: 'any' }));
}

export interface FieldDescription {
  readonly path: Path;
  readonly expected: string;
  readonly required: boolean;
  readonly secret: boolean;
  readonly description: string;
  readonly defaultValue: unknown;
  readonly examples: readonly unknown[];
}

/** Every field of an object schema in the order of the schema, the fields of objects in it included: for reference pages. A
 *  name that the user chooses is `NAME`. */
export function describeFields(schema: z.ZodType, at: Path = []): FieldDescription[] {
  if (at.length >= fileDepthMax) return [];
  const chosen = layersOf(schema).flatMap((layer) => (layer instanceof z.ZodRecord ? [layer.valueType as z.ZodType] : []));
  const fields = keysOf([schema]).flatMap((key) => {
    const field = childrenOf([schema], key)[0]!;
    const described = describeField(field, [...at, key]);
    return [described, ...(described.secret ? [] : describeFields(field, described.path))];
  });
  const ofChosen = (value: z.ZodType, path: Path) =>
    isSecret(value) ? [describeField(value, path)] : describeFields(value, path);
  return [...fields, ...chosen.flatMap((value) => ofChosen(value, [...at, 'NAME']))];
}

function describeField(field: z.ZodType, path: Path): FieldDescription {
  const meta: Record<string, unknown> = Object.assign({}, ...layersOf(field).map(metaOf).toReversed());
  return {
    path,
    expected: expectedBy(field),
    required: !field.isOptional(),
    secret: isSecret(field),
    description: typeof meta['description'] === 'string' ? meta['description'] : '',
    defaultValue: meta['default'] ?? field.safeParse(undefined).data,
    examples: Array.isArray(meta['examples']) ? meta['examples'] : [],
  };
}

function metaOf(schema: z.ZodType): Record<string, unknown> {
  return schema.meta() ?? {};
}

interface Translation extends CheckOptions {
  readonly schema: z.ZodType;
  readonly value: unknown;
}

function translate(issue: z.core.$ZodIssue, translation: Translation): Problem[] {
  const path = issue.path.map((step) => (typeof step === 'number' ? step : String(step)));
  const problem = (where: Path, message: string): Problem => problemAt([...translation.at, ...where], message);
  const secret = secretAbove(translation.schema, path);
  if (secret !== undefined) {
    const missing = valueAt(translation.value, secret) === undefined;
    return [problem(secret, missing ? `missing; ${secretExpected}` : secretExpected)];
  }
  const schemas = path.reduce<readonly z.ZodType[]>(childrenOf, [translation.schema]);
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.slice(0, problemsMax + 1).map((key) => problem([...path, key], unknownField(key, keysOf(schemas))));
    case 'custom':
      return [problem(path, issue.message.replaceAll(/\s+/g, ' '))];
    case 'invalid_union': {
      const fitting = issue.errors.filter((issues) => !issues.some((inner) => isOfWrongKind(inner)));
      if (fitting.length !== 1) break;
      return fitting[0]!.flatMap((inner) => translate({ ...inner, path: [...issue.path, ...inner.path] }, translation));
    }
    case 'invalid_key':
      return [problem(path, `not a name that can stand here; expected ${nameExpected(schemas, issue)}`)];
    default:
  }
  const expected = anyOf([...new Set(schemas.map(expectedBy))]) || 'another value';
  const value = valueAt(translation.value, path);
  if (value === undefined) return [problem(path, `missing; expected ${expected}`)];
  const got = translation.echo || isNumberOutOfRange(issue) ? shown(value) : kindOf(value);
  return [problem(path, `expected ${expected}, got ${got}`)];
}

function isNumberOutOfRange(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_type') return issue.expected === 'int' && typeof issue.input !== 'string';
  return (issue.code === 'too_big' || issue.code === 'too_small') && ['number', 'int'].includes(issue.origin);
}

/** The option of a union was not the one meant: another type altogether, or another `type` field. */
function isOfWrongKind(issue: z.core.$ZodIssue): boolean {
  return (
    (issue.code === 'invalid_type' && issue.path.length === 0) || (issue.code === 'invalid_value' && issue.path.length <= 1)
  );
}

function nameExpected(schemas: readonly z.ZodType[], issue: z.core.$ZodIssueInvalidKey): string {
  const custom = issue.issues.find((inner) => inner.code === 'custom');
  if (custom !== undefined) return custom.message.replaceAll(/\s+/g, ' ');
  const pattern = issue.issues.find((inner) => inner.code === 'invalid_format')?.pattern;
  return pattern === undefined ? anyOf(keysOf(schemas)) || 'another name' : `a name matching ${pattern}`;
}

function unknownField(key: string, known: readonly string[]): string {
  const names = known.filter((name) => name !== '$schema');
  const near = nearest(key, names);
  return `unknown field; ${near === undefined ? '' : `did you mean ${near}? `}known here: ${names.join(', ')}`;
}

function secretAbove(schema: z.ZodType, path: Path): Path | undefined {
  let schemas: readonly z.ZodType[] = [schema];
  if (schemas.some(isSecret)) return [];
  for (const [index, step] of path.entries()) {
    schemas = childrenOf(schemas, step);
    if (schemas.some(isSecret)) return path.slice(0, index + 1);
  }
  return undefined;
}

function isSecret(schema: z.ZodType): boolean {
  return layersOf(schema).some((layer) => metaOf(layer)['secret'] === true);
}

/** The schema and everything it wraps or chooses between, from the outside in. */
function layersOf(schema: z.ZodType): readonly z.ZodType[] {
  const known = layersBySchema.get(schema);
  if (known !== undefined) return known;
  const layers = new Set<z.ZodType>();
  const visit = (layer: z.core.$ZodType): void => {
    if (!(layer instanceof z.ZodType) || layers.has(layer)) return;
    layers.add(layer);
    for (const inner of wrappedBy(layer)) visit(inner);
  };
  visit(schema);
  layersBySchema.set(schema, [...layers]);
  return [...layers];
}

// Schemas do not change; a file of a megabyte asks a hundred thousand times.
const layersBySchema = new WeakMap<z.ZodType, readonly z.ZodType[]>();

function wrappedBy(schema: z.ZodType): readonly z.core.$ZodType[] {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNonOptional ||
    schema instanceof z.ZodReadonly ||
    schema instanceof z.ZodCatch ||
    schema instanceof z.ZodLazy
  ) {
    return [schema.unwrap()];
  }
  if (schema instanceof z.ZodUnion) return schema.options;
  if (schema instanceof z.ZodIntersection) return [schema.def.left, schema.def.right];
  if (schema instanceof z.ZodPipe) return [schema.in, schema.out];
  return [];
}

/** What the schemas say of one field or list item; nothing for a field they do not know. */
function childrenOf(schemas: readonly z.ZodType[], step: string | number): z.ZodType[] {
  return schemas.flatMap(layersOf).flatMap((layer): z.core.$ZodType[] => {
    if (layer instanceof z.ZodObject) return Object.hasOwn(layer.shape, step) ? [layer.shape[step] as z.core.$ZodType] : [];
    if (layer instanceof z.ZodRecord) return [layer.valueType];
    if (layer instanceof z.ZodArray && typeof step === 'number') return [layer.element];
    if (layer instanceof z.ZodTuple && typeof step === 'number') return layer.def.items.slice(step, step + 1);
    return [];
  }) as z.ZodType[];
}

function keysOf(schemas: readonly z.ZodType[]): string[] {
  const keys = schemas.flatMap(layersOf).flatMap((layer) => (layer instanceof z.ZodObject ? Object.keys(layer.shape) : []));
  return [...new Set(keys)];
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((holder, step) => {
    if (Array.isArray(holder) && typeof step === 'number') return holder[step];
    return isRecord(holder) && Object.hasOwn(holder, step) ? holder[String(step)] : undefined;
  }, value);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** JSON Schema of one field in words. */
function wordsOf(json: z.core.JSONSchema.BaseSchema): string {
  if (json.const !== undefined) return JSON.stringify(json.const);
  if (json.enum !== undefined) return anyOf(json.enum.map((value) => JSON.stringify(value)));
  const options = json.anyOf ?? json.oneOf;
  if (options !== undefined) {
    return anyOf([...new Set(options.map((option) => (typeof option === 'boolean' ? 'any value' : wordsOf(option))))]);
  }
  switch (json.type) {
    case 'integer':
      return `a whole number${rangeOf(json.minimum, json.maximum)}`;
    case 'number':
      return `a number${rangeOf(json.minimum, json.maximum)}`;
    case 'string':
      return `${(json.minLength ?? 0) > 0 ? 'a string that is not empty' : 'a string'}${matchingOf(json)}`;
    case 'boolean':
      return 'true or false';
    case 'null':
      return 'null';
    case 'array':
      return listOf(json);
    case 'object':
      return 'an object';
    default:
      return 'a value';
  }
}

function matchingOf(json: z.core.JSONSchema.BaseSchema): string {
  const longest = json.maxLength === undefined ? '' : ` of at most ${groupDigits(json.maxLength)} characters`;
  return json.pattern === undefined ? longest : `${longest} matching ${json.pattern}`;
}

function listOf(json: z.core.JSONSchema.BaseSchema): string {
  const items = json.items;
  const item = typeof items === 'object' && !Array.isArray(items) ? `, each ${wordsOf(items)}` : '';
  const count = rangeOf(json.minItems, json.maxItems);
  return `a list${count === '' ? '' : ` with${count.replace('from ', '')} items`}${item}`;
}

function rangeOf(min: number | undefined, max: number | undefined): string {
  const least = min === undefined || min === Number.MIN_SAFE_INTEGER ? undefined : groupDigits(min);
  const most = max === undefined || (max === Number.MAX_SAFE_INTEGER && least === undefined) ? undefined : groupDigits(max);
  if (least !== undefined && most !== undefined) return ` from ${least} to ${most}`;
  if (least !== undefined) return ` of at least ${least}`;
  return most === undefined ? '' : ` of at most ${most}`;
}

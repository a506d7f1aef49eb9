import { z } from 'zod';
import { problemAt } from '../../core/problems.ts';
import type { Problem } from '../../core/problems.ts';
import { ruledText } from '../../core/schema.ts';
import { layoutOf, recordFields } from './columns.ts';
import type { ColumnSource, Idempotency } from './columns.ts';

/** What `columns` of a SQL sink takes: exactly these columns are written. */
export function columnsSchema(nameProblem: (name: string) => string | undefined) {
  const source = z.union([
    z.strictObject({
      payload: ruledText(pointerProblem).meta({
        description: 'JSON Pointer to a value in the body. Missing: null. An object or array goes in as JSON text.',
        expected: 'a JSON Pointer such as /id',
        examples: ['/id'],
      }),
    }),
    z.strictObject({
      field: z.enum(recordFields).meta({ description: 'A part of the record itself.', examples: ['subject'] }),
    }),
  ]);
  const name = z.string().superRefine((text, context) => {
    const wrong = nameProblem(text);
    if (wrong !== undefined) context.addIssue({ code: 'custom', message: `a column name ${wrong}` });
  });
  return z
    .record(name, source)
    .refine((columns) => Object.keys(columns).length > 0, 'is empty; expected at least one column, or no "columns" at all');
}

/** Rules between `columns`, `create_table` and the idempotency key. */
export function layoutProblems(
  columns: Readonly<Record<string, ColumnSource>> | null,
  create: boolean,
  idempotency: Idempotency,
): Problem[] {
  const problems: Problem[] = [];
  if (create && columns !== null) {
    const message = 'cannot create a table with "columns", whose types it does not know; create the table, and leave this out';
    problems.push(problemAt(['sink', 'create_table'], message));
  }
  const layout = columns === null && idempotency.key === 'payload_field' ? null : layoutOf(columns, idempotency);
  if (layout === null) {
    const message = `missing; the key "payload_field" needs a column of its own: { "NAME": { "payload": ${JSON.stringify(idempotency.field)} }, ... }`;
    problems.push(problemAt(['sink', 'columns'], message));
  } else if (!layout.ok) {
    const message = `has no column for the idempotency key "${idempotency.key}"; expected one for each of ${layout.missing}`;
    problems.push(problemAt(['sink', 'columns'], message));
  }
  return problems;
}

function pointerProblem(pointer: string): string | undefined {
  const expected = 'expected a JSON Pointer such as /id or /customer/0/id';
  if (pointer !== '' && !pointer.startsWith('/')) return `does not begin with a slash; ${expected}`;
  if (/~(?![01])/.test(pointer)) return `has a ~ that is not ~0 (for ~) or ~1 (for /); ${expected}`;
  if (pointer.length > POINTER_CHARACTERS_MAX) return `is longer than ${POINTER_CHARACTERS_MAX} characters; ${expected}`;
  return undefined;
}

const POINTER_CHARACTERS_MAX = 1_024;

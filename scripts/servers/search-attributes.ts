import type { Connection } from '@temporalio/client';

/** Search attributes of a replay, with Temporal's names of their types. */
export const searchAttributes = {
  ReplayStream: 'Keyword',
  ReplayState: 'Keyword',
  ReplaySink: 'Keyword',
  ReplayRejected: 'Int',
} as const;

const requestMs = 10_000;
/** temporal.api.enums.v1.IndexedValueType */
const indexedValueType = { Keyword: 2, Int: 3 } as const;

export async function missingSearchAttributes(connection: Connection, namespace: string): Promise<readonly string[]> {
  const known = await connection.withDeadline(Date.now() + requestMs, () =>
    connection.operatorService.listSearchAttributes({ namespace }),
  );
  return Object.keys(searchAttributes).filter((name) => known.customAttributes?.[name] === undefined);
}

/** Registers those that are missing; others of the namespace are left alone. */
export async function registerSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const missing = await missingSearchAttributes(connection, namespace);
  if (missing.length === 0) return;
  const types = Object.entries(searchAttributes).filter(([name]) => missing.includes(name));
  await connection.withDeadline(Date.now() + requestMs, () =>
    connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(types.map(([name, type]) => [name, indexedValueType[type]])),
    }),
  );
}

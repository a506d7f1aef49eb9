import type { Layout } from '../sql/columns.ts';
import { STORED_AT } from '../sql/columns.ts';
import { judgeOrigin } from '../sql/findings.ts';
import type { Judged } from '../sql/findings.ts';
import type { MysqlConfig } from './config.ts';
import type { ServerFacts } from './session.ts';
import { binaryCollation, createTableSql, quoteName, tableName } from './sql.ts';
import type { TableColumn, TableFacts, UniqueKey } from './table.ts';

interface Asked {
  readonly config: Pick<MysqlConfig, 'database' | 'table' | 'mode' | 'create_table'>;
  readonly layout: Layout;
  readonly server: ServerFacts;
}

/** Below this a record of the usual size limit of NATS (1 MiB) may not fit. */
const PACKET_BYTES_LOW = 4_194_304;
const BINARY_COLLATION = /(^binary|_bin)$/;
const PADDED_COLLATION = /^(?!.*(0900|nopad)).*_bin$/;

export function judgeServer({ server }: Pick<Asked, 'server'>): Judged[] {
  const findings: Judged[] = [];
  if (server.readOnly) {
    findings.push({
      severity: 'error',
      code: 'sink_denied',
      message: 'The server is read-only (read_only).',
      next: 'Name the primary in "host", or: SET GLOBAL read_only = OFF; on MySQL also SET GLOBAL super_read_only = OFF;',
    });
  }
  if (server.maxPacketBytes < PACKET_BYTES_LOW) {
    findings.push({
      severity: 'warning',
      message: `The server takes statements of at most ${server.maxPacketBytes} bytes (max_allowed_packet); larger records are refused.`,
      next: 'SET GLOBAL max_allowed_packet = 67108864; and the same in the configuration of the server.',
    });
  }
  return findings;
}

export function judgeMissing(asked: Asked): Judged {
  const { config, layout, server } = asked;
  const name = tableName(config);
  if (config.create_table) return { severity: 'info', message: 'The table is missing and will be created.' };
  const next = layout.isDefault
    ? `Set "create_table": true, or run: ${createTableSql(layout, name, server.flavour)};`
    : `Create ${name} with the columns of the target and a unique key of ${listOf(layout.keyColumns)}; or, if it is there: GRANT SELECT, INSERT, UPDATE ON ${name} TO the user;`;
  return { severity: 'error', code: 'sink_missing', message: 'The table is missing, or the user may not see it.', next };
}

/** What stands against writing into this table, and what to know of it. */
export function judgeTable(facts: TableFacts, asked: Asked): Judged[] {
  return [
    ...judgeEngine(facts, asked),
    ...judgeColumns(facts, asked),
    ...judgeKeys(facts, asked),
    ...judgeOrigin(asked.layout, asked.config.mode),
    ...judgeTriggers(facts),
  ];
}

function judgeEngine({ engine, isTable }: TableFacts, { config }: Asked): Judged[] {
  if (!isTable) {
    const next = 'Name the table below it in "table".';
    return [{ severity: 'error', code: 'sink_unfit', message: 'It is a view, not a table.', next }];
  }
  if (engine?.toLowerCase() === 'innodb') return [];
  const message = `Its storage engine (${engine ?? 'none'}) is not InnoDB: a batch could not be written as one transaction.`;
  return [{ severity: 'error', code: 'sink_unfit', message, next: `ALTER TABLE ${tableName(config)} ENGINE=InnoDB;` }];
}

function judgeColumns(facts: TableFacts, asked: Asked): Judged[] {
  const { config, layout, server } = asked;
  const alter = `ALTER TABLE ${tableName(config)}`;
  const byName = new Map(facts.columns.map((column) => [column.name.toLowerCase(), column]));
  const findings: Judged[] = [];
  for (const { name } of layout.columns) {
    const column = byName.get(name.toLowerCase());
    if (column === undefined) {
      const message = `It has no column ${quoteName(name)}.`;
      const next = `${alter} ADD COLUMN ${definitionOf(name, layout, server)};`;
      findings.push({ severity: 'error', code: 'sink_missing', message, next });
    } else if (column.generated) {
      const next = `Leave it out of "columns", or: ${alter} MODIFY COLUMN ${quoteName(name)} TYPE;`;
      findings.push({
        severity: 'error',
        code: 'sink_unfit',
        message: `Its column ${quoteName(name)} is generated and cannot be written.`,
        next,
      });
    } else findings.push(...judgeCollation(column, asked));
  }
  const written = new Set(layout.columns.map(({ name }) => name.toLowerCase()));
  for (const column of facts.columns) {
    if (written.has(column.name.toLowerCase()) || column.nullable || column.hasDefault || column.generated) continue;
    const message = `Its column ${quoteName(column.name)} must not be null, has no default, and is not written.`;
    const next = `Name it in "columns", or give it a default: ${alter} ALTER COLUMN ${quoteName(column.name)} SET DEFAULT VALUE;`;
    findings.push({ severity: 'error', code: 'sink_unfit', message, next });
  }
  return findings;
}

function judgeCollation(column: TableColumn, { config, layout, server }: Asked): Judged[] {
  const { name, characterSet, collation } = column;
  if (characterSet === null || collation === null || column.class === 'json') return [];
  const isKey = layout.keyColumns.some((key) => key.toLowerCase() === name.toLowerCase());
  const binary = binaryCollation(server.flavour);
  const modify = `ALTER TABLE ${tableName(config)} MODIFY COLUMN ${quoteName(name)} VARCHAR(N) CHARACTER SET utf8mb4 COLLATE ${binary} NOT NULL;`;
  if (isKey && !BINARY_COLLATION.test(collation)) {
    const message = `Its key column ${quoteName(name)} compares by ${collation}, which takes different keys such as ABC and abc for one.`;
    return [{ severity: 'error', code: 'sink_unfit', message, next: modify }];
  }
  if (isKey && PADDED_COLLATION.test(collation)) {
    const message = `Its key column ${quoteName(name)} compares by ${collation}, which ignores spaces at the end: such a second key is refused.`;
    return [{ severity: 'info', message, next: modify }];
  }
  if (characterSet === 'utf8mb4' || characterSet === 'binary') return [];
  const message = `Its column ${quoteName(name)} has the character set ${characterSet}: records with other characters are refused.`;
  return [{ severity: 'warning', message, next: modify.replace(' NOT NULL', '') }];
}

function judgeKeys(facts: TableFacts, { config, layout }: Asked): Judged[] {
  const alter = `ALTER TABLE ${tableName(config)}`;
  const isOurs = (key: UniqueKey) => sameNames(key.columns, layout.keyColumns);
  const others = facts.uniqueKeys.filter((key) => !isOurs(key) && !isAutoKey(key, facts, layout));
  const findings: Judged[] = [];
  if (!facts.uniqueKeys.some(isOurs)) {
    const message = `It has no unique key of exactly ${listOf(layout.keyColumns)}: records that come again would be stored again.`;
    const next = `${alter} ADD UNIQUE KEY replay_key (${layout.keyColumns.map(quoteName).join(', ')});`;
    findings.push({ severity: 'error', code: 'sink_unfit', message, next });
  }
  for (const { name } of others) {
    const message = `It has a second unique key, ${quoteName(name)}`;
    const next = `${alter} DROP INDEX ${quoteName(name)};`;
    if (config.mode === 'upsert') {
      const why = `${message}: an upsert could overwrite a row of another key.`;
      const either = `Use "mode": "insert", or: ${next}`;
      findings.push({ severity: 'error', code: 'sink_unfit', message: why, next: either });
    } else {
      const why = `${message}: a record that only it refuses is dead-lettered (constraint_failed).`;
      findings.push({ severity: 'warning', message: why, next: `Nothing, if that is meant; otherwise: ${next}` });
    }
  }
  return findings;
}

/** A row number that the server makes is never refused. */
function isAutoKey(key: UniqueKey, facts: TableFacts, layout: Layout): boolean {
  const [name, ...rest] = key.columns;
  if (name === null || name === undefined || rest.length > 0) return false;
  const column = facts.columns.find((candidate) => candidate.name === name);
  const isWritten = layout.columns.some((candidate) => candidate.name.toLowerCase() === name.toLowerCase());
  return column?.class === 'integer' && column.hasDefault && !isWritten;
}

function judgeTriggers({ triggers }: TableFacts): Judged[] {
  return triggers.map((name) => ({
    severity: 'warning',
    message: `Its trigger ${quoteName(name)} runs for every row that is written.`,
    next: 'Nothing, if that is meant; otherwise drop it for the time of the replay.',
  }));
}

function definitionOf(name: string, layout: Layout, server: ServerFacts): string {
  if (!layout.isDefault || name === STORED_AT) return `${quoteName(name)} TYPE`;
  const line = createTableSql(layout, '', server.flavour)
    .split('\n')
    .find((candidate) => candidate.trim().startsWith(`${name} `));
  return (line ?? `${name} TYPE`).trim().replace(/,$/, '');
}

function sameNames(columns: readonly (string | null)[], wanted: readonly string[]): boolean {
  const sorted = (names: readonly (string | null)[]) =>
    names
      .map((name) => name?.toLowerCase() ?? '')
      .toSorted()
      .join('\0');
  return sorted(columns) === sorted(wanted);
}

function listOf(names: readonly string[]): string {
  return `(${names.map(quoteName).join(', ')})`;
}

import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import type { Finding, Sink, SinkCapabilities, SinkContext } from '../sink.ts';
import { raceAbort } from '../sql/abort.ts';
import { defaultIdempotency, layoutOf } from '../sql/columns.ts';
import type { Layout } from '../sql/columns.ts';
import { faultOfFinding } from '../sql/findings.ts';
import type { Judged } from '../sql/findings.ts';
import type { OracleConfig } from './config.ts';
import { labelOf } from './errors.ts';
import type { DriverError } from './errors.ts';
import { parseTable } from './names.ts';
import type { TableName } from './names.ts';
import { isUnicode, judgeCreation, judgeMissing, judgePrivileges, judgeServer, judgeTable } from './preflight.ts';
import { foldLayout, rowMaker } from './rows.ts';
import { connect, faultOf } from './session.ts';
import type { Session } from './session.ts';
import { createTableSql, statementsFor } from './sql.ts';
import { readPrivileges, readTable } from './table.ts';
import type { Place, TableFacts } from './table.ts';
import { writeBatch } from './writer.ts';
import type { Writer } from './writer.ts';

const BATCH_RECORDS_MAX = 10_000;
/** Another session made the object a moment ago. */
const NAME_TAKEN = 'ORA-00955';

export function createOracleSink(config: OracleConfig, context: SinkContext): Sink {
  return new OracleSink(config, context);
}

class OracleSink implements Sink {
  readonly capabilities: SinkCapabilities = {
    keys: ['stream_sequence', 'message_id', 'payload_field'],
    transactional: true,
    maxBatchRecords: BATCH_RECORDS_MAX,
  };
  readonly #config: OracleConfig;
  readonly #context: SinkContext;
  readonly #layout: Layout;
  readonly #table: TableName;
  #writer: Writer | null = null;

  constructor(config: OracleConfig, context: SinkContext) {
    this.#config = config;
    this.#context = context;
    const result = layoutOf(config.columns ?? null, context.idempotency ?? defaultIdempotency);
    if (!result.ok) throw new ReplayFault('sink_unfit', 'the columns of the target do not hold its idempotency key');
    this.#layout = foldLayout(result.layout);
    this.#table = parseTable(config.table);
  }

  async open(signal: AbortSignal): Promise<void> {
    await this.#opened(signal);
  }

  async write(batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]> {
    signal.throwIfAborted();
    if (batch.length === 0) return [];
    const writer = await this.#opened(signal);
    return await this.#unlessAborted(writer.session, writeBatch(writer, batch), signal);
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    signal.throwIfAborted();
    const session = await this.#connect(signal);
    try {
      const findings = await this.#unlessAborted(session, this.#judge(session), signal);
      return findings.map(({ severity, message, next }) => ({ severity, message, ...(next === undefined ? {} : { next }) }));
    } catch (error) {
      throw signal.aborted ? signal.reason : faultOf(error as DriverError);
    } finally {
      await session.close();
    }
  }

  async close(): Promise<void> {
    const writer = this.#writer;
    this.#writer = null;
    await writer?.session.close();
  }

  async #opened(signal: AbortSignal): Promise<Writer> {
    signal.throwIfAborted();
    if (this.#writer !== null) return this.#writer;
    const session = await this.#connect(signal);
    try {
      this.#writer = await this.#unlessAborted(session, this.#prepare(session), signal);
      return this.#writer;
    } catch (error) {
      await session.close();
      throw signal.aborted ? signal.reason : faultOf(error as DriverError);
    }
  }

  async #prepare(session: Session): Promise<Writer> {
    const { mode, create_table: create, empty_string: emptyString } = this.#config;
    const [layout, asked, place] = [this.#layout, this.#asked(session), this.#place(session)];
    let facts = await readTable(session, place);
    if (facts === null && this.#context.begun)
      throw new ReplayFault('sink_missing', 'the table that this replay wrote to is gone');
    if (facts === null && create) {
      await this.#create(session);
      facts = await readTable(session, place);
    }
    if (facts === null) throw faultOfFinding(judgeMissing(asked));
    const fault = [...judgeServer(asked), ...judgeTable(facts, asked)].find(({ severity }) => severity === 'error');
    if (fault !== undefined) throw faultOfFinding(fault);
    const shapes = shapesOf(layout, facts);
    const rules = { emptyString, unicode: isUnicode(session.server) };
    return {
      session,
      statements: statementsFor(layout, this.#table, shapes),
      layout,
      shapes,
      rows: rowMaker(layout, shapes, { context: this.#context, rules }),
      mode,
      conflicts: (this.#context.idempotency ?? defaultIdempotency).key_conflicts,
      keyNames: keyNamesOf(layout, facts),
      expectsKnown: false,
    };
  }

  async #create(session: Session): Promise<void> {
    try {
      await session.change(createTableSql(this.#layout, this.#table));
      this.#context.log.info({ sink: 'oracle' }, 'table created');
    } catch (error) {
      if (labelOf(error as DriverError) !== NAME_TAKEN) throw error;
    }
  }

  async #judge(session: Session): Promise<readonly Judged[]> {
    const [asked, place] = [this.#asked(session), this.#place(session)];
    const facts = await readTable(session, place);
    const privileges = await readPrivileges(session, place);
    if (facts === null) return [...judgeServer(asked), judgeMissing(asked), ...judgeCreation(privileges, asked)];
    return [...judgeServer(asked), ...judgeTable(facts, asked), ...judgePrivileges(facts, privileges, asked)];
  }

  #asked({ server }: Session) {
    return { config: this.#config, layout: this.#layout, table: this.#table, server };
  }

  #place({ server }: Session): Place {
    return { owner: this.#table.schema ?? server.schema, table: this.#table.table };
  }

  /** Connecting cannot be aborted; a connection that comes too late is closed. */
  async #connect(signal: AbortSignal): Promise<Session> {
    const connecting = connect(this.#config, this.#context);
    return await raceAbort(connecting, signal, () => {
      connecting.then(
        (late) => late.close(),
        () => undefined,
      );
    });
  }

  async #unlessAborted<T>(session: Session, work: Promise<T>, signal: AbortSignal): Promise<T> {
    return await raceAbort(work, signal, async () => {
      this.#writer = null;
      await session.abort();
    });
  }
}

function keyNamesOf({ keyColumns }: Layout, { uniqueKeys }: TableFacts): ReadonlySet<string> {
  const ours = uniqueKeys.filter(
    ({ columns }) => columns.length === keyColumns.length && columns.every((name) => keyColumns.includes(name)),
  );
  return new Set(ours.map(({ owner, name }) => `${owner}.${name}`));
}

function shapesOf(layout: Layout, facts: TableFacts) {
  const byName = new Map(facts.columns.map((column) => [column.name, column]));
  return layout.columns.map(({ name }) => byName.get(name)!);
}

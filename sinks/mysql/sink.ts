import { ReplayFault } from '../../core/errors.ts';
import type { Outcome, ReplayRecord } from '../../core/record.ts';
import { raceAbort } from '../sql/abort.ts';
import { defaultIdempotency, layoutOf } from '../sql/columns.ts';
import type { Layout } from '../sql/columns.ts';
import { faultOfFinding } from '../sql/findings.ts';
import type { Judged } from '../sql/findings.ts';
import type { Finding, Sink, SinkCapabilities, SinkContext } from '../sink.ts';
import type { MysqlConfig } from './config.ts';
import { labelOf, meaningOf } from './errors.ts';
import type { DriverError } from './errors.ts';
import { judgeMissing, judgeServer, judgeTable } from './preflight.ts';
import { rowMaker } from './rows.ts';
import { connect, faultOf } from './session.ts';
import type { Session } from './session.ts';
import { createTableSql, statementsFor, tableName } from './sql.ts';
import { checkPrivileges, readTable } from './table.ts';
import type { TableFacts } from './table.ts';
import { writeBatch } from './writer.ts';
import type { Writer } from './writer.ts';

const BATCH_RECORDS_MAX = 10_000;
/** Rows of one statement, in bytes; a larger row has a statement of its own. */
const STATEMENT_BYTES_MAX = 8_388_608;
/** What the protocol itself adds to a statement. */
const PACKET_MARGIN_BYTES = 1_024;

export function createMysqlSink(config: MysqlConfig, context: SinkContext): Sink {
  return new MysqlSink(config, context);
}

class MysqlSink implements Sink {
  readonly capabilities: SinkCapabilities = {
    keys: ['stream_sequence', 'message_id', 'payload_field'],
    transactional: true,
    maxBatchRecords: BATCH_RECORDS_MAX,
  };
  readonly #config: MysqlConfig;
  readonly #context: SinkContext;
  readonly #layout: Layout;
  #writer: Writer | null = null;

  constructor(config: MysqlConfig, context: SinkContext) {
    this.#config = config;
    this.#context = context;
    const result = layoutOf(config.columns ?? null, context.idempotency ?? defaultIdempotency);
    if (!result.ok) throw new ReplayFault('sink_unfit', 'the columns of the target do not hold its idempotency key');
    this.#layout = result.layout;
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
      throw signal.aborted ? signal.reason : faultOf(error as DriverError, session.server.flavour);
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
      throw signal.aborted ? signal.reason : faultOf(error as DriverError, session.server.flavour);
    }
  }

  async #prepare(session: Session): Promise<Writer> {
    const { config, layout } = { config: this.#config, layout: this.#layout };
    const asked = { config, layout, server: session.server };
    const table = tableName(config);
    let facts = await readTable(session, config);
    if (facts === null && this.#context.begun)
      throw new ReplayFault('sink_missing', 'the table that this replay wrote to is gone');
    if (facts === null && config.create_table) {
      await session.change(createTableSql(layout, table, session.server.flavour));
      this.#context.log.info({ sink: 'mysql' }, 'table created');
      facts = await readTable(session, config);
    }
    if (facts === null) throw faultOfFinding(judgeMissing(asked));
    const fault = [...judgeServer(asked), ...judgeTable(facts, asked)].find(({ severity }) => severity === 'error');
    if (fault !== undefined) throw faultOfFinding(fault);
    const statements = statementsFor(layout, table, session.server.flavour);
    const roomBytes = session.server.maxPacketBytes - PACKET_MARGIN_BYTES - statements.overheadBytes;
    return {
      session,
      statements,
      layout,
      rows: rowMaker(layout, shapesOf(layout, facts), { context: this.#context, rowBytesMax: roomBytes }),
      mode: config.mode,
      conflicts: (this.#context.idempotency ?? defaultIdempotency).key_conflicts,
      rowsBytesMax: Math.min(roomBytes, STATEMENT_BYTES_MAX),
      expectsKnown: false,
    };
  }

  async #judge(session: Session): Promise<readonly Judged[]> {
    const asked = { config: this.#config, layout: this.#layout, server: session.server };
    const facts = await readTable(session, this.#config);
    if (facts === null) return [...judgeServer(asked), judgeMissing(asked)];
    const findings = [...judgeServer(asked), ...judgeTable(facts, asked)];
    if (findings.some(({ code }) => code === 'sink_missing' || code === 'sink_unfit')) return findings;
    return [...findings, ...(await this.#judgePrivileges(session))];
  }

  async #judgePrivileges(session: Session): Promise<readonly Judged[]> {
    const table = tableName(this.#config);
    try {
      const statements = statementsFor(this.#layout, table, session.server.flavour);
      await checkPrivileges(session, statements, this.#layout, this.#config.mode);
      return [];
    } catch (error) {
      const meaning = meaningOf(error as DriverError, session.server.flavour);
      if (meaning.kind !== 'fault' || meaning.code !== 'sink_denied') throw error;
      const privileges = this.#config.mode === 'upsert' ? 'SELECT, INSERT, UPDATE' : 'SELECT, INSERT';
      const message = `The user lacks a privilege on the table (${labelOf(error as DriverError)}).`;
      return [{ severity: 'error', message, next: `GRANT ${privileges} ON ${table} TO the user of the target;` }];
    }
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

function shapesOf(layout: Layout, facts: TableFacts) {
  const byName = new Map(facts.columns.map((column) => [column.name.toLowerCase(), column]));
  return layout.columns.map(({ name }) => ({ ...byName.get(name.toLowerCase())!, name }));
}

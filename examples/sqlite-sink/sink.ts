import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { ReplayFault } from 'durable-replay/sinks';
import type { Finding, Outcome, ReplayRecord, Sink, SinkCapabilities, SinkContext } from 'durable-replay/sinks';
import Database from 'libsql';
import type { SqliteConfig } from './config.ts';
import { asFault } from './faults.ts';
import { createTableSql, insertSql, tableSql } from './sql.ts';

const BATCH_RECORDS_MAX = 10_000;
/** How long to wait for another process that writes: all of this process waits, so not long. Milliseconds. */
const BUSY_MS = 500;

export function createSqliteSink(config: SqliteConfig, context: SinkContext): Sink {
  return new SqliteSink(config, context);
}

interface Opened {
  readonly database: Database.Database;
  readonly insert: Database.Statement;
}

class SqliteSink implements Sink {
  readonly capabilities: SinkCapabilities;
  readonly #config: SqliteConfig;
  readonly #context: SinkContext;
  #opened: Opened | null = null;

  constructor(config: SqliteConfig, context: SinkContext) {
    this.#config = config;
    this.#context = context;
    const { max_record_bytes: maxRecordBytes } = config;
    this.capabilities = {
      keys: ['stream_sequence'],
      transactional: true,
      maxBatchRecords: BATCH_RECORDS_MAX,
      ...(maxRecordBytes === undefined ? {} : { maxRecordBytes }),
    };
  }

  async open(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#open();
  }

  async write(batch: readonly ReplayRecord[], signal: AbortSignal): Promise<readonly Outcome[]> {
    signal.throwIfAborted();
    if (batch.length === 0) return [];
    const { database, insert } = this.#open();
    try {
      return database.transaction(() => batch.map((record) => this.#store(insert, record))).immediate();
    } catch (error) {
      throw asFault(error);
    }
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    signal.throwIfAborted();
    const there = kindOf(this.#path());
    if (kindOf(this.#context.dataRoot) !== 'folder') {
      const next = 'Create it, or set REPLAY_DATA_ROOT of the worker to a directory that is there.';
      return [{ severity: 'error', message: 'The data root of the worker is missing.', next }];
    }
    if (there === 'missing') return [{ severity: 'info', message: 'The database file is missing and will be made.' }];
    if (there !== 'file') {
      return [{ severity: 'error', message: 'What has the name of the database is no file.', next: 'Name another file.' }];
    }
    return this.#probeFile();
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = null;
    opened?.database.close();
  }

  #probeFile(): Finding[] {
    try {
      const database = new Database(this.#path(), { readonly: true, timeout: BUSY_MS });
      try {
        const { table } = this.#config;
        if (!hasTable(database, table)) return [{ severity: 'info', message: 'The table is missing and will be made.' }];
        database.prepare(insertSql(table));
        return [];
      } finally {
        database.close();
      }
    } catch (error) {
      throw asFault(error);
    }
  }

  #open(): Opened {
    if (this.#opened !== null) return this.#opened;
    const path = this.#path();
    this.#checkPlace(path);
    const database = new Database(path, { timeout: BUSY_MS });
    try {
      // Durable once committed: the file, the folder after the journal is gone, and no journal elsewhere.
      database.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA');
      if (!hasTable(database, this.#config.table)) this.#makeTable(database);
      this.#opened = { database, insert: database.prepare(insertSql(this.#config.table)) };
      return this.#opened;
    } catch (error) {
      database.close();
      throw asFault(error);
    }
  }

  /** SQLite would make a new file where the one of this run is gone, and follow a link to anywhere. */
  #checkPlace(path: string): void {
    if (kindOf(this.#context.dataRoot) !== 'folder') throw new ReplayFault('sink_missing', 'the data root');
    const kind = kindOf(path);
    if (kind === 'missing' && this.#context.begun) throw new ReplayFault('sink_missing', 'what this replay wrote is gone');
    if (kind !== 'missing' && kind !== 'file') throw new ReplayFault('sink_unfit', 'the name of the database is taken');
  }

  #makeTable(database: Database.Database): void {
    if (this.#context.begun) throw new ReplayFault('sink_missing', 'the table that this replay wrote to is gone');
    database.exec(createTableSql(this.#config.table));
    this.#context.log.info({ sink: 'sqlite' }, 'table created');
  }

  #store(insert: Database.Statement, record: ReplayRecord): Outcome {
    const { max_record_bytes: bytesMax = Infinity } = this.#config;
    if (record.payload.length > bytesMax) return { kind: 'rejected', code: 'too_large' };
    const { changes } = insert.run(
      record.stream,
      record.incarnation,
      record.sequence,
      record.subject,
      record.timeNanos,
      record.messageId ?? null,
      JSON.stringify([...record.headers]),
      Buffer.from(record.payload),
      this.#context.plan,
      this.#context.run,
    );
    return { kind: changes === 1 ? 'written' : 'duplicate' };
  }

  #path(): string {
    return join(this.#context.dataRoot, this.#config.file);
  }
}

function hasTable(database: Database.Database, table: string): boolean {
  return database.prepare(tableSql).get(table) !== undefined;
}

function kindOf(path: string): 'missing' | 'file' | 'folder' | 'other' {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 'missing';
  return found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other';
}

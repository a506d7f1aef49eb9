/** Of the driver, which comes without types, only this is used. */
declare module 'oracledb' {
  export interface DbType {
    readonly name: string;
  }

  export interface BindDefinition {
    readonly type: DbType;
    /** Bytes; compulsory for VARCHAR and RAW. */
    readonly maxSize?: number;
  }

  export interface ExecuteManyResult {
    readonly rowsAffected?: number;
    /** Absent when no row failed. An entry has `offset`, the place of its row, and its text; no number. */
    readonly batchErrors?: readonly { readonly message: string; readonly offset: number }[];
  }

  export interface Connection {
    readonly oracleServerVersion: number;
    callTimeout: number;
    execute(
      sql: string,
      binds: readonly unknown[],
      options: Readonly<Record<string, unknown>>,
    ): Promise<{ readonly rows?: readonly (readonly unknown[])[]; readonly metaData?: readonly { readonly name: string }[] }>;
    executeMany(
      sql: string,
      rows: readonly (readonly unknown[])[],
      options: { readonly batchErrors: true; readonly bindDefs: readonly BindDefinition[] },
    ): Promise<ExecuteManyResult>;
    commit(): Promise<void>;
    rollback(): Promise<void>;
    break(): Promise<void>;
    close(): Promise<void>;
  }

  const oracledb: {
    readonly DB_TYPE_VARCHAR: DbType;
    readonly DB_TYPE_NUMBER: DbType;
    readonly DB_TYPE_RAW: DbType;
    readonly DB_TYPE_CLOB: DbType;
    readonly DB_TYPE_BLOB: DbType;
    readonly STRING: DbType;
    readonly BUFFER: DbType;
    readonly OUT_FORMAT_ARRAY: number;
    getConnection(options: Readonly<Record<string, unknown>>): Promise<Connection>;
  };
  export default oracledb;
}

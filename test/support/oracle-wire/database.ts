/** What stands behind the listener: a database that takes Oracle's statements, or something that plays one. */

/** Types of binds on the wire. */
export const bindTypes = { varchar: 1, number: 2, long: 8, raw: 23, longRaw: 24, clob: 112, blob: 113 } as const;

export interface BindType {
  readonly type: number;
  /** Bytes of the largest value, as declared. */
  readonly size: number;
}

/** A number comes as its digits. */
export interface NumberText {
  readonly number: string;
}
export type BindValue = null | string | Buffer | NumberText;

export interface StatementCall {
  readonly sql: string;
  readonly binds: readonly BindType[];
  /** One for each time that the statement is to run. */
  readonly rows: readonly (readonly BindValue[])[];
  /** Rows that fail are told, and the others stay. */
  readonly batchErrors: boolean;
}

export interface OracleError {
  readonly number: number;
  /** Without `ORA-nnnnn: `. */
  readonly message: string;
}

export type StatementAnswer =
  | { readonly kind: 'rows'; readonly columns: readonly ColumnHead[]; readonly rows: readonly (readonly (string | null)[])[] }
  | {
      readonly kind: 'done';
      readonly rowCount: number;
      readonly failures: readonly (OracleError & { readonly offset: number })[];
    }
  | ({ readonly kind: 'error' } & OracleError);

export interface ColumnHead {
  readonly name: string;
  readonly isNumber: boolean;
}

export interface DatabaseSession {
  run(call: StatementCall): Promise<StatementAnswer>;
  commit(): Promise<OracleError | null>;
  rollback(): Promise<OracleError | null>;
  /** Ends what runs; what was not committed is rolled back. The session can be used on. */
  interrupt(): void;
  close(): void;
}

/**
 * Does something else than the database would. `drop` closes the line before, `drop after` after the work was done; `hang`
 * answers only when it is interrupted, `dead` not even then.
 */
export type Fault = OracleError | 'drop' | 'drop after' | 'hang' | 'dead';

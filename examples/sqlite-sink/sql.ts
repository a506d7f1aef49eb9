/** The table name has passed the schema: it needs no quoting, but a word of SQL does. */
export function createTableSql(table: string): string {
  return `CREATE TABLE IF NOT EXISTS "${table}" (
  stream TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  subject TEXT NOT NULL,
  time_ns INTEGER NOT NULL,
  message_id TEXT,
  headers TEXT NOT NULL,
  payload BLOB NOT NULL,
  plan TEXT NOT NULL,
  run TEXT NOT NULL,
  PRIMARY KEY (stream, incarnation, sequence)
) STRICT`;
}

/** A row that is there stays as it is, and counts no change. Text compares as bytes in SQLite. */
export function insertSql(table: string): string {
  return `INSERT INTO "${table}" (stream, incarnation, sequence, subject, time_ns, message_id, headers, payload, plan, run)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (stream, incarnation, sequence) DO NOTHING`;
}

export const tableSql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ?";

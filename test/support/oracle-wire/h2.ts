import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { bindTypes } from './database.ts';
import type { BindType, BindValue, DatabaseSession, OracleError, StatementAnswer, StatementCall } from './database.ts';
import { dictionarySql, translate, translateError } from './translate.ts';

/** How long a statement waits for the lock of another session. */
const LOCK_WAIT_MS_MAX = 5_000;

export type Cell = string | Buffer | null;

/** Databases in memory behind a bridge (Bridge.java), by name. */
export interface H2 {
  /** A new one, with the dictionary, and one user with a schema of its own. */
  create(database: string, user: string): Promise<void>;
  open(database: string, user: string): DatabaseSession;
  /** In the language of H2. */
  query(database: string, user: string, sql: string): Promise<Record<string, Cell>[]>;
  /** For good. */
  drop(database: string): Promise<void>;
}

export function h2At(port: number): H2 {
  return {
    async create(database, user) {
      const link = openLink(port, urlOf(database));
      try {
        for (const sql of [`CREATE SCHEMA "${user}"`, ...dictionarySql]) await mustRun(link, sql);
      } finally {
        link.close();
      }
    },
    open: (database, user) => openSession(port, database, user),
    async query(database, user, sql) {
      const link = openLink(port, urlOf(database, user));
      try {
        const answer = await mustRun(link, sql);
        await link.ask('COMMIT');
        return answer.kind === 'rows' ? answer.cells.map((row) => named(answer.names, row)) : [];
      } finally {
        link.close();
      }
    },
    async drop(database) {
      const link = openLink(port, urlOf(database));
      await link.ask(`RUN\t${encode('SHUTDOWN IMMEDIATELY')}`).catch(() => undefined);
      link.close();
    },
  };
}

function urlOf(database: string, user?: string): string {
  const init = user === undefined ? '' : `;INIT=SET SCHEMA "${user}"\\;SET SCHEMA_SEARCH_PATH "${user}", SYS`;
  return `jdbc:h2:mem:${database};MODE=Oracle;DB_CLOSE_DELAY=-1;NON_KEYWORDS=VALUE;LOCK_TIMEOUT=${LOCK_WAIT_MS_MAX}${init}`;
}

interface Link {
  ask(line: string): Promise<string>;
  close(): void;
}

/** Opens the database with the first line that is asked. */
function openLink(port: number, url: string): Link {
  const waiting: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  const socket: Socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  socket.on('close', () => {
    for (const { reject } of waiting.splice(0)) reject(new Error('the database is gone'));
  });
  createInterface({ input: socket, crlfDelay: Infinity }).on('line', (line) => waiting.shift()?.resolve(line));
  const ask = (line: string): Promise<string> =>
    new Promise((resolve, reject) => {
      if (socket.destroyed) reject(new Error('the database is gone'));
      else {
        waiting.push({ resolve, reject });
        socket.write(`${line}\n`);
      }
    });
  const opened = ask(`OPEN\t${encode(url)}`);
  opened.catch(() => undefined);
  return {
    async ask(line) {
      const answer = await opened;
      if (answer !== 'DONE') throw new Error(`the database was not opened: ${answer}`);
      return await ask(line);
    },
    close: () => socket.destroy(),
  };
}

type Parsed =
  | {
      readonly kind: 'rows';
      readonly names: readonly string[];
      readonly areNumbers: readonly boolean[];
      readonly cells: readonly Cell[][];
    }
  | { readonly kind: 'counts'; readonly counts: readonly (number | H2Error)[] }
  | ({ readonly kind: 'error' } & H2Error);

interface H2Error {
  readonly number: number;
  readonly text: string;
}

function parse(line: string): Parsed {
  const [word, ...fields] = line.split('\t');
  if (word === 'ERROR') return { kind: 'error', number: Number(fields[0]), text: decode(fields[1]!) };
  if (word === 'ROWS') {
    const heads = fields[0]!.split(',');
    return {
      kind: 'rows',
      names: heads.map((head) => decode(head.slice(1))),
      areNumbers: heads.map((head) => head.startsWith('D')),
      cells: fields.slice(1).map((row) => row.split(',').map(readCell)),
    };
  }
  const counts = fields.map((field) => {
    const [, number, text] = /^ERROR (\d+) (\S*)$/.exec(field) ?? [];
    return number === undefined ? Number(field) : { number: Number(number), text: decode(text!) };
  });
  return { kind: 'counts', counts };
}

function readCell(cell: string): Cell {
  if (cell === '-') return null;
  return cell.startsWith('B') ? Buffer.from(cell.slice(1), 'base64') : decode(cell.slice(1));
}

async function mustRun(link: Link, sql: string): Promise<Parsed> {
  const answer = parse(await link.ask(`RUN\t${encode(sql)}`));
  if (answer.kind === 'error') throw new Error(`${answer.number} ${answer.text}`);
  return answer;
}

function openSession(port: number, database: string, user: string): DatabaseSession {
  const url = urlOf(database, user);
  let link = openLink(port, url);
  const end = async (how: 'COMMIT' | 'ROLLBACK'): Promise<OracleError | null> => {
    const answer = parse(await link.ask(how));
    return answer.kind === 'error' ? translateError(answer.number, answer.text, user) : null;
  };
  return {
    async run(call) {
      const translated = translate(call.sql, call.binds, user);
      if (translated.kind === 'nothing to do') return { kind: 'done', rowCount: 0, failures: [] };
      if (translated.kind === 'refused') return { kind: 'error', ...translated.error };
      const rows = call.rows.map((row) =>
        translated.order.map((place) => writeCell(row[place]!, call.binds[place]!)).join(','),
      );
      const line = ['RUN', encode(translated.sql), ...rows].join('\t');
      return answerOf(parse(await link.ask(line)), call, user);
    },
    commit: () => end('COMMIT'),
    rollback: () => end('ROLLBACK'),
    interrupt() {
      link.close();
      link = openLink(port, url);
    },
    close: () => link.close(),
  };
}

function writeCell(value: BindValue, { type }: BindType): string {
  if (value === null) return 'N';
  if (typeof value === 'string') return `S${encode(value)}`;
  if (!Buffer.isBuffer(value)) return `D${value.number}`;
  return type === bindTypes.clob ? `S${value.toString('base64')}` : `B${value.toString('base64')}`;
}

/** Without batch errors the first row that fails ends the statement, which Oracle takes back as a whole. */
function answerOf(parsed: Parsed, call: StatementCall, user: string): StatementAnswer {
  if (parsed.kind === 'error') return { kind: 'error', ...translateError(parsed.number, parsed.text, user) };
  if (parsed.kind === 'rows') {
    const columns = parsed.names.map((name, i) => ({ name, isNumber: parsed.areNumbers[i]! }));
    return { kind: 'rows', columns, rows: parsed.cells.map((row) => row.map((cell) => cell?.toString() ?? null)) };
  }
  let rowCount = 0;
  const failures = [];
  for (const [offset, count] of parsed.counts.entries()) {
    if (typeof count === 'number') rowCount += count;
    else {
      const error = translateError(count.number, count.text, user);
      if (!call.batchErrors) return { kind: 'error', ...error };
      failures.push({ ...error, offset });
    }
  }
  return { kind: 'done', rowCount, failures };
}

function named(names: readonly string[], row: readonly Cell[]): Record<string, Cell> {
  return Object.fromEntries(names.map((name, i) => [name, row[i]!]));
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}

function decode(text: string): string {
  return Buffer.from(text, 'base64').toString();
}

import type { Socket } from 'node:net';
import { decodeNumber, encodeNumber, TtcReader, TtcWriter } from './buffers.ts';
import { bindTypes } from './database.ts';
import type { BindType, BindValue, DatabaseSession, Fault, OracleError, StatementAnswer } from './database.ts';
import type { Account, FaultPlace, Injected, Listener, ListenerOptions } from './listener.ts';
import { challenge, type Challenge } from './login.ts';
import { openPackets } from './packets.ts';

/** The calls of one connection. Numbers of messages, functions and flags are those of the protocol. */

const MESSAGE = {
  protocol: 1,
  types: 2,
  call: 3,
  error: 4,
  rowHeader: 6,
  row: 7,
  parameter: 8,
  status: 9,
  describe: 16,
  piggyback: 17,
};
const CALL = {
  reexecute: 4,
  logoff: 9,
  commit: 14,
  rollback: 15,
  reexecuteAndFetch: 78,
  execute: 94,
  lob: 96,
  closeCursors: 105,
  closeCursorsOfSession: 120,
  login: 115,
  loginStart: 118,
  ping: 147,
};
const EXECUTE = { parse: 1, bind: 8, batchErrors: 0x80000 };
const LOB = { write: 0x40, create: 0x110 };
const CHARSET_UTF8 = 873;
const IN_TRANSACTION = 2;
const BATCH_FAILED = 24381;
const NO_DATA = 1403;
const INTERRUPTED: OracleError = { number: 1013, message: 'user requested cancel of current operation' };
const LOGON_DENIED: OracleError = { number: 1017, message: 'invalid username/password; logon denied' };
const SERVICE_UNKNOWN = 12514;
/** Longer values come after the others of their row. */
const SHORT_VALUE_BYTES_MAX = 4_000;

interface Surroundings extends Pick<ListenerOptions, 'open'>, Pick<Listener, 'accounts' | 'calls'> {
  readonly faults: ReadonlyMap<FaultPlace, Injected>;
}

interface Cursor {
  readonly id: number;
  readonly sql: string;
  readonly isQuery: boolean;
  binds: readonly BindType[];
}

export function openCalls(socket: Socket, surroundings: Surroundings): void {
  const { accounts, faults, calls } = surroundings;
  const cursors = new Map<number, Cursor>();
  const lobs = new Map<number, Buffer | null>();
  let nextId = 1;
  let service = '';
  let account: Account | undefined;
  let login: Challenge | undefined;
  let database: DatabaseSession | undefined;
  let inTransaction = false;
  /** Since an interrupt, until the line is quiet again: what was asked before gets no answer of its own. */
  let interrupted = false;
  let dead = false;
  let epoch = 0;
  let queue: Promise<void> = Promise.resolve();

  const packets = openPackets(socket, {
    connect(descriptor) {
      service = /SERVICE_NAME=([^)]+)/i.exec(descriptor)?.[1] ?? '';
      account = accounts.get(service);
      const fault = faults.get('connect')?.fault;
      if (typeof fault === 'object') return fault.number;
      return account === undefined ? SERVICE_UNKNOWN : null;
    },
    message(content) {
      queue = queue
        .then(() => take(new TtcReader(content)))
        .catch((error: unknown) => {
          process.stderr.write(`The Oracle listener of the tests: ${String(error)}\n`);
          socket.destroy();
        });
    },
    interrupt() {
      if (dead) return;
      interrupted = true;
      epoch++;
      database?.interrupt();
      packets.sendMarker();
    },
    reset() {
      if (dead) return;
      packets.sendReset();
      if (interrupted) packets.send(errorMessage(INTERRUPTED));
      interrupted = false;
    },
  });
  socket.on('close', () => database?.close());

  /** Never answers what an interrupt has ended. */
  const reply = (asked: number, ...parts: readonly Buffer[]): void => {
    if (!interrupted && asked === epoch) packets.send(Buffer.concat(parts));
  };
  const status = (): Buffer => new TtcWriter().uint8(MESSAGE.status).number(transactionFlag()).number(0).end();
  const transactionFlag = (): number => (inTransaction ? IN_TRANSACTION : 0);

  interface Ending {
    readonly rowCount?: number;
    readonly cursor?: number;
    readonly failures?: readonly (OracleError & { readonly offset: number })[];
  }

  const errorMessage = ({ number, message }: OracleError, { rowCount = 0, cursor = 0, failures = [] }: Ending = {}): Buffer => {
    const writer = new TtcWriter()
      .uint8(MESSAGE.error)
      .number(transactionFlag())
      .zeros(2)
      .number(number & 0xffff)
      .zeros(2)
      .number(cursor)
      .number(-1)
      .zeros(17);
    const list = (write: (failure: (typeof failures)[number]) => void): void => {
      writer.number(failures.length);
      if (failures.length > 0) writer.uint8(0);
      failures.forEach(write);
    };
    list((failure) => writer.number(failure.number));
    list((failure) => writer.number(failure.offset));
    list((failure) => {
      const text = textOf(failure);
      writer.number(Buffer.byteLength(text)).bytes(text).zeros(2);
    });
    writer.number(number).number(rowCount);
    if (number > 0) writer.bytes(`${textOf({ number, message })}\n`);
    return writer.end();
  };

  const take = async (reader: TtcReader): Promise<void> => {
    if (dead) return;
    const asked = epoch;
    for (;;) {
      const kind = reader.uint8();
      if (kind === MESSAGE.protocol) return packets.send(protocolMessage());
      if (kind === MESSAGE.types) return packets.send(typesMessage());
      if (kind === MESSAGE.piggyback) skipPiggyback(reader);
      else if (kind === MESSAGE.call) return await call(reader, asked);
      else throw new Error(`message ${kind}`);
    }
  };

  const skipPiggyback = (reader: TtcReader): void => {
    const what = reader.uint8();
    reader.skip('b');
    if (what === CALL.closeCursors || what === CALL.closeCursorsOfSession) {
      reader.skip('b');
      for (let count = reader.number(); count > 0; count--) cursors.delete(reader.number());
    } else if (what === CALL.lob) {
      reader.skip('b');
      const bytes = reader.number();
      reader.skip('bnnnbbbnbnnnbbnbnbn');
      reader.raw(bytes);
    } else throw new Error(`piggyback ${what}`);
  };

  const call = async (reader: TtcReader, asked: number): Promise<void> => {
    const what = reader.uint8();
    reader.skip('b');
    switch (what) {
      case CALL.loginStart:
        login = challenge(account?.password ?? '');
        return reply(asked, login.answer, status());
      case CALL.login:
        return reply(asked, finishLogin(reader));
      case CALL.execute:
        return await execute(reader, asked);
      case CALL.reexecute:
      case CALL.reexecuteAndFetch: {
        const cursor = cursors.get(reader.number());
        const count = reader.number();
        reader.skip('nn');
        if (cursor === undefined) return reply(asked, errorMessage({ number: 1001, message: 'invalid cursor' }));
        return await run(cursor, readRows(reader, cursor, cursor.isQuery ? 1 : count), { batchErrors: false, asked });
      }
      case CALL.lob:
        calls.lob++;
        return reply(asked, workOnLob(reader));
      case CALL.commit:
      case CALL.rollback:
        return await end(what === CALL.commit ? 'commit' : 'rollback', asked);
      case CALL.ping:
      case CALL.logoff:
        return reply(asked, status());
      default:
        throw new Error(`call ${what}`);
    }
  };

  const finishLogin = (reader: TtcReader): Buffer => {
    reader.skip('b');
    const hasUser = reader.number() > 0;
    reader.skip('nb');
    const count = reader.number();
    reader.skip('bb');
    const user = hasUser ? reader.text() : '';
    const pairs = new Map<string, string>();
    for (let i = 0; i < count; i++) {
      reader.skip('n');
      const key = reader.text();
      pairs.set(key, reader.number() > 0 ? reader.text() : '');
      reader.skip('n');
    }
    const answer = login!.judge(pairs, service);
    if (account?.refuse !== undefined) return errorMessage(account.refuse);
    if (answer === null || user.toUpperCase() !== account?.user.toUpperCase()) return errorMessage(LOGON_DENIED);
    database = surroundings.open(service, account.user.toUpperCase());
    return Buffer.concat([answer, status()]);
  };

  const execute = async (reader: TtcReader, asked: number): Promise<void> => {
    const options = reader.number();
    const id = reader.number();
    reader.skip('bnbnbbbnnb');
    const bindCount = reader.number();
    reader.skip('bbbbbbnnbbbnbnnbnbbnbnbbn');
    const isParse = (options & EXECUTE.parse) !== 0;
    const sql = isParse ? reader.text() : '';
    reader.skip('n');
    const count = reader.number();
    reader.skip('nnnnnnnnnnn');
    const cursor = isParse
      ? { id: id || nextId++, sql, isQuery: /^\s*(select|with)\b/i.test(sql), binds: [] }
      : cursors.get(id);
    if (cursor === undefined) return reply(asked, errorMessage({ number: 1001, message: 'invalid cursor' }));
    cursors.set(cursor.id, cursor);
    if ((options & EXECUTE.bind) !== 0) cursor.binds = readBinds(reader, bindCount);
    const rows = readRows(reader, cursor, cursor.isQuery ? 1 : count);
    await run(cursor, rows, { batchErrors: (options & EXECUTE.batchErrors) !== 0, asked });
  };

  const readBinds = (reader: TtcReader, count: number): BindType[] =>
    Array.from({ length: count }, () => {
      const type = reader.uint8();
      reader.skip('bbb');
      const size = reader.number();
      reader.skip('nn');
      if (reader.number() > 0) reader.bytes();
      reader.skip('nnbnn');
      return { type, size };
    });

  const readRows = (reader: TtcReader, { binds }: Cursor, count: number): BindValue[][] => {
    if (binds.length === 0) return [];
    const places = binds.map((_, i) => i);
    const isLate = (i: number) => binds[i]!.size > SHORT_VALUE_BYTES_MAX;
    const order = [...places.filter((i) => !isLate(i)), ...places.filter(isLate)];
    return Array.from({ length: count }, () => {
      const kind = reader.uint8();
      if (kind !== MESSAGE.row) throw new Error(`a row was expected, not ${kind}`);
      const row: BindValue[] = [];
      for (const i of order) row[i] = readValue(reader, binds[i]!);
      return row;
    });
  };

  const readValue = (reader: TtcReader, { type }: BindType): BindValue => {
    switch (type) {
      case bindTypes.number: {
        const bytes = reader.bytes();
        return bytes === null ? null : { number: decodeNumber(bytes) };
      }
      case bindTypes.varchar:
      case bindTypes.long:
        return reader.bytes()?.toString() ?? null;
      case bindTypes.raw:
      case bindTypes.longRaw:
        return reader.bytes();
      case bindTypes.clob:
      case bindTypes.blob: {
        if (reader.number() === 0) return null;
        const content = lobs.get(reader.bytes()!.readUInt32BE(4)) ?? null;
        return type === bindTypes.blob ? content : (content?.toString() ?? null);
      }
      default:
        throw new Error(`a bind of type ${type}`);
    }
  };

  interface Run {
    readonly batchErrors: boolean;
    readonly asked: number;
  }

  const run = async (cursor: Cursor, rows: BindValue[][], { batchErrors, asked }: Run): Promise<void> => {
    if (interrupted) return;
    calls.statement++;
    const injected = faultAt('statement', cursor.sql);
    dead ||= injected === 'dead';
    if (injected === 'hang' || injected === 'dead') return;
    if (injected === 'drop') return void socket.destroy();
    if (typeof injected === 'object') return reply(asked, errorMessage(injected, { cursor: cursor.id }));
    const answer = await database!.run({ sql: cursor.sql, binds: cursor.binds, rows, batchErrors });
    if (injected === 'drop after') return void socket.destroy();
    if (/^\s*(insert|update|delete|merge|select.*for update)/is.test(cursor.sql) && asked === epoch) inTransaction = true;
    reply(asked, answerMessage(cursor, answer));
  };

  const answerMessage = (cursor: Cursor, answer: StatementAnswer): Buffer => {
    switch (answer.kind) {
      case 'rows': {
        const rows = answer.rows.map((row) =>
          rowMessage(
            row,
            answer.columns.map(({ isNumber }) => isNumber),
          ),
        );
        const ending = errorMessage(
          { number: NO_DATA, message: 'no data found' },
          { rowCount: rows.length, cursor: cursor.id },
        );
        return Buffer.concat([describeMessage(answer.columns), rowHeaderMessage(), ...rows, ending]);
      }
      case 'error':
        return errorMessage(answer, { cursor: cursor.id });
      case 'done': {
        const { failures, rowCount } = answer;
        const number = failures.length === 0 ? 0 : BATCH_FAILED;
        const parameters = new TtcWriter().uint8(MESSAGE.parameter).zeros(4).end();
        return Buffer.concat([
          parameters,
          errorMessage({ number, message: 'error(s) in array DML' }, { rowCount, cursor: cursor.id, failures }),
        ]);
      }
    }
  };

  const end = async (how: 'commit' | 'rollback', asked: number): Promise<void> => {
    if (interrupted) return;
    calls[how]++;
    const injected = faultAt(how, '');
    dead ||= injected === 'dead';
    if (injected === 'hang' || injected === 'dead') return;
    if (injected === 'drop') return void socket.destroy();
    if (typeof injected === 'object') return reply(asked, errorMessage(injected));
    const error = (await database?.[how]()) ?? null;
    if (injected === 'drop after') return void socket.destroy();
    inTransaction = false;
    reply(asked, error === null ? status() : errorMessage(error));
  };

  const faultAt = (place: FaultPlace, sql: string): Fault | undefined => {
    const found = faults.get(place);
    if (found === undefined || found.only?.test(sql) === false) return undefined;
    found.seen++;
    return found.at === undefined || found.at === found.seen ? found.fault : undefined;
  };

  const workOnLob = (reader: TtcReader): Buffer => {
    reader.skip('b');
    const locatorBytes = reader.number();
    reader.skip('bnnnbbb');
    const what = reader.number();
    reader.skip('bbnnb');
    reader.raw(6);
    const locator = Buffer.from(reader.raw(locatorBytes));
    const answer = new TtcWriter().uint8(MESSAGE.parameter);
    if (what === LOB.create) {
      const id = nextId++;
      locator.writeUInt32BE(id, 4);
      lobs.set(id, null);
      answer.raw(locator).number(CHARSET_UTF8).uint8(0);
    } else if (what === LOB.write) {
      reader.skip('b');
      const [id, content] = [locator.readUInt32BE(4), reader.bytes() ?? Buffer.alloc(0)];
      lobs.set(id, Buffer.concat([lobs.get(id) ?? Buffer.alloc(0), content]));
      answer.raw(locator);
    } else answer.raw(locator).number(0);
    return Buffer.concat([answer.end(), errorMessage({ number: 0, message: '' })]);
  };
}

function textOf({ number, message }: OracleError): string {
  return `ORA-${String(number).padStart(5, '0')}: ${message}`;
}

/** As a 19c server: newer ones log in and end their answers in other ways. */
function protocolMessage(): Buffer {
  const [compile, runtime, charsets] = [Buffer.alloc(40), Buffer.alloc(7), Buffer.alloc(11)];
  compile[7] = 12;
  runtime[1] = 1;
  charsets[9] = 0x07;
  charsets[10] = 0xd0;
  return new TtcWriter()
    .uint8(MESSAGE.protocol)
    .uint8(6)
    .uint8(0)
    .raw('x86_64/Linux 2.4.xx\0')
    .uint16LittleEndian(CHARSET_UTF8)
    .uint8(1)
    .uint16LittleEndian(0)
    .uint16(charsets.length)
    .raw(charsets)
    .bytes(compile)
    .bytes(runtime)
    .end();
}

function typesMessage(): Buffer {
  const timeZone = Buffer.alloc(11);
  timeZone[0] = 0x80;
  timeZone[4] = 60;
  timeZone[5] = 60;
  return new TtcWriter().uint8(MESSAGE.types).raw(timeZone).uint16(0).end();
}

function describeMessage(columns: readonly { readonly name: string; readonly isNumber: boolean }[]): Buffer {
  const writer = new TtcWriter().uint8(MESSAGE.describe).uint8(0).number(100).number(columns.length).uint8(0);
  columns.forEach(({ name, isNumber }, i) => {
    const size = isNumber ? 22 : SHORT_VALUE_BYTES_MAX;
    writer
      .uint8(isNumber ? bindTypes.number : bindTypes.varchar)
      .zeros(3)
      .number(size)
      .zeros(4)
      .number(CHARSET_UTF8)
      .uint8(isNumber ? 0 : 1)
      .number(size)
      .zeros(1)
      .uint8(1)
      .uint8(name.length)
      .number(name.length)
      .bytes(name)
      .zeros(2)
      .number(i + 1)
      .zeros(1);
  });
  return writer.zeros(6).end();
}

function rowHeaderMessage(): Buffer {
  return new TtcWriter().uint8(MESSAGE.rowHeader).zeros(7).end();
}

function rowMessage(row: readonly (string | null)[], areNumbers: readonly boolean[]): Buffer {
  const writer = new TtcWriter().uint8(MESSAGE.row);
  row.forEach((value, i) => {
    if (value === null) writer.uint8(0);
    else writer.bytes(areNumbers[i] ? encodeNumber(value) : value);
  });
  return writer.end();
}

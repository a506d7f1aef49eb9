/**
 * Rows per second of a whole replay into MySQL, as a ratio to a bare loop of the best bulk statement (1,000 rows a statement, each
 * its own transaction, bodies in memory) in the same run; and what 20 refused records in 10,000 cost.
 * npx tsx bench/mysql.ts [messages=100000] [rounds=3]; needs what the tests need.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { createConnection, type Connection as Mysql } from 'mysql2/promise';
import { connect, type NatsConnection } from 'nats';
import type { Report } from '../core/report.ts';
import { startMysql } from '../scripts/servers/mysql.ts';
import { startServers } from '../scripts/servers/servers.ts';
import { publishAll, repeat } from '../test/support/streams.ts';
import { bodyOf } from './body.ts';
import { startBuiltWorker } from './built-worker.ts';
import { median } from './plot.ts';

const messages = Number(process.argv[2] ?? 100_000);
const rounds = Number(process.argv[3] ?? 3);
const statementRows = 1_000;
const password = 'bench';
const collation = 'CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin';

interface Layout {
  /** Beside the key; null: the sink's default columns. */
  readonly own: { readonly ddl: string; readonly columns: Readonly<Record<string, object>> } | null;
}

const doc = { field: 'payload_json' };
const layouts = {
  'key and JSON': { own: { ddl: 'doc JSON NOT NULL', columns: { doc } } },
  'default columns': { own: null },
} satisfies Record<string, Layout>;
/** Where the server refuses a long note: it names the row, or it does not. */
const refusing = {
  'too long for a column': {
    own: { ddl: 'doc JSON NOT NULL, note VARCHAR(1000)', columns: { doc, note: { payload: '/note' } } },
  },
  'against a CHECK': { own: { ddl: 'doc JSON NOT NULL, CHECK (CHAR_LENGTH(doc) < 1000)', columns: { doc } } },
} satisfies Record<string, Layout>;

const [servers, mysqld] = await Promise.all([startServers(), startMysql({ say: print })]);
const folder = await mkdtemp(join(tmpdir(), 'durable-replay-bench-'));
const admin = await createConnection({ host: '127.0.0.1', port: mysqld.port, user: 'root', charset: 'utf8mb4_bin' });
const nats = await connect({ servers: servers.natsUrl });
const temporal = await Connection.connect({ address: servers.temporalAddress });
const client = new Client({ connection: temporal });
const worker = await startBuiltWorker({
  NATS_URL: servers.natsUrl,
  TEMPORAL_ADDRESS: servers.temporalAddress,
  REPLAY_DATA_ROOT: join(folder, 'data'),
  REPLAY_REPORT_ROOT: join(folder, 'reports'),
  REPLAY_TARGETS: join(folder, 'targets'),
  REPLAY_SECRET_BENCH: password,
});
try {
  await admin.query('CREATE DATABASE bench');
  await admin.query(`CREATE USER bench@'%' IDENTIFIED BY '${password}'`);
  await admin.query(`GRANT ALL ON bench.* TO bench@'%'`);
  await fill(nats);
  await replay({ stream: 'CLEAN', table: 'warm', layout: layouts['key and JSON'], count: 10_000 });
  for (const [name, layout] of Object.entries(layouts)) await compare(name, layout);
  for (const [name, layout] of Object.entries(refusing)) await compareRejects(name, layout);
} finally {
  worker.kill('SIGTERM');
  await temporal.close();
  await nats.close();
  await admin.end();
  await Promise.all([servers.stop(), mysqld.stop(), rm(folder, { recursive: true, force: true })]);
}

async function compare(name: string, layout: Layout): Promise<void> {
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const bare = await writeBare(admin, layout);
    const replayed = await replay({ stream: 'BENCH', table: 'replayed', layout, count: messages });
    ratios.push(replayed / bare);
    print(`${name}: bare ${perSecond(bare)}, replay ${perSecond(replayed)} rows/s, ratio ${(replayed / bare).toFixed(2)}`);
  }
  print(`${name}: median ratio ${median(ratios).toFixed(2)}`);
}

/** Times, so that the ratio is how many times slower. */
async function compareRejects(name: string, layout: Layout): Promise<void> {
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const clean = 10_000 / (await replay({ stream: 'CLEAN', table: 'clean', layout, count: 10_000 }));
    const poison = 10_000 / (await replay({ stream: 'POISON', table: 'poison', layout, count: 10_000 }));
    ratios.push(poison / clean);
  }
  print(`10,000 records, 20 of them ${name}: ${median(ratios).toFixed(2)} times a clean run`);
}

async function createTable(table: string, { own }: Layout): Promise<void> {
  await admin.query(`DROP TABLE IF EXISTS bench.${table}`);
  if (own === null) return;
  const key = 'stream VARCHAR(100) NOT NULL, incarnation VARCHAR(40) NOT NULL, seq BIGINT NOT NULL';
  await admin.query(`CREATE TABLE bench.${table} (${key}, ${own.ddl}, PRIMARY KEY (stream, incarnation, seq)) ${collation}`);
}

/** Rows per second. */
async function writeBare(connection: Mysql, layout: Layout): Promise<number> {
  await createTable('bare', layout);
  const isDefault = layout.own === null;
  if (isDefault) await connection.query('CREATE TABLE bench.bare LIKE bench.replayed_before').catch(() => copyDefault());
  const columns = isDefault
    ? 'stream_name,stream_incarnation,stream_sequence,subject,message_time_ns,message_id,headers,payload,payload_json,replay_plan,replay_run'
    : 'stream,incarnation,seq,doc';
  const inc = '2026-05-01T10:00:00.000000001Z';
  const texts = Array.from({ length: statementRows }, (_, i) => bodyOf(i));
  const began = performance.now();
  for (let first = 1; first <= messages; first += statementRows) {
    const rows = texts.map((text, i) =>
      isDefault
        ? `('BENCH','${inc}',${first + i},'bench.a',1777629600000000007,NULL,'{}','${text}','${text}','bench','run')`
        : `('BENCH','${inc}',${first + i},'${text}')`,
    );
    await connection.query({ sql: `INSERT INTO bench.bare (${columns}) VALUES ${rows.join(',')}`, values: undefined });
  }
  return (messages / (performance.now() - began)) * 1_000;
}

/** The sink's own table, empty. */
async function copyDefault(): Promise<void> {
  await replay({ stream: 'CLEAN', table: 'replayed_before', layout: layouts['default columns'], count: 1 });
  await admin.query('CREATE TABLE bench.bare LIKE bench.replayed_before');
}

interface Run {
  readonly stream: string;
  readonly table: string;
  readonly layout: Layout;
  readonly count: number;
}

/** Rows per second of the whole workflow, its start and its report included. */
async function replay({ stream, table, layout, count }: Run): Promise<number> {
  await createTable(table, layout);
  const key = {
    stream: { field: 'stream' },
    incarnation: { field: 'incarnation' },
    seq: { field: 'sequence' },
  };
  const sink = {
    type: 'mysql',
    host: '127.0.0.1',
    port: mysqld.port,
    user: 'bench',
    password: { env: 'REPLAY_SECRET_BENCH' },
    database: 'bench',
    table,
    ...(layout.own === null ? { create_table: true } : { columns: { ...key, ...layout.own.columns } }),
  };
  const id = `bench-${table}-${Date.now()}`;
  const plan = {
    stream,
    subject_filter: `${stream}.>`,
    durable_consumer: id,
    start_sequence: 1,
    max_messages: count,
    end_sequence: count,
    dry_run: false,
  };
  const input = { plan: { replay: plan }, target: { sink, dead_letter: { subject: 'dlq.bench' } } };
  const began = performance.now();
  const handle = await client.workflow.start('replayPlan', { taskQueue: 'durable-replay', workflowId: id, args: [input] });
  const { counts } = (await handle.result()) as Report;
  const ms = performance.now() - began;
  const refused = stream === 'POISON' ? 20 : 0;
  if (counts.written !== count - refused || counts.dead_lettered !== refused) throw new Error(JSON.stringify(counts));
  return (count / ms) * 1_000;
}

async function fill(connection: NatsConnection): Promise<void> {
  const manager = await connection.jetstreamManager();
  await manager.streams.add({ name: 'DLQ', subjects: ['dlq.bench'], allow_direct: true, duplicate_window: 3_600_000_000_000 });
  for (const [name, count] of [['BENCH', messages] as const, ['CLEAN', 10_000] as const, ['POISON', 10_000] as const]) {
    await manager.streams.add({ name, subjects: [`${name}.>`], allow_direct: true });
    const body = (i: number) => Buffer.from(bodyOf(i, name === 'POISON' && i % 500 === 250));
    await publishAll(
      connection,
      repeat(count, (i) => ({ subject: `${name}.a`, body: body(i) })),
    );
  }
}

function perSecond(rate: number): string {
  return Math.round(rate).toLocaleString('en');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

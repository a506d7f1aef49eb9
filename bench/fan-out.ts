/**
 * A replay into files, MySQL and an encrypted spool at the same time, as a ratio to the slowest of the three alone: times, so that
 * 1 means that the others cost nothing. All alternate in one run.
 *
 *   npx tsx bench/fan-out.ts [messages=100000] [rounds=3]; needs what the tests need.
 */
import { randomBytes } from 'node:crypto';
import { createConnection } from 'mysql2/promise';
import { startMysql } from '../scripts/servers/mysql.ts';
import { median } from './plot.ts';
import { openWorld, perSecond, print } from './world.ts';

const messages = Number(process.argv[2] ?? 100_000);
const rounds = Number(process.argv[3] ?? 3);
const password = 'bench';

const mysqld = await startMysql({ say: print });
const world = await openWorld(messages, {
  REPLAY_SECRET_BENCH: randomBytes(32).toString('base64'),
  REPLAY_SECRET_MYSQL: password,
});
try {
  await prepare();
  const ratios: number[] = [];
  for (let round = 1; round <= rounds; round++) ratios.push(await compare(round));
  print(`fan-out / slowest child alone: median ${median(ratios).toFixed(2)} times`);
} finally {
  await world.stop();
  await mysqld.stop();
}

async function prepare(): Promise<void> {
  const admin = await createConnection({ host: '127.0.0.1', port: mysqld.port, user: 'root' });
  await admin.query('CREATE DATABASE bench');
  await admin.query(`CREATE USER bench@'%' IDENTIFIED BY '${password}'`);
  await admin.query(`GRANT ALL ON bench.* TO bench@'%'`);
  await admin.end();
}

/** Into new places each time. */
function childrenOf(name: string): Readonly<Record<'files' | 'mysql' | 'spool', object>> {
  const encryption = { key_id: 'k', key: { env: 'REPLAY_SECRET_BENCH' } };
  const place = { host: '127.0.0.1', port: mysqld.port, user: 'bench', password: { env: 'REPLAY_SECRET_MYSQL' } };
  return {
    files: { type: 'file', directory: `${name}-files` },
    mysql: { type: 'mysql', ...place, database: 'bench', table: `${name}_rows`, create_table: true },
    spool: { type: 'spool', directory: `${name}-spool`, encryption },
  };
}

async function compare(round: number): Promise<number> {
  const alone: [string, number][] = [];
  for (const [child, sink] of Object.entries(childrenOf(`alone${round}`))) alone.push([child, await world.replayInto(sink)]);
  const sinks = Object.fromEntries(Object.entries(childrenOf(`all${round}`)).map(([name, sink]) => [name, { sink }]));
  const together = await world.replayInto({ type: 'fanout', sinks });
  const ratio = Math.min(...alone.map(([, rate]) => rate)) / together;
  const rates = alone.map(([child, rate]) => `${child} ${perSecond(rate)}`).join(', ');
  print(`round ${round}: ${rates}, all three ${perSecond(together)}: ${ratio.toFixed(2)} times the slowest alone`);
  return ratio;
}

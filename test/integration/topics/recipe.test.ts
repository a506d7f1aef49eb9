import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import type { Report } from '../../../core/report.ts';
import { codeBlocks, statementsOf, textsOf } from '../../support/code-blocks.ts';
import { tempDir } from '../../support/file-end.ts';
import { adminConnection, ownMysql, withoutOwnMysql } from '../../support/mysql.ts';
import { connectTestNats, natsUrl } from '../../support/servers.ts';
import { startWorker } from '../../support/worker.ts';
import { command } from '../cli/command-line.ts';
import { openTestTopics } from './topics.ts';

/** Two servers and several commands, on a machine that may be slow. */
vi.setConfig({ testTimeout: 600_000 });

const page = fileURLToPath(new URL('../../../docs/recipes/two-years-of-history.md', import.meta.url));
const [payments, states] = [600, ['created', 'captured', 'settled']] as const;
const hot = { maxRecords: 50 };
const pushedAtOnce = 100;

describe.skipIf(withoutOwnMysql)('docs/recipes/two-years-of-history.md', () => {
  test('runs as written', async () => {
    const blocks = codeBlocks(await readFile(page, 'utf8'));
    const mysql = await ownMysql();
    const admin = await adminConnection(mysql);
    const manager = await (await connectTestNats()).jetstreamManager();
    const coldRoot = await tempDir();
    const topics = await openTestTopics({ env: { NATS_URL: natsUrl(), REPLAY_COLD_ROOT: coldRoot } });
    const topic = await topics.create('payments', { partitions: 4, hot, cold: 'file' });
    try {
      for (const sql of textsOf(blocks, 'sql')) for (const statement of statementsOf(sql)) await admin.query(statement);
      await manager.streams.add({ name: 'LEDGER-DLQ', subjects: ['dlq.ledger'], duplicate_window: 3_600_000_000_000 });
      const [password] = /(?<=REPLAY_SECRET_MYSQL=)\S+/.exec(blocks.map(({ text }) => text).join('\n'))!;
      const worker = await startWorker({ REPLAY_SECRET_MYSQL: password, REPLAY_COLD_ROOT: coldRoot });
      for (const state of states) {
        for (let first = 0; first < payments; first += pushedAtOnce) {
          await topic.push(Array.from({ length: pushedAtOnce }, (_, i) => payment(first + i, state)));
        }
        expect(await command(['topic', 'sweep', 'payments'])).toMatchObject({ status: 0 });
      }
      const folder = await tempDir();
      for (const { info, text } of blocks) {
        const file = /^json (\S+)$/.exec(info)?.[1];
        if (file !== undefined) await writeFile(join(folder, file), text.replace('"port": 3306', `"port": ${mysql.port}`));
      }
      const told: string[] = [];
      const run = async (line: string): Promise<Report> => {
        const words = line.split(' ').slice(1);
        const ended = await command([...words.map((word) => (word.endsWith('.json') ? join(folder, word) : word)), '--json']);
        expect([line, ended.status, ended.stderr]).toEqual([line, 0, expect.anything()]);
        told.push(ended.stdout, ended.stderr);
        return JSON.parse(ended.stdout) as Report;
      };
      const lines = textsOf(blocks, 'sh').flatMap((text) => text.trim().split('\n'));
      expect(lines).toHaveLength(3);
      await run(lines[0]!);
      const all = payments * states.length;
      expect((await run(lines[1]!)).range).toMatchObject({ count: all, count_exact: true });
      expect((await run(lines[2]!)).counts).toMatchObject({ pulled: all, written: all, rejected: 0, vanished: 0, acked: all });
      const [rows] = await admin.query(textsOf(blocks, 'sql check')[0]!);
      expect(rows).toEqual([{ payments, with_event: payments, partitions: 4 }]);
      const [found] = await admin.query('SELECT DISTINCT state, amount FROM ledger.payments');
      expect(found).toEqual([{ state: 'settled', amount: '12.50' }]);

      const plan = await readFile(join(folder, 'plan.json'), 'utf8');
      await writeFile(join(folder, 'plan.json'), plan.replace('ledger-history', 'ledger-history-again'));
      expect((await run(lines[2]!)).counts).toMatchObject({ pulled: all, written: 0, duplicate: all, acked: all });
      expect([...told, worker.log()].join('')).not.toContain(password);
    } finally {
      await topics.delete('payments');
      await manager.streams.delete('LEDGER-DLQ').catch(() => undefined);
      await admin.end();
    }
  });
});

function payment(id: number, state: string) {
  return { partitionKey: `p-${id}`, deduplicationKey: `p-${id}-${state}`, payload: { id: `p-${id}`, state, amount: 12.5 } };
}

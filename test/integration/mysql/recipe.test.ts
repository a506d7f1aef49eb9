import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { Report } from '../../../core/report.ts';
import { codeBlocks, statementsOf, textsOf } from '../../support/code-blocks.ts';
import { tempDir } from '../../support/file-end.ts';
import { adminConnection, ownMysql, withoutOwnMysql } from '../../support/mysql.ts';
import { connectTestNats } from '../../support/servers.ts';
import { publishAll } from '../../support/streams.ts';
import { startWorker } from '../../support/worker.ts';
import { command } from '../cli/command-line.ts';

const page = fileURLToPath(new URL('../../../docs/recipes/rebuild-a-table.md', import.meta.url));

describe.skipIf(withoutOwnMysql)('docs/recipes/rebuild-a-table.md', () => {
  test('runs as written', async () => {
    const blocks = codeBlocks(await readFile(page, 'utf8'));
    const mysql = await ownMysql();
    const admin = await adminConnection(mysql);
    const nats = await connectTestNats();
    const manager = await nats.jetstreamManager();
    try {
      for (const sql of textsOf(blocks, 'sql')) for (const statement of statementsOf(sql)) await admin.query(statement);
      await manager.streams.add({ name: 'ORDERS', subjects: ['orders.>'], allow_direct: true });
      await manager.streams.add({
        name: 'DLQ',
        subjects: ['dlq.orders'],
        allow_direct: true,
        duplicate_window: 3_600_000_000_000,
      });
      await publishAll(nats, events());
      const [password] = /(?<=REPLAY_SECRET_MYSQL=)\S+/.exec(blocks.map(({ text }) => text).join('\n'))!;
      const worker = await startWorker({ REPLAY_SECRET_MYSQL: password });
      const folder = await tempDir();
      for (const { info, text } of blocks) {
        const file = /^json (\S+)$/.exec(info)?.[1];
        if (file !== undefined) await writeFile(join(folder, file), text.replace('"port": 3306', `"port": ${mysql.port}`));
      }
      const runs = textsOf(blocks, 'sh').flatMap((text) => text.trim().split('\n'));
      expect(runs).toHaveLength(3);
      const told: string[] = [];
      for (const line of runs) {
        const [program, ...words] = line.split(' ');
        expect(program).toBe('replay-stream');
        const ended = await command([...words.map((word) => (word.endsWith('.json') ? join(folder, word) : word)), '--json']);
        expect([line, ended.status, ended.stderr]).toEqual([line, 0, expect.anything()]);
        told.push(ended.stdout, ended.stderr);
      }
      expect((JSON.parse(told.at(-2)!) as Report).counts).toMatchObject({ pulled: 3_000, written: 3_000, rejected: 0 });
      const [check] = textsOf(blocks, 'sql check');
      const [rows] = await admin.query(check!);
      expect(rows).toEqual([{ orders: 1_000, newest: 3_000 }]);
      const [states] = await admin.query('SELECT DISTINCT state FROM shop.orders');
      expect(states).toEqual([{ state: 'paid' }]);
      const [first] = await admin.query("SELECT total, details FROM shop.orders WHERE order_id = 'o-0'");
      expect(first).toEqual([{ total: '12345678901234567.10', details: '{"big": 7088992364139642880}' }]);
      expect([...told, worker.log()].join('')).not.toContain(password);
    } finally {
      for (const name of ['ORDERS', 'DLQ']) await manager.streams.delete(name).catch(() => undefined);
      await admin.end();
    }
  }, 180_000);
});

/** Three states of each order, one after the other. */
function* events() {
  const encoder = new TextEncoder();
  for (const state of ['created', 'packed', 'paid']) {
    for (let i = 0; i < 1_000; i++) {
      const body = `{"id":"o-${i}","state":"${state}","total":12345678901234567.10,"details":{"big":7088992364139642880}}`;
      yield { subject: `orders.${state}`, body: encoder.encode(body) };
    }
  }
}

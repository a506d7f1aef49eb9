import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JetStreamManager, NatsConnection } from 'nats';
import { expect } from 'vitest';
import type { Report } from '../../core/report.ts';
import { readRecords } from './records.ts';
import { publishAll, type TestStream } from './streams.ts';

/** Bodies above this are refused by the targets of these tests. */
export const recordBytesMax = 100;

export interface Content {
  readonly records: number;
  /** Sequences whose bodies the sink refuses. */
  readonly bad: readonly number[];
}

/** Two of ten records are larger than the target allows. */
export async function fillWithBad(nats: NatsConnection, stream: TestStream, records: number): Promise<Content> {
  const bad: number[] = [];
  const messages = Array.from({ length: records }, (_, i) => {
    const sequence = i + 1;
    const isBad = sequence % 10 === 4 || sequence % 10 === 8;
    if (isBad) bad.push(sequence);
    const body = isBad ? 'x'.repeat(recordBytesMax + 1) : `{"n":${sequence}}`;
    return { subject: `${stream.prefix}.a`, body: new TextEncoder().encode(body) };
  });
  await publishAll(nats, messages);
  return { records, bad };
}

/** Sequences of the dead letters by distinct id, ascending. */
export async function deadLetters(manager: JetStreamManager, stream: TestStream): Promise<number[]> {
  const { state } = await manager.streams.info(stream.deadLetterStream);
  const byId = new Map<string, number>();
  for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq++) {
    const { header, data } = await manager.streams.getMessage(stream.deadLetterStream, { seq });
    expect(header.get('Replay-Body')).toBe('');
    expect(data.length).toBe(recordBytesMax + 1);
    byId.set(header.get('Replay-Id'), Number(header.get('Replay-Source-Sequence')));
  }
  return [...byId.values()].toSorted((a, b) => a - b);
}

/** Directory of the file sink; or a way to read the sequences that another sink has stored, in their order. */
export type Stored = string | (() => Promise<readonly number[]>);

/** Whatever complete lines a killed writer left, in any order. */
async function rowsAsTheyAre(directory: string): Promise<Set<number>> {
  const rows = new Set<number>();
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.endsWith('.jsonl')) continue;
    for (const line of (await readFile(join(directory, name), 'utf8')).split('\n').slice(0, -1)) {
      rows.add((JSON.parse(line) as { sequence: number }).sequence);
    }
  }
  return rows;
}

/** Nothing is acknowledged that is in neither the file nor the dead-letter stream. */
export async function expectNoEarlyAck(
  manager: JetStreamManager,
  stream: TestStream,
  where: { readonly durable: string; readonly directory: Stored },
): Promise<void> {
  const info = await manager.consumers.info(stream.name, where.durable).catch(() => null);
  if (info === null) return;
  const { ack_floor: floor, delivered, num_ack_pending: pending } = info;
  const { directory } = where;
  const settled = typeof directory === 'string' ? await rowsAsTheyAre(directory) : new Set(await directory());
  for (const sequence of await deadLetters(manager, stream)) settled.add(sequence);
  const early = Array.from({ length: floor.stream_seq }, (_, i) => i + 1).filter((sequence) => !settled.has(sequence));
  expect(early).toEqual([]);
  const ackedAboveFloor = delivered.consumer_seq - floor.consumer_seq - pending;
  expect(ackedAboveFloor).toBeLessThanOrEqual([...settled].filter((sequence) => sequence > floor.stream_seq).length);
}

/** Rows exact and once and in order, dead letters exact, and a report that says just that. */
export async function expectAccounted(
  manager: JetStreamManager,
  stream: TestStream,
  found: { readonly content: Content; readonly directory: Stored; readonly report: Report; readonly first?: number },
): Promise<void> {
  const { content, report, directory } = found;
  const good = Array.from({ length: content.records }, (_, i) => i + 1).filter((n) => !content.bad.includes(n));
  const rows =
    typeof directory === 'string' ? (await readRecords(directory)).map(({ sequence }) => sequence) : await directory();
  expect(rows).toEqual(good);
  expect(await deadLetters(manager, stream)).toEqual(content.bad);
  const { counts, range } = report;
  const since = found.first ?? 1;
  expect(counts.pulled).toBe(counts.written + counts.duplicate + counts.skipped + counts.rejected);
  expect(counts.written + counts.duplicate).toBe(good.filter((n) => n >= since).length);
  expect(counts).toMatchObject({
    rejected: content.bad.filter((n) => n >= since).length,
    dead_lettered: counts.rejected,
    acked: counts.pulled,
    lost_body: 0,
    vanished: 0,
    gaps: 0,
  });
  expect(report).toMatchObject({ state: 'completed', stop_reason: 'end_of_range' });
  expect(range).toMatchObject({ cursor: content.records + 1, not_reached: 0 });
}

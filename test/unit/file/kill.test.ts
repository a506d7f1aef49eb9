import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { makeBatch } from '../../contract/records.ts';
import { never } from '../../contract/sink-contract.ts';
import { tempDir } from '../../support/file-end.ts';
import { kinds, makeBed } from './bench.ts';
import { randomFrom } from './simulated-files.ts';

const SCRIPT = fileURLToPath(new URL('./writer-process.ts', import.meta.url));
const KILLS = 10;

interface Killed {
  /** The last sequence that was answered; 0 when none was. */
  readonly answered: number;
  readonly isDone: boolean;
}

/** Kills the writer a while after its first answer. */
async function runAndKill(
  root: string,
  plan: string,
  range: { first: number; last: number },
  afterMs: number,
): Promise<Killed> {
  const count = String(range.last - range.first + 1);
  const child = spawn(process.execPath, ['--import', 'tsx', SCRIPT, root, plan, String(range.first), count]);
  let output = '';
  let errors = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  const ended = once(child, 'close');
  await Promise.race([once(child.stdout, 'data'), ended]);
  await Promise.race([sleep(afterMs), ended]);
  child.kill('SIGKILL');
  await ended;
  expect(errors).toBe('');
  const answered = Number(output.split('\n').at(-2) ?? 0);
  return { answered, isDone: answered >= range.last };
}

test('a writer killed again and again loses and doubles nothing', { timeout: 120_000 }, async () => {
  const bed = await makeBed(await tempDir());
  const random = randomFrom(7);
  const last = 100_000;
  let answered = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const killed = await runAndKill(bed.root, 'plan', { first: answered + 1, last }, random() * 150);
    answered = Math.max(answered, killed.answered);
    expect(killed.isDone, 'it is killed at work').toBe(false);
  }
  const sink = bed.sink();
  await sink.open(never());
  const stored = await bed.sequences();
  expect(stored.length).toBeGreaterThanOrEqual(answered);
  expect(stored).toEqual(Array.from({ length: stored.length }, (_, i) => i + 1));
  expect(kinds(await sink.write(makeBatch(1, stored.length), never()))).toBe('d'.repeat(stored.length));
  await sink.close();
});

test('two writers on one directory, each killed again and again', { timeout: 120_000 }, async () => {
  const bed = await makeBed(await tempDir());
  const random = randomFrom(8);
  const live = async (plan: string, first: number) => {
    let answered = first - 1;
    for (let kill = 0; kill < KILLS / 2; kill++) {
      const killed = await runAndKill(bed.root, plan, { first: answered + 1, last: first + 100_000 }, random() * 400);
      answered = Math.max(answered, killed.answered);
    }
    return answered;
  };
  const answered = await Promise.all([live('one', 1), live('two', 11)]);
  const sink = bed.sink();
  await sink.open(never());
  const stored = (await bed.sequences()).sort((a, b) => a - b);
  expect(stored).toEqual(Array.from({ length: stored.length }, (_, i) => i + 1));
  expect(stored.length).toBeGreaterThanOrEqual(Math.max(...answered));
  await sink.close();
});

/**
 * A writer to be killed: node --import tsx writer-process.ts ROOT FIRST. Writes batches of records from FIRST on, and says on its
 * standard output each last sequence that was answered.
 */
import { makeBatch } from '../../contract/records.ts';
import { never } from '../../contract/sink-contract.ts';
import { bedAt } from './bench.ts';

const BATCH_RECORDS = 20;
const BATCHES_MAX = 20_000;
const [root = '', first = '1'] = process.argv.slice(2);
const sink = bedAt(root).sink();
await sink.open(never());
for (let batch = 0; batch < BATCHES_MAX; batch++) {
  const next = Number(first) + batch * BATCH_RECORDS;
  await sink.write(makeBatch(next, BATCH_RECORDS), never());
  process.stdout.write(`${next + BATCH_RECORDS - 1}\n`);
}

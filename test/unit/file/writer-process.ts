/**
 * A writer to be killed: node --import tsx writer-process.ts ROOT PLAN FIRST COUNT. Writes batches of records from FIRST on, and
 * says on its standard output each last sequence that was answered.
 */
import { makeBatch } from '../../contract/records.ts';
import { never } from '../../contract/sink-contract.ts';
import { bedAt } from './bench.ts';

const BATCH_RECORDS = 20;
const [root = '', plan = '', first = '1', count = '0'] = process.argv.slice(2);
const sink = bedAt(root).sink({ plan, config: { max_segment_bytes: 65_536 } });
await sink.open(never());
for (let next = Number(first); next < Number(first) + Number(count); next += BATCH_RECORDS) {
  await sink.write(makeBatch(next, BATCH_RECORDS), never());
  process.stdout.write(`${next + BATCH_RECORDS - 1}\n`);
}
await sink.close();

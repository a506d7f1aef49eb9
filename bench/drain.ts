/**
 * The drain of an encrypted spool into files, as a ratio to a replay of the same messages straight into files, the two alternating
 * in one run; and the replay that fills the spool.
 *
 *   npx tsx bench/drain.ts [messages=100000] [rounds=3]
 */
import { randomBytes } from 'node:crypto';
import { median } from './plot.ts';
import { openWorld, perSecond, print } from './world.ts';

const messages = Number(process.argv[2] ?? 100_000);
const rounds = Number(process.argv[3] ?? 3);

const world = await openWorld(messages, { REPLAY_SECRET_BENCH: randomBytes(32).toString('base64') });
try {
  const ratios: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const spool = {
      type: 'spool',
      directory: `spool-${round}`,
      encryption: { key_id: 'k', key: { env: 'REPLAY_SECRET_BENCH' } },
    };
    const direct = await world.replayInto({ type: 'file', directory: `direct-${round}` });
    const filled = await world.replayInto(spool);
    const target = { sink: { type: 'file', directory: `drained-${round}` } };
    const drained = await world.run('drainSpool', { spool: { sink: spool }, target, drain: { dry_run: false } });
    ratios.push(drained.perSecond / direct);
    print(
      `round ${round}: replay into files ${perSecond(direct)}, into the spool ${perSecond(filled)}, ` +
        `drain into files ${perSecond(drained.perSecond)}, ratio ${ratios.at(-1)!.toFixed(2)}`,
    );
    const { pull_seconds: read, write_seconds: written, total_seconds: total } = drained.report.timings;
    print(`  of ${total} s: reading ${read}, writing ${written}`);
  }
  print(`drain / direct replay: median ratio ${median(ratios).toFixed(2)}`);
} finally {
  await world.stop();
}

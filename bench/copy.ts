/**
 * A replay into another stream, as a ratio to publishing the same messages there and awaiting each PubAck, 500 on their way at a
 * time; the two alternating in one run. Both wait for the same server.
 *
 *   npx tsx bench/copy.ts [messages=100000] [rounds=3]
 */
import { publishAll, repeat } from '../test/support/streams.ts';
import { bodyOf } from './body.ts';
import { median } from './plot.ts';
import { openWorld, perSecond, print } from './world.ts';

const messages = Number(process.argv[2] ?? 100_000);
const rounds = Number(process.argv[3] ?? 3);

const world = await openWorld(messages, {});
try {
  const ratios: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const bare = await publishBare(await addStream(`BARE-${round}`));
    const name = await addStream(`COPY-${round}`);
    const copied = await world.replayInto({ type: 'jetstream', stream: name, subject_prefix: name });
    ratios.push(copied / bare);
    print(`round ${round}: published ${perSecond(bare)}, replayed ${perSecond(copied)}, ratio ${ratios.at(-1)!.toFixed(2)}`);
  }
  print(`replay into a stream / bare publish: median ratio ${median(ratios).toFixed(2)}`);
} finally {
  await world.stop();
}

async function addStream(name: string): Promise<string> {
  const manager = await world.nats.jetstreamManager();
  await manager.streams.add({ name, subjects: [`${name}.>`], allow_direct: true });
  return name;
}

/** Messages per second. */
async function publishBare(name: string): Promise<number> {
  const began = performance.now();
  await publishAll(
    world.nats,
    repeat(messages, (i) => ({ subject: `${name}.a`, body: Buffer.from(bodyOf(i)) })),
  );
  return (messages / (performance.now() - began)) * 1_000;
}

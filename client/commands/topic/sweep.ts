import { assertWorker, withTemporal } from '../../connect.ts';
import { exitStatus, type ExitStatus } from '../../exit.ts';
import { textTable } from '../../render.ts';
import { sweepTopic } from '../../sweeps.ts';
import type { TopicCommand } from '../topic.ts';

/** Returns when the sweep is done. */
export async function sweepNow({ topics, name, json, terminal }: TopicCommand): Promise<ExitStatus> {
  await topics.open(name);
  const swept = await withTemporal(async (client) => {
    await assertWorker(client);
    return await sweepTopic(client, name);
  });
  if (json) for (const one of swept) terminal.out(JSON.stringify(one));
  else {
    const rows = swept.map(({ partition, segments, records }) => [partition, segments, records].map(String));
    terminal.out(textTable(['PARTITION', 'SEGMENTS', 'RECORDS'], rows));
  }
  return exitStatus('done');
}

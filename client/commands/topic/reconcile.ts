import { repairCount, type Unrepaired } from '../../../core/reconcile.ts';
import { assertWorker, withTemporal } from '../../connect.ts';
import { exitStatus, type ExitStatus } from '../../exit.ts';
import { textTable } from '../../render.ts';
import { reconcile } from '../../sweeps.ts';
import type { TopicCommand } from '../topic.ts';

/** Returns when all is repaired that can be. */
export async function reconcileNow({ topics, name, json, terminal }: TopicCommand): Promise<ExitStatus> {
  if (name !== '') await topics.open(name);
  const report = await withTemporal(async (client) => {
    await assertWorker(client);
    return await reconcile(client, name === '' ? null : name);
  });
  if (json) terminal.out(JSON.stringify(report));
  else {
    const rows = Object.entries(report.repairs).map(([kind, count]) => [kind, String(count)]);
    terminal.out(repairCount(report.repairs) === 0 ? 'Nothing to repair.' : textTable(['REPAIR', 'COUNT'], rows));
    for (const one of report.unrepaired) terminal.err(sentenceOf(one));
    if (report.unrepairedMore > 0) terminal.err(`... and ${report.unrepairedMore} more.`);
  }
  if (report.unrepaired.some(({ kind }) => kind === 'failed')) return exitStatus('failed');
  return exitStatus(report.unrepaired.length === 0 ? 'done' : 'rejects');
}

function sentenceOf(one: Unrepaired): string {
  const place = `${one.topic}${one.partition === null ? '' : `, partition ${one.partition}`}`;
  switch (one.kind) {
    case 'hole':
      return `${place}: offsets ${one.first} to ${one.next - 1} are gone. Restore their objects from a backup, then reconcile again.`;
    case 'foreign_object':
      return `${place}: ${one.object} is no segment. Move it away.`;
    case 'unreadable_object':
      return `${place}: ${one.object} is damaged. Restore it from a backup, then reconcile again.`;
    case 'overlapping_object':
      return `${place}: ${one.object} holds records that are gone and others that are not. It was left alone.`;
    case 'failed':
      return `${place}: failed with ${one.code} (docs/reference/errors.md).`;
  }
}

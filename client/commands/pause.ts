import { withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { assertOpen, findByName, type ReplayName } from '../which.ts';

export interface PauseOptions {
  readonly name: ReplayName;
  readonly reason: string | null;
  readonly json: boolean;
}

export async function pause({ name, reason, json }: PauseOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, name);
    assertOpen(found, 'pause');
    await found.handle.pause(reason === null ? {} : { reason });
    const { id } = found.handle;
    if (json) outJson(terminal, { workflow_id: id, asked: 'pause' });
    else terminal.out(`Asked ${id} to pause; it stops after its batch in flight.\n  go on: replay-stream resume ${id}`);
    return exitStatus('done');
  });
}

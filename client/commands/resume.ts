import { withTemporal } from '../connect.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { outJson, type Terminal } from '../terminal.ts';
import { assertOpen, findByName, type ReplayName } from '../which.ts';

export interface ResumeOptions {
  readonly name: ReplayName;
  readonly reason: string | null;
  readonly json: boolean;
}

export async function resume({ name, reason, json }: ResumeOptions, terminal: Terminal): Promise<ExitStatus> {
  return await withTemporal(async (client) => {
    const found = await findByName(client, name);
    assertOpen(found, 'resume');
    await found.handle.resume(reason === null ? {} : { reason });
    const { id } = found.handle;
    if (json) outJson(terminal, { workflow_id: id, asked: 'resume' });
    else terminal.out(`Asked ${id} to go on.\n  look: replay-stream status ${id}`);
    return exitStatus('done');
  });
}

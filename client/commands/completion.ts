import { completionScript, type Shell } from '../completion.ts';
import { exitStatus, type ExitStatus } from '../exit.ts';
import { createProgram } from '../parse.ts';
import { outJson, type Terminal } from '../terminal.ts';

export interface CompletionOptions {
  readonly shell: Shell;
  readonly json: boolean;
}

export async function completion({ shell, json }: CompletionOptions, terminal: Terminal): Promise<ExitStatus> {
  const nothing = (): void => undefined;
  const script = completionScript(createProgram(nothing, { out: nothing, err: nothing }), shell);
  if (json) outJson(terminal, { shell, script });
  else terminal.out(script);
  return await Promise.resolve(exitStatus('done'));
}
